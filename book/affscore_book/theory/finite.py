"""What a score can be at all with n samples in d dimensions: the linear twin to read it by.

Few samples and shrinkage move the score, also where nothing is non-linear. So a score is put beside that of the linear
twin on the same inputs.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from affscore.companions import linear_twin
from affscore.score import affinity_score

__all__ = ["Reading", "layer_inputs", "reading", "relu_reading"]

Array = NDArray[np.float64]


class Reading(NamedTuple):
    """A score and what it is read by.

    Attributes
    ----------
    score
        The score of the inputs with their own outputs.
    linear
        The score of the inputs with their linear twin (:func:`affscore.companions.linear_twin`).
    plain
        The score of the inputs with their own outputs without shrinkage; there the linear twin scores 1.
    """

    score: float
    linear: float
    plain: float


def reading(x: ArrayLike, y: ArrayLike) -> Reading:
    """The score of ``x`` and ``y``, both of shape (n, d), beside its linear twin's; below that, the layer bends.

    >>> x = layer_inputs(64, 8)
    >>> round(reading(x, 3 * x + 1).linear, 6)  # lines of one slope
    1.0
    """
    score, linear = (affinity_score(x, z).item() for z in (y, linear_twin(x, y)))
    return Reading(score, linear, affinity_score(x, y, covariance="empirical").item())


def layer_inputs(n: int, d: int, *, seed: int = 0, stretched: bool = False, centred: bool = False) -> Array:
    """Normal inputs of shape (n, d), with a variance of 1 on average.

    Round: independent channels. ``stretched``: the variances along the axes fall as 1, 1/2, ..., 1/d, and the cloud
    is turned, so that channels are correlated. The means of the channels are spread like N(0, 1), or 0 if ``centred``.
    """
    x = np.random.default_rng([seed, n, d]).normal(size=(n, d))
    if stretched:
        widths = np.sqrt(1 / np.arange(1, d + 1))
        turn = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
        x = (x * widths) @ turn * np.sqrt(d / np.sum(widths**2))
    return x if centred else x + [NormalDist().inv_cdf((k + 0.5) / d) for k in range(d)]


def relu_reading(n: int, d: int, *, stretched: bool, seed: int = 0) -> Reading:
    """The reading of ReLU on :func:`layer_inputs`."""
    x = layer_inputs(n, d, seed=2 * seed, stretched=stretched)
    return reading(x, np.maximum(x, 0))
