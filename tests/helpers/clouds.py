"""Clouds of samples for the tests of scores, and what makes them hard."""

from __future__ import annotations

import numpy as np


def cloud(rng, n, d, rank=None, orders=1.0):
    """Correlated samples of the given rank whose standard deviations spread over so many orders of magnitude."""
    rank = d if rank is None else rank
    spectrum = 10 ** rng.uniform(-orders, 0, size=rank)
    return (rng.normal(size=(n, rank)) * spectrum) @ np.linalg.qr(rng.normal(size=(d, d)))[0][:rank]


def hard_pair(rng, x, case):
    """x and max(x, 0), with constant channels, a large mean, or values near the ends of the range of floats."""
    y = np.maximum(x, 0)
    if case == "constant channels":
        x[:, :3], y[:, :3], y[:, 5] = 2.5, -1.0, 7.0
    elif case == "offset":
        x, y = x + 1e6 * x.std() * rng.normal(size=x.shape[1]), y + 1e6 * y.std()
    elif case == "tiny":
        x, y = 1e-30 * x, 1e-30 * y
    elif case == "huge":
        x, y = 1e30 * x, 1e30 * y
    elif case == "mixed scales":
        x, y = 1e-12 * x, 1e12 * y
    return x, y


def root(matrix, power, cut):
    """A power of a symmetric matrix, without eigenvalues below that fraction of the largest."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    keep = values > cut * values[-1]
    return (vectors[:, keep] * values[keep] ** power) @ vectors[:, keep].T
