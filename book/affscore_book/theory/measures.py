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

from affscore.score import affinity_score, paired_affinity_score, shrinkage, wasserstein2

__all__ = [
    "covariance", "fixed_image", "form_one", "form_two", "identifiability", "independent_scores", "law", "map_score",
    "normal_distance", "optimal_partners", "outlier_pair", "outlier_scores", "r_squared", "random_psd", "root",
    "shuffled_scores", "turned_scores",
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


def normal_distance(x: Array, y: Array) -> float:
    """W2 between the normal approximations of two samples of shape (n, d) (Theorem 3.3)."""
    s_x, s_y = covariance(x), covariance(y)
    half = root(s_x)
    square = np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2) + np.trace(s_x + s_y - 2 * root(half @ s_y @ half))
    return math.sqrt(max(square, 0.0))


def optimal_partners(x: Array, y: Array) -> NDArray[np.intp]:
    """partner[i] is the row of y that the optimal coupling gives to row i of x."""
    return linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1]


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


def independent_scores(n: int, d: int, draws: int, seed: int = 0) -> Array:
    """Scores of pairs of independent standard normal samples of shape (n, d), without shrinkage; shape (draws,)."""
    rng = np.random.default_rng([seed, n, d])
    pairs = (rng.normal(size=(2, n, d)) for _ in range(draws))
    return np.array([affinity_score(x, y, covariance="empirical").item() for x, y in pairs])


def shuffled_scores(x: Array, y: Array, fractions: Sequence[float]) -> tuple[list[float], list[float]]:
    """(scores, paired scores) where that fraction of the rows of y is shuffled, without shrinkage."""
    order = np.random.default_rng(0).permutation(len(y))
    scores, paired = [], []
    for fraction in fractions:
        rows = np.arange(len(y))
        moved = np.sort(order[: round(fraction * len(y))])
        rows[moved] = np.roll(moved, 1)
        scores.append(affinity_score(x, y[rows], covariance="empirical").item())
        paired.append(paired_affinity_score(x, y[rows], covariance="empirical").item())
    return scores, paired


def turned_scores(x: Array, degrees: Sequence[float]) -> list[float]:
    """Scores of the pairs (x, x turned by that angle) for samples of shape (n, 2), without shrinkage."""
    turns = (np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in np.deg2rad(degrees))
    return [affinity_score(x, x @ turn, covariance="empirical").item() for turn in turns]


def identifiability(n: int, d: int, draws: int, covariance: str) -> Array:
    """Scores of X ~ N(0, I_d) with an exact PSD-affine image of itself; shape (draws,)."""
    clouds = [np.random.default_rng([0, draw, n]).normal(size=(n, d)) for draw in range(draws)]
    pairs = ((x, fixed_image(x, seed=draw)) for draw, x in enumerate(clouds))
    return np.array([affinity_score(x, y, covariance=covariance).item() for x, y in pairs])


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


def r_squared(x: Array, y: Array, x_new: Array | None = None, y_new: Array | None = None) -> float:
    """R2 of the linear regression of y on x with intercept, in sample or on new samples; all of shape (n, d)."""
    design = np.column_stack([np.ones(len(x)), x])
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    if x_new is not None and y_new is not None:
        design, y = np.column_stack([np.ones(len(x_new)), x_new]), y_new
    return 1 - np.sum((y - design @ weights) ** 2) / np.sum((y - y.mean(axis=0)) ** 2)
