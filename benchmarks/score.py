"""Time ``affscore.affinity_score`` against the scikit-learn + POT route, side by side, on one thread.

    python benchmarks/score.py                 # n = 512, d = 64 ... 4096; the peer takes minutes for the last d
    python benchmarks/score.py --d 1024 2048

The peer is an implementation with the standard libraries: scikit-learn's LedoitWolf for both covariances, POT's
``bures_wasserstein_mapping`` for the affine map and ``emd2`` for the exact transport cost. Both sides get the same
float64 arrays; the output has the difference of the two scores and the ratio of the times.

The script also times the operations that every score needs, with the same torch: the products of each cloud with
itself, a symmetric eigenproblem of size min(d, 2 n) with shrinkage and min(d, n) without, the products of all images
with all outputs, and the assignment. "of it" is the time of the score divided by the sum of their times. These are CPU
times, which depend less on other work on the machine; the ratio to the peer is of wall times. "Arrays" are the same
numbers without torch.
"""

import argparse
import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import itertools
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import ot
import torch
from sklearn.covariance import LedoitWolf

import affscore
from affscore.coupling import optimal_partners, squared_distances


def peer_score(x: np.ndarray, y: np.ndarray) -> float:
    n = len(x)
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    covariance_x, covariance_y = LedoitWolf().fit(x).covariance_, LedoitWolf().fit(y).covariance_
    a, b = ot.gaussian.bures_wasserstein_mapping(mean_x, mean_y, covariance_x, covariance_y)
    uniform = np.full(n, 1 / n)
    w2 = ot.emd2(uniform, uniform, ot.dist(x @ a + b, y), numItermax=10_000_000)
    return float(1 - np.sqrt(w2 / (2 * np.trace(covariance_y))))


def activations(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated inputs with a decaying spectrum, as in networks, and their ReLU."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.5
    x = np.ascontiguousarray(x @ np.linalg.qr(rng.normal(size=(d, d)))[0])
    return x, np.maximum(x, 0)


def seconds(function: Callable[[np.ndarray, np.ndarray], object], x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    start = time.perf_counter()
    value = float(function(x, y))  # type: ignore[arg-type]
    return time.perf_counter() - start, value


def processor_times(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """The median time of each function; the functions take turns."""
    table = []
    for _ in range(repeats + 1):
        row = []
        for function in functions:
            start = time.process_time()
            function()
            row.append(time.process_time() - start)
        table.append(row)
    return np.median(table[1:], axis=0).tolist()  # the first round is a warm-up


def unavoidable(x: np.ndarray, y: np.ndarray, covariance: str) -> list[Callable[[], object]]:
    """The operations that every score of these clouds needs, whatever the algorithm."""
    n, d = x.shape
    size = min(d, 2 * n if covariance == "ledoit_wolf" else n)
    matrix = torch.from_numpy(np.cov(np.random.default_rng(0).normal(size=(size, 2 * size))))
    clouds = [torch.from_numpy(v) for v in (x, y)]
    image = affscore.affine_map(x, y, covariance=covariance)(x)
    cost = squared_distances(image - image.mean(axis=0), y - y.mean(axis=0))
    return [
        *(lambda v=v: v @ v.T if n < d else v.T @ v for v in clouds),
        lambda: torch.linalg.eigh(matrix),
        lambda: clouds[0] @ clouds[1].T,
        lambda: optimal_partners(cost.copy()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="The affinity score against scikit-learn + POT.")
    parser.add_argument("--n", type=int, default=512, help="samples (default 512)")
    parser.add_argument("--d", type=int, nargs="+", default=[64, 256, 512, 1024, 2048, 4096], help="dimensions")
    parser.add_argument("--no-peer", action="store_true", help="time only the score and the operations it needs")
    parser.add_argument("--repeats", type=int, default=5, help="runs of affscore; the median counts (default 5)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"n = {arguments.n}, one thread, torch {torch.__version__}, numpy {np.__version__}, POT {ot.__version__}")
    print(f"{'d':>6} {'covariance':>12} {'tensors s':>10} {'arrays s':>9} {'needed s':>9} {'of it':>6}", end="")
    print("" if arguments.no_peer else f" {'peer s':>8} {'peer / arrays':>14} {'difference':>11}")
    for d, covariance in itertools.product(arguments.d, ("ledoit_wolf", "empirical")):
        x, y = activations(arguments.n, d, seed=d)
        score = partial(affscore.affinity_score, covariance=covariance)
        tensors = partial(score, torch.from_numpy(x), torch.from_numpy(y))
        parts = unavoidable(x, y, covariance)
        of_tensors, of_arrays, *needed = processor_times([tensors, partial(score, x, y), *parts], arguments.repeats)
        print(
            f"{d:>6} {covariance:>12} {of_tensors:>10.4f} {of_arrays:>9.4f} {sum(needed):>9.4f} "
            f"{of_tensors / sum(needed):>6.2f}",
            end="",
        )
        if arguments.no_peer or covariance == "empirical":
            print(flush=True)
            continue
        before = [seconds(score, x, y) for _ in range(arguments.repeats)]
        peer, peer_value = seconds(peer_score, x, y)
        after = [seconds(score, x, y) for _ in range(arguments.repeats)]
        ours = float(np.median([t for t, _ in before + after]))
        print(f" {peer:>8.3f} {peer / ours:>14.1f} {abs(peer_value - before[0][1]):>11.1e}", flush=True)


if __name__ == "__main__":
    main()
