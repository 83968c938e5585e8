"""What the chapter on theory measures: the theorems as plain functions of arrays.

They are written with full d x d matrices, as the theorems have them, so that they are a check on
:mod:`affscore.score`, which works differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from affscore.score import wasserstein2

__all__ = [
    "covariance", "fixed_image", "form_one", "form_two", "law", "map_score", "outlier_pair", "random_psd",
    "root",
]  # fmt: skip

Array = NDArray[np.float64]


def covariance(x: ArrayLike) -> Array:
    """The empirical covariance (1/n) of samples of shape (n, d); shape (d, d)."""
    return np.atleast_2d(np.cov(np.asarray(x).T, bias=True))


def root(matrix: Array, power: float = 0.5) -> Array:
    """A power of a symmetric PSD matrix; directions of eigenvalue 0 stay 0, also for a negative power.

    >>> root(np.diag([4.0, 0.0]), -0.5)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    keep = values > 1e-13 * max(values[-1], 1e-300)
    return (vectors[:, keep] * values[keep] ** power) @ vectors[:, keep].T


def form_one(s_x: Array, s_y: Array) -> Array:
    """S_X^-1/2 (S_X^1/2 S_Y S_X^1/2)^1/2 S_X^-1/2, with a pseudo-inverse where S_X is singular."""
    half, inverse = root(s_x), root(s_x, -0.5)
    return inverse @ root(half @ s_y @ half) @ inverse


def form_two(s_x: Array, s_y: Array) -> Array:
    """S_Y^1/2 (S_Y^1/2 S_X S_Y^1/2)^-1/2 S_Y^1/2, the inverse root cut to the rank of its argument."""
    half = root(s_y)
    return half @ root(half @ s_x @ half, -0.5) @ half


def map_score(x: Array, y: Array, matrix: Array) -> float:
    """The affinity score that the given matrix would give, with the empirical variance of y."""
    image = (x - x.mean(axis=0)) @ matrix
    y = y - y.mean(axis=0)
    return 1 - wasserstein2(image, y).item() / math.sqrt(2 * np.trace(covariance(y)))


def random_psd(d: int, rng: np.random.Generator) -> Array:
    """A random symmetric positive definite matrix of shape (d, d): B B^T / d with B standard normal."""
    b = rng.normal(size=(d, d))
    return b @ b.T / d


def law(name: str, n: int, d: int, rng: np.random.Generator) -> Array:
    """Samples of shape (n, d): "normal", "uniform", "skewed", "heavy" or "two clumps", turned and stretched."""
    draws: dict[str, Callable[[], Array]] = {
        "normal": lambda: rng.normal(size=(n, d)),
        "uniform": lambda: rng.uniform(-1, 1, size=(n, d)),
        "skewed": lambda: rng.exponential(size=(n, d)),
        "heavy": lambda: rng.standard_t(3, size=(n, d)),
        "two clumps": lambda: rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, size=(n, 1)),
    }
    return draws[name]() @ rng.normal(size=(d, d)) + rng.normal(size=d)


def fixed_image(x: Array, seed: int = 0) -> Array:
    """An exact PSD-affine image of samples of shape (n, d)."""
    rng = np.random.default_rng([seed, 1])
    return x @ random_psd(x.shape[1], rng) + rng.normal(size=x.shape[1])


def outlier_pair(seed: int = 0) -> tuple[Array, Array]:
    """x has one outlier, so that its covariance is shrunk hard. y lies evenly at both ends of the outlier's line."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=20)
    ends = np.tile([-1.0, 1.0], 12)[:, None] * (direction / np.linalg.norm(direction))
    x, y = 0.1 * rng.normal(size=ends.shape), 0.01 * rng.normal(size=ends.shape) + ends
    x[0] += 10 * ends[0]
    return x, y
