"""The inputs of widgets that compute in the browser, made in Python, where their score is checked.

The activations are those of :data:`affscore_book.activations.catalogue.CATALOGUE`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHOICES", "uniforms"]

#: The activations that a reader can choose in the widgets of clouds and ranges.
CHOICES = ("relu", "leaky_relu", "gelu", "tanh", "sigmoid", "hardtanh")


def uniforms(stream: int, count: int) -> NDArray[np.float64]:
    """``count`` numbers between -1 and 1 that JavaScript can make as well: MurmurHash3's finaliser of a counter.

    >>> round(float(uniforms(0, 10_000).std()), 2)         # 1 / sqrt(3)
    0.58
    """
    bits = (np.uint64(stream * 65536) + np.arange(1, count + 1, dtype=np.uint64)).astype(np.uint32)
    bits = bits * np.uint32(0x9E3779B9)
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    bits = bits ^ (bits >> np.uint32(16))
    return bits / 2147483648 - 1 + 1 / 4294967296
