"""Trials of the theorems: two forms of the map, the score of any map, several distributions, and ReLU in d dimensions.

The forms have full d x d matrices, as in the theorems, so that they check :mod:`affscore.score`, which computes in
another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from affscore.score import affinity_score, wasserstein2
from affscore_book.theory.finite import layer_inputs
from affscore_book.theory.measures import Array, covariance, root

__all__ = ["form_one", "form_two", "law", "map_score", "relu_scores"]


def form_one(s_x: Array, s_y: Array) -> Array:
    """S_X^-1/2 (S_X^1/2 S_Y S_X^1/2)^1/2 S_X^-1/2, with a pseudo-inverse if S_X is singular."""
    half, inverse = root(s_x), root(s_x, -0.5)
    return inverse @ root(half @ s_y @ half) @ inverse


def form_two(s_x: Array, s_y: Array) -> Array:
    """S_Y^1/2 (S_Y^1/2 S_X S_Y^1/2)^-1/2 S_Y^1/2, with the inverse root on the range of its argument."""
    half = root(s_y)
    return half @ root(half @ s_x @ half, -0.5) @ half


def map_score(x: Array, y: Array, matrix: Array) -> float:
    """The affinity score that the given matrix would give, with the empirical variance of y."""
    image = (x - x.mean(axis=0)) @ matrix
    y = y - y.mean(axis=0)
    return 1 - wasserstein2(image, y).item() / math.sqrt(2 * np.trace(covariance(y)))


def law(name: str, n: int, d: int, rng: np.random.Generator) -> Array:
    """Samples of shape (n, d) from a distribution by name, after a random affine map.

    The names are "normal", "uniform", "skewed", "heavy" and "two clumps".
    """
    draws: dict[str, Callable[[], Array]] = {
        "normal": lambda: rng.normal(size=(n, d)),
        "uniform": lambda: rng.uniform(-1, 1, size=(n, d)),
        "skewed": lambda: rng.exponential(size=(n, d)),
        "heavy": lambda: rng.standard_t(3, size=(n, d)),
        "two clumps": lambda: rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, size=(n, 1)),
    }
    return draws[name]() @ rng.normal(size=(d, d)) + rng.normal(size=d)


def relu_scores(n: int, dimensions: Sequence[int], *, centred: bool) -> list[float]:
    """The scores of ReLU with shrinkage on :func:`layer_inputs` (n, d) with independent channels, for each d."""
    inputs = (layer_inputs(n, d, centred=centred) for d in dimensions)
    return [affinity_score(x, np.maximum(x, 0)).item() for x in inputs]
