"""Treats signatures as sequences of scores, and measures the distance of two sequences."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from affscore.signatures import Signature
from affscore.zoo.weights import require
from affscore_book.kit.architectures import model_name

__all__ = ["dtw", "sequence"]


def sequence(signature: Signature) -> NDArray[np.float64]:
    """The scores of a signature in execution order, averaged over batches, without dead calls; shape (calls,).

    Raises ValueError if no call is left.
    """
    alive = signature.mean[~np.isnan(signature.mean)]
    if not len(alive):
        calls = len(signature.calls)
        what = f"has {calls} activation calls, all dead" if calls else "has no activation call"
        raise ValueError(f"the signature of {model_name(signature)} {what}; there is nothing to compare.")
    return alive


def dtw(a: ArrayLike, b: ArrayLike) -> float:
    """Dynamic time warping distance of two sequences of scores (Sakoe and Chiba, 1978).

    A warping path aligns the sequences from first to last element; each step advances one of them, or both, by one.
    The distance is the least possible square root of the summed squared differences along a path. The sequences
    have shapes (n,) and (m,), of finite numbers.

    Notes
    -----
    All steps have weight 1 and there is no window. The paper does not state its cost, weights or normalisation. Its
    code pins tslearn, which computes the same DTW. The size of the paper's deviations between data sets (.26 for whole
    networks) fits this DTW, and would be far too large for a normalised distance.

    The distance is symmetric and not negative. Repeating an element costs nothing, so it can be 0 for different
    sequences, and the triangle inequality does not hold. The package dtaidistance computes it.

    Examples
    --------
    >>> dtw([0.2, 0.8], [0.2, 0.2, 0.8])
    0.0
    >>> round(dtw([0.5, 0.5, 0.5, 0.5], [0.7]), 6)
    0.4
    """
    pair = [np.ascontiguousarray(values, dtype=np.float64) for values in (a, b)]
    for name, array in zip("ab", pair, strict=True):
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise ValueError(
                f"{name} has shape {array.shape} and {int((~np.isfinite(array)).sum())} values that are not finite; it "
                "should be a sequence of at least one finite number."
            )
    library = require("dtaidistance.dtw")
    return float(library.distance(*pair, use_c=library.dtw_cc is not None))
