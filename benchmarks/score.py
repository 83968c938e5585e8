"""Time ``affscore.affinity_score`` against the scikit-learn + POT route, side by side, on one thread.

    python benchmarks/score.py                 # n = 512, d = 512 ... 4096; the last takes minutes for the peer
    python benchmarks/score.py --d 1024 2048

The peer is what one writes with the standard libraries: scikit-learn's LedoitWolf for both covariances, POT's
``bures_wasserstein_mapping`` for the affine map and ``emd2`` for the exact transport cost. Both sides get the same
float64 arrays; the difference of the two scores is printed beside the ratio of the times.

A score needs one symmetric eigenproblem of size min(d, 2 n). That alone is timed too, of a random matrix: by
``torch.linalg.eigh``, which the score calls, and by SciPy's ``eigh(driver="evd")``, which may be faster, but whose
threads torch does not hold to one. "of it" is the time of the score in units of the first and of the second. These are
processor times, for which other work on the machine counts less; the peer's ratio is of wall times.
"""

import argparse
import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import time
from collections.abc import Callable

import numpy as np
import ot
import scipy.linalg
import torch
from sklearn.covariance import LedoitWolf

import affscore


def peer_score(x: np.ndarray, y: np.ndarray) -> float:
    n = len(x)
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    covariance_x, covariance_y = LedoitWolf().fit(x).covariance_, LedoitWolf().fit(y).covariance_
    a, b = ot.gaussian.bures_wasserstein_mapping(mean_x, mean_y, covariance_x, covariance_y)
    uniform = np.full(n, 1 / n)
    w2 = ot.emd2(uniform, uniform, ot.dist(x @ a + b, y), numItermax=10_000_000)
    return float(1 - np.sqrt(w2 / (2 * np.trace(covariance_y))))


def activations(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated inputs with a decaying spectrum, as networks have, and their ReLU."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.5
    x = np.ascontiguousarray(x @ np.linalg.qr(rng.normal(size=(d, d)))[0])
    return x, np.maximum(x, 0)


def seconds(function: Callable[[np.ndarray, np.ndarray], object], x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    start = time.perf_counter()
    value = float(function(x, y))  # type: ignore[arg-type]
    return time.perf_counter() - start, value


def processor_times(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """The median of each, in turns."""
    table = []
    for _ in range(repeats + 1):
        row = []
        for function in functions:
            start = time.process_time()
            function()
            row.append(time.process_time() - start)
        table.append(row)
    return np.median(table[1:], axis=0).tolist()  # the first warms up


def eigenproblem(x: np.ndarray, y: np.ndarray, repeats: int) -> tuple[float, float, float]:
    """Processor seconds of the score, and of its eigenproblem by torch and by SciPy."""
    n, d = x.shape
    matrix = np.cov(np.random.default_rng(0).normal(size=(min(d, 2 * n), 2 * max(d, 2 * n))))
    tensor = torch.from_numpy(matrix)
    score, ours, other = processor_times(
        [
            lambda: affscore.affinity_score(x, y),
            lambda: torch.linalg.eigh(tensor),
            lambda: scipy.linalg.eigh(matrix.copy(), driver="evd", overwrite_a=True, check_finite=False),
        ],
        repeats,
    )
    return score, ours, other


def main() -> None:
    parser = argparse.ArgumentParser(description="The affinity score against scikit-learn + POT.")
    parser.add_argument("--n", type=int, default=512, help="samples (default 512)")
    parser.add_argument("--d", type=int, nargs="+", default=[512, 1024, 2048, 4096], help="dimensions")
    parser.add_argument("--no-peer", action="store_true", help="time only the score and its eigenproblem")
    parser.add_argument("--repeats", type=int, default=5, help="runs of affscore; its median counts (default 5)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"n = {arguments.n}, one thread, torch {torch.__version__}, POT {ot.__version__}")
    print(f"{'d':>6} {'score s':>9} {'eigh: torch':>12} {'of it':>6} {'scipy':>7} {'of it':>6}", end="")
    print("" if arguments.no_peer else f" {'peer s':>9} {'affscore s':>11} {'ratio':>7} {'difference':>11}")
    for d in arguments.d:
        x, y = activations(arguments.n, d, seed=d)
        score, torch_s, scipy_s = eigenproblem(x, y, arguments.repeats)
        print(
            f"{d:>6} {score:>9.3f} {torch_s:>12.3f} {score / torch_s:>6.2f} {scipy_s:>7.3f} {score / scipy_s:>6.2f}",
            end="",
        )
        if arguments.no_peer:
            print(flush=True)
            continue
        before = [seconds(affscore.affinity_score, x, y) for _ in range(arguments.repeats)]
        peer, peer_value = seconds(peer_score, x, y)
        after = [seconds(affscore.affinity_score, x, y) for _ in range(arguments.repeats)]
        ours = float(np.median([t for t, _ in before + after]))
        print(f" {peer:>9.3f} {ours:>11.3f} {peer / ours:>7.1f} {abs(peer_value - before[0][1]):>11.1e}", flush=True)


if __name__ == "__main__":
    main()
