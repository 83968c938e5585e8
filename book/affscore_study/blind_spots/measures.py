"""The score of independent samples, and two measures to compare with the score: Gelbrich's gap and R2."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from affscore.score import affinity_score, wasserstein2
from affscore_book.theory.measures import covariance, fixed_image, random_psd, root
from affscore_study.theory.trials import form_two, law

__all__ = [
    "gelbrich_gap", "gelbrich_pairs", "independent_laws", "independent_scores", "normal_distance",
    "r_squared", "smallest_steps", "square_fits",
]  # fmt: skip

Array = NDArray[np.float64]


def independent_scores(n: int, d: int, draws: int, *, kind: str = "empirical") -> Array:
    """The scores of pairs of independent standard normal samples of shape (n, d), as an array of shape (draws,)."""
    rng = np.random.default_rng([1, n, d])
    pairs = (rng.normal(size=(2, n, d)) for _ in range(draws))
    return np.array([affinity_score(x, y, covariance=kind).item() for x, y in pairs])


def independent_laws(d: int) -> float:
    """The exact score of two independent normal variables in d dimensions with random covariances, without samples."""
    rng = np.random.default_rng([0, d])
    s_x, s_y = random_psd(d, rng), random_psd(d, rng)
    a = form_two(s_x, s_y)
    return 1 - _between_normals(a @ s_x @ a, s_y) / math.sqrt(2 * np.trace(s_y))


def _between_normals(s_x: Array, s_y: Array, shift: float = 0.0) -> float:
    """The distance W2 between normal distributions with these covariances whose means are ``shift`` apart."""
    half = root(s_x)
    return math.sqrt(max(shift**2 + np.trace(s_x + s_y - 2 * root(half @ s_y @ half)), 0.0))


def normal_distance(x: Array, y: Array) -> float:
    """The distance W2 between the normal approximations of two samples of shape (n, d)."""
    shift = float(np.linalg.norm(x.mean(axis=0) - y.mean(axis=0)))
    return _between_normals(covariance(x), covariance(y), shift)


def gelbrich_gap(x: Array, y: Array) -> float:
    """The distance W2 of two samples of shape (n, d) minus that of their normal approximations, to 9 decimals."""
    return round(wasserstein2(x, y).item() - normal_distance(x, y), 9) + 0.0  # rounding may leave -0.0


def smallest_steps() -> dict[str, float]:
    """The smallest change of the gap from one map to the next, along three paths from an affine map to a bent one."""
    x, line = np.random.default_rng(0).normal(size=(100, 3)), np.linspace(-1, 1, 1001)[:, None]
    order = np.random.default_rng(1).permutation(100)
    pairs: dict[str, list[tuple[Array, Array]]]
    pairs = {"an affine image, shuffled more and more": [], "x^k": [], "x^k of equal variance": []}
    for moved in (0, 25, 50, 100):
        rows = np.arange(100)
        rows[np.sort(order[:moved])] = np.roll(np.sort(order[:moved]), 1)
        pairs["an affine image, shuffled more and more"].append((x, fixed_image(x)[rows]))
    for k in (1, 3, 5, 7, 11, 41):
        pairs["x^k"].append((line, line**k))
        pairs["x^k of equal variance"].append((line, line**k * line.std() / np.std(line**k)))
    gaps = {way: [gelbrich_gap(*pair) for pair in each] for way, each in pairs.items()}
    return {way: float(np.diff(each).min()) for way, each in gaps.items()}


def gelbrich_pairs() -> tuple[Array, Array, NDArray[np.bool_]]:
    """The distances W2 of normal approximations and of clouds for 72 centred pairs, and whether a pair is PSD-affine.

    Each of the three arrays has shape (72,).
    """
    kinds = ["normal", "uniform", "skewed", "heavy", "two clumps"]
    rows = []
    for seed in range(72):
        rng = np.random.default_rng(seed)
        x = law(kinds[seed % 5], 100, 2, rng)
        y = fixed_image(x, seed) if seed >= 60 else law(kinds[seed // 12], 100, 2, rng)
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        rows.append((normal_distance(x, y), wasserstein2(x, y).item(), seed >= 60))
    lower, exact, affine = (np.array(column) for column in zip(*rows, strict=True))
    return lower, exact, affine


def r_squared(x: Array, y: Array, x_new: Array | None = None, y_new: Array | None = None) -> float:
    """R2 of the linear regression of y on x with intercept, in sample or on new samples, all of shape (n, d)."""
    design = np.column_stack([np.ones(len(x)), x])
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    if x_new is not None and y_new is not None:
        design, y = np.column_stack([np.ones(len(x_new)), x_new]), y_new
    return 1 - np.sum((y - design @ weights) ** 2) / np.sum((y - y.mean(axis=0)) ** 2)


def square_fits(n: int, d: int, draws: int) -> tuple[list[float], list[float]]:
    """In-sample and held-out R2 of the regression of the squares of normal samples (n, d) on the samples, by draw."""
    inside, outside = [], []
    for seed in range(draws):
        x = np.random.default_rng(seed).normal(size=(2, n, d))
        inside.append(r_squared(x[0], x[0] ** 2))
        outside.append(r_squared(x[0], x[0] ** 2, x[1], x[1] ** 2))
    return inside, outside
