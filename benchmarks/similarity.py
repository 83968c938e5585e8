"""Compares time and peak memory of the similarity measures at n = 10,000 with another CKA, on one thread.

    python benchmarks/similarity.py                       # every measure, each in a separate process
    python benchmarks/similarity.py --n 2000 --d 512

Features are ReLUs of correlated Gaussians, float32, shape (n, d). The peer is ``pytorch-cka`` (``pip install
pytorch-cka``), which takes Gram matrices: this script computes the linear Gram matrix for it by one product, and that
of the max kernel, which the peer lacks, by the same tiles as for our measure. Memory is the peak of the process above
its memory before the call. The column "n x n" is the size of one Gram matrix, and "n x n x d" is the memory that the
max kernel needs if it is written in one line.
"""

import argparse
import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import torch

from affscore_book.similarity.kernels import cka, gram
from affscore_book.similarity.procrustes import procrustes


def peer(k: torch.Tensor, l: torch.Tensor) -> float:  # noqa: E741
    from cka import hsic

    xy, xx, yy = (value.item() for value in hsic(k[None], l[None]))
    return xy / math.sqrt(xx * yy)


MEASURES: dict[str, Callable[[torch.Tensor, torch.Tensor], float]] = {
    "Procrustes, G_ReLU": lambda x, y: procrustes(x, y, null=0).value,
    "Procrustes, orthogonal": lambda x, y: procrustes(x, y, "orthogonal", null=0).value,
    "CKA, linear": lambda x, y: cka(x, y, null=0).value,
    "  peer, linear": lambda x, y: peer(gram(x, "linear"), gram(y, "linear")),
    "CKA, max": lambda x, y: cka(x, y, "max", null=0).value,
    "  peer, max": lambda x, y: peer(gram(x, "max"), gram(y, "max")),
    "CKA, Laplace": lambda x, y: cka(x, y, "laplace", null=0).value,
}


def features(n: int, d: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    common = normal(n, d)
    return [torch.relu(common @ normal(d, d) / math.sqrt(d) + normal(n, d)) for _ in range(2)]


def peak_memory() -> float:
    """The peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(name: str, n: int, d: int) -> tuple[float, float, float, float]:
    torch.set_num_threads(1)
    x, y = features(n, d)
    MEASURES[name](x[:100], y[:100])
    before, start, cpu = peak_memory(), time.perf_counter(), time.process_time()
    value = MEASURES[name](x, y)
    return time.perf_counter() - start, time.process_time() - cpu, peak_memory() - before, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000, help="samples (default 10,000)")
    parser.add_argument("--d", type=int, default=128, help="channels (default 128)")
    parser.add_argument("--only", nargs="+", choices=MEASURES, help="some of the measures")
    arguments = parser.parse_args()
    n, d = arguments.n, arguments.d
    print(f"n = {n}, d = {d}, one thread, torch {torch.__version__}")
    print(f"n x n: {8 * n * n / 2**20:.0f} MB, n x n x d: {8 * n * n * d / 2**20:.0f} MB")
    print(f"{'measure':24} {'seconds':>8} {'cpu s':>8} {'peak MB':>8} {'value':>12}")
    for name in arguments.only or MEASURES:
        # Each measure has a separate process, whose peak belongs to this measure alone.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            seconds, cpu, memory, value = pool.submit(measure, name, n, d).result()
        print(f"{name:24} {seconds:8.1f} {cpu:8.1f} {memory:8.0f} {value:12.9f}", flush=True)


if __name__ == "__main__":
    main()
