"""What the chapter on theory measures: the theorems as plain functions of arrays.

They are written with full d x d matrices, as the theorems have them, so that they are a check on
:mod:`affscore.score`, which works differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from affscore.score import affinity_score, shrinkage, wasserstein2

__all__ = [
    "covariance", "crossings", "fixed_image", "form_one", "form_two", "law", "map_score", "optimal_partners",
    "outlier_pair", "outlier_scores", "paying_swaps", "random_psd", "root",
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


def optimal_partners(x: Array, y: Array) -> NDArray[np.intp]:
    """partner[i] is the row of y that the optimal coupling gives to row i of x."""
    return linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1]


def paying_swaps(x: ArrayLike, y: ArrayLike) -> int:
    """Pairs i < j for which x_i -> y_j and x_j -> y_i together cost less than x_i -> y_i and x_j -> y_j.

    Exchanging the partners changes the sum of squares by 2 (x_i - x_j) . (y_i - y_j); up to rounding, a pair is
    counted where this is negative. Both of shape (n, d).
    """
    x, y = (np.asarray(value, dtype=np.float64) for value in (x, y))
    change = np.einsum("ijk,ijk->ij", x[:, None] - x, y[:, None] - y)
    return int(np.sum(np.triu(change < -1e-12 * abs(change).max(), 1)))


def crossings(x: ArrayLike, y: ArrayLike) -> int:
    """Pairs of the segments from x_i to y_i that cross; both of shape (n, 2).

    >>> crossings([[0, 0], [1, -1]], [[10, 0], [12, 1]])
    1
    """
    x, y = (np.asarray(value, dtype=np.float64) for value in (x, y))
    way = (y - x)[:, None]

    def side(points: Array) -> Array:
        """Entry [i, j]: on which side of segment i's line the point j lies."""
        gap = points - x[:, None]
        return np.sign(way[..., 0] * gap[..., 1] - way[..., 1] * gap[..., 0])

    apart = side(x) * side(y) < 0
    return int(np.sum(np.triu(apart & apart.T, 1)))


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


def outlier_pair(outliers: int = 1, seed: int = 0) -> tuple[Array, Array]:
    """x has outliers on one line; few of them shrink its covariance hard. y lies evenly at both ends of that line."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=20)
    ends = np.tile([-1.0, 1.0], 12)[:, None] * (direction / np.linalg.norm(direction))
    x, y = 0.1 * rng.normal(size=ends.shape), 0.01 * rng.normal(size=ends.shape) + ends
    x[:outliers] += 10 * ends[:outliers]
    return x, y


def outlier_scores(outliers: Sequence[int]) -> tuple[Array, Array]:
    """(shrinkage of x, score with shrinkage) of two outlier pairs for each number of outliers."""
    pairs = [outlier_pair(count, seed) for count in outliers for seed in (0, 1)]
    shrunk = np.array([shrinkage(x).item() for x, _ in pairs])
    return shrunk, np.array([affinity_score(x, y).item() for x, y in pairs])
