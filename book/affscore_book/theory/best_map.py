"""Affine maps that leave less than the score's map T, and what it takes to find them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from affscore.affine import affine_map
from affscore.coupling import partners
from affscore.score import wasserstein2

__all__ = ["distances_left", "regression_image", "searched_distance"]

Array = NDArray[np.float64]


def regression_image(x: Array, y: Array) -> Array:
    """The values at ``x`` (n, d) of the affine map with the smallest mean squared distance to ``y`` (n, d), paired."""
    design = np.column_stack([np.ones(len(x)), x])
    return design @ np.linalg.lstsq(design, y, rcond=None)[0]


def searched_distance(x: Array, y: Array, start: Array) -> float:
    """The W2 distance to ``y`` (n, d) of an affine image of ``x`` (n, d) that no step below brings down.

    From the image ``start`` (n, d): couple it with ``y``, regress the partners on ``x``, and begin again. No step can
    raise the distance. It ends where coupling and map fit each other, which need not be the smallest distance of all.
    """
    image, last = start, np.inf
    while (distance := wasserstein2(image, y).item()) < last * (1 - 1e-9):
        last = distance
        image = regression_image(x, y[partners(image, y)])
    return min(distance, last)


def distances_left(x: Array, y: Array) -> dict[str, float]:
    """What affine maps leave of W2 to ``y``: T, the regression, and where searches from T and from a turn end."""
    image = affine_map(x, y, covariance="empirical")(x)
    left = {"T": image, "regression": regression_image(x, y)}
    found = {name: wasserstein2(points, y).item() for name, points in left.items()}
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(x.shape[1],) * 2))[0]
    starts = {"search from T": image, "from a turned cloud": (x - x.mean(axis=0)) @ turn + y.mean(axis=0)}
    return found | {name: searched_distance(x, y, start) for name, start in starts.items()}
