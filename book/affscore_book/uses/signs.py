"""The entropy of the sign of an activation's input, by which EASIER and NEPENTHE choose what to linearise.

Source: Quétu, Liao and Tartaglione, "The simpler the better", ECML PKDD 2024.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

__all__ = ["sign_entropy"]


def sign_entropy(before: ArrayLike, axis: int = 1) -> float:
    """The entropy of the sign of an activation's input, averaged over its channels, in bits between 0 and 1.

    A channel in which a fraction p of the inputs is positive has ``-p log2 p - (1 - p) log2(1 - p)``: 0 if a ReLU is
    the identity or 0 on all samples, 1 if half of the inputs are positive. The methods first linearise the layers with
    the smallest entropy.

    Parameters
    ----------
    before
        The activation's input before pooling, of any real dtype, with at least two axes: (n, channels, H, W).
    axis
        The axis of the channels; fractions are taken over all other axes.

    Raises
    ------
    ValueError
        If there are fewer than two axes, no entries, or entries that are not finite.

    >>> sign_entropy([[1.0, 1.0], [-1.0, 1.0]])
    0.5
    """
    x = np.asarray(before)
    if x.ndim < 2 or 0 in x.shape:
        raise ValueError(f"before has shape {x.shape}; it should have two axes or more, and entries.")
    if not np.isfinite(x).all():
        raise ValueError("before holds values that are not finite; it should hold numbers.")
    p = (np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1) > 0).mean(axis=1)
    return float((entr(p) + entr(1 - p)).mean()) / math.log(2)
