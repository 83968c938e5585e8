"""A test of whether the score is differentiable, by its slopes on both sides of a point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from affscore.score import affinity_score
from affscore_book.theory.measures import fixed_image

__all__ = ["corners", "slope_jump"]

Array = NDArray[np.float64]
_STEP = 1e-5


def _score(x: Array, y: Array) -> float:
    return affinity_score(x, y, covariance="empirical").item()


def _pair(seed: int) -> tuple[Array, Array]:
    x, noise = np.random.default_rng(seed).normal(size=(2, 30, 2))
    return x, np.tanh(2 * x) + 0.3 * noise


def slope_jump(x: Array, y: Array, direction: Array) -> float:
    """The slope of the score to the right minus that to the left, if the outputs move along a direction.

    >>> x = np.arange(4.0)[:, None]
    >>> abs(slope_jump(x, np.exp(x), x**2)) < 1e-3, slope_jump(x, x, x**2) < -1e-1
    (True, True)
    """
    right, here, left = (_score(x, y + t * direction) for t in (_STEP, 0.0, -_STEP))
    return (right - 2 * here + left) / _STEP


def corners() -> dict[str, float]:
    """The jumps of the slope at random samples, at a score of 1, and at a point at which two outputs of ReLU are 0."""
    x, y = _pair(0)
    move = np.random.default_rng(1).normal(size=x.shape)
    line = x[:, :1]
    first = np.zeros_like(line)
    first[np.argmax(line <= 0)] = 1.0
    return {
        "random samples": slope_jump(x, y, move),
        "a score of 1": slope_jump(x, fixed_image(x), move),
        "equal outputs of ReLU": slope_jump(line, np.maximum(line, 0), first),
    }
