"""Makes the cloud in the plane that two widgets draw; ``affinity2d.js`` makes the same points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["POINTS", "cloud"]

Array = NDArray[np.float64]

#: The number of points in the widgets' clouds, which JavaScript can couple while a slider moves.
POINTS = 56


def cloud(width: float = 1.0, angle: float = 0.0, centre: float = 0.0, n: int = POINTS) -> Array:
    """``n`` points in the plane, shape (n, 2), float64: an evenly spread normal cloud without random numbers.

    The cloud is a sunflower spiral with the radii of N(0, I), which is squeezed to ``width`` in one direction, turned
    by ``angle`` degrees and moved to (centre, centre).

    >>> cloud(width=0.5, n=1000).std(axis=0).round(2)
    array([1. , 0.5])
    """
    i = np.arange(n)
    radius, turn = np.sqrt(-2 * np.log(1 - (i + 0.5) / n)), i * math.pi * (3 - math.sqrt(5))
    along, across = radius * np.cos(turn), width * radius * np.sin(turn)
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return centre + np.stack([cos * along - sin * across, sin * along + cos * across], axis=1)
