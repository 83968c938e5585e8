"""Laws on the line as grids of equally likely points: the Python twin of ``affinity1d.js`` and ``uniforms.js``.

A widget computes in the browser. These few functions give Python the same inputs, so that the score of a widget's
state can be computed by :func:`affscore.affinity_score` and compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri
from torch.nn import functional

from affscore.score import affinity_score

__all__ = ["ACTIVATIONS", "affinity", "normal_grid", "uniform_grid"]

Array = NDArray[np.float64]


def _from_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
    return lambda x: function(torch.from_numpy(np.asarray(x, dtype=np.float64))).numpy()


#: Activations by torch's names, with torch's default parameters, on float64 arrays of any shape. GELU, SiLU, the
#: sigmoid and softplus are not torch's but as exact in the tails as elsewhere.
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "gelu": lambda x: x * ndtr(x),
    "silu": lambda x: x * expit(x),
    "sigmoid": expit,
    "softplus": lambda x: np.logaddexp(0.0, x),
} | {
    name: _from_torch(getattr(functional, name))
    for name in ("relu", "leaky_relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "tanh",
                 "softsign", "mish", "elu", "selu")
}  # fmt: skip

#: What a reader chooses from in the widgets of clouds and ranges.
NAMES = {
    "relu": "ReLU",
    "leaky_relu": "Leaky ReLU",
    "gelu": "GELU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "hardtanh": "hardtanh",
}


def uniform_grid(a: float, b: float, n: int) -> Array:
    """``n`` equally likely points, shape (n,), that stand for the uniform law on [a, b].

    >>> uniform_grid(0.0, 1.0, 4)
    array([0.125, 0.375, 0.625, 0.875])
    """
    return a + ((b - a) * (np.arange(n) + 0.5)) / n


def normal_grid(mean: float, sd: float, n: int) -> Array:
    """``n`` equally likely points, shape (n,), that stand for N(mean, sd^2): quantiles at (i + 1/2) / n.

    >>> normal_grid(1.0, 2.0, 3).round(3)
    array([-0.935,  1.   ,  2.935])
    """
    return mean + sd * ndtri((np.arange(n) + 0.5) / n)


def affinity(x: Array, y: Array) -> float:
    """The empirical affinity score of the points y, shape (n,), for the points x; NaN where y is constant.

    >>> x = uniform_grid(-1.0, 1.0, 400)
    >>> round(affinity(x, x**3), 3)
    0.711
    """
    return affinity_score(x, y, covariance="empirical").item()


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
