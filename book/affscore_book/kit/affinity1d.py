"""What a widget of one dimension computes in the browser, once more: the Python twin of the kit's JavaScript.

A widget computes in the browser. These few functions give Python the same inputs, so that the score of a widget's
state can be computed by :func:`affscore.affinity_score` and compared. The activations are those of
:data:`affscore_book.activations.catalogue.CATALOGUE`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHOICES", "uniform_grid", "uniforms"]

#: What a reader chooses from in the widgets of clouds and ranges.
CHOICES = {
    "relu": "ReLU",
    "leaky_relu": "Leaky ReLU",
    "gelu": "GELU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "hardtanh": "hardtanh",
}


def uniform_grid(a: float, b: float, n: int) -> NDArray[np.float64]:
    """``n`` equally likely points, shape (n,), that stand for the uniform law on [a, b].

    >>> uniform_grid(0.0, 1.0, 4)
    array([0.125, 0.375, 0.625, 0.875])
    """
    return a + ((b - a) * (np.arange(n) + 0.5)) / n


def uniforms(stream: int, count: int) -> NDArray[np.float64]:
    """``count`` numbers between -1 and 1 that JavaScript can make too: a counter through MurmurHash3's finaliser.

    >>> round(float(uniforms(0, 10_000).std()), 2)         # 1 / sqrt(3)
    0.58
    """
    bits = (np.uint64(stream * 65536) + np.arange(1, count + 1, dtype=np.uint64)).astype(np.uint32)
    bits = bits * np.uint32(0x9E3779B9)
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    bits = bits ^ (bits >> np.uint32(16))
    return bits / 2147483648 - 1 + 1 / 4294967296
