"""Signatures with given scores, and a plain DTW, for the tests of what compares them."""

from __future__ import annotations

import itertools
import math

import numpy as np

from affscore import Signature
from affscore.calls import Call


def made(
    rows, *, gates=(), companions=None, pool="spatial", covariance="ledoit_wolf", size=64, **provenance
) -> Signature:
    """A signature with given scores, (batches, calls) or (calls,)."""
    rows = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    axis = 1 if pool == "spatial" else -1
    calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, i in gates, (4,), axis) for i in range(rows.shape[1])]
    return Signature(
        calls, rows, pool=pool, covariance=covariance, batch_sizes=[size] * len(rows),
        provenance=provenance, companions=companions or {},
    )  # fmt: skip


def published(name, rows, kind="random", **more) -> Signature:
    """A signature of a network whose weights are of this kind."""
    return made(rows, model=name, weights={"kind": kind, "weights": f"{kind} weights"}, **more)


def random_scores(seed, *shape):
    return np.random.default_rng(seed).uniform(0.2, 1.0, shape)


def programme(a, b):
    """The least root of the summed squares over warping paths, cell by cell."""
    total = np.full((len(a) + 1, len(b) + 1), np.inf)
    total[0, 0] = 0.0
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        step = abs(a[i - 1] - b[j - 1]) ** 2
        total[i, j] = step + min(total[i - 1, j], total[i, j - 1], total[i - 1, j - 1])
    return math.sqrt(total[-1, -1])
