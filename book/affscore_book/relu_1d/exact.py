"""The affinity score in one dimension: the monotone theorem, and exact scores of piecewise linear activations.

The book's chapter "ReLU in one dimension" derives every formula. In short:

*   In one dimension optimal transport pairs sorted with sorted. For a non-decreasing activation the pairs
    ``(x, y = activation(x))`` are sorted already, so ``score = 1 - sqrt(1 - r)`` with ``r`` the correlation of x and y
    (:func:`monotone_score`).
*   Regress y on x: ``y - m_y = along * (x - m_x) + residual``, and let ``across`` be the residual's standard deviation,
    both in units of the standard deviation of x. By Pythagoras the standard deviation of y is
    ``hypot(along, across)``, ``r = along / hypot(along, across)``, and ``W2 = across * sqrt(2 / (1 + r))``: nothing
    is subtracted, so nothing cancels. The two functions below only have to find ``along`` and ``across``.

ReLU, LeakyReLU and hardtanh are one family: ``y = slope * x + (1 - slope) * clip(x, low, high)``.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 3 and Appendix A.2 (ReLU with
uniform input). The theorem and the other closed forms are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from affscore.arguments import check_choice
from affscore.arrays import is_tensor, to_numpy

__all__ = ["PIECEWISE_LINEAR", "Affinity", "gaussian_input", "monotone_score", "uniform_input"]

Array = NDArray[np.float64]

PIECEWISE_LINEAR = ("relu", "leaky_relu", "hardtanh")

# Stands in for smaller standard deviations (in units of that of x): ratios stay defined where numbers underflow.
_SMALL = 1e-290
_NODES, _WEIGHTS = (v / 2 for v in np.polynomial.legendre.leggauss(40))
_NODES = _NODES + 0.5  # Gauss-Legendre on [0, 1]


@dataclass(frozen=True)
class Affinity:
    """The score and what it is made of; float64 arrays of one shape.

    Attributes
    ----------
    score
        ``1 - w2 / bound``, in [0, 1]; NaN where the output is constant.
    deficit
        ``1 - score``, accurate also where the score rounds to 1.
    correlation
        Pearson correlation of input and output; NaN where the output is constant.
    w2
        The 2-Wasserstein distance between the affine image of the input and the output, in units of the output.
    bound
        ``sqrt(2 Var y)``, the largest it can be (Proposition 3.5).
    """

    score: Array
    deficit: Array
    correlation: Array
    w2: Array
    bound: Array


def monotone_score(x: ArrayLike, y: ArrayLike) -> np.float64:
    """The 1-D affinity score of samples by sorting, without any transport solver.

    With both samples sorted and standardised, ``1 - r = mean((x - y)^2) / 2`` holds exactly, so no digits are lost
    near a score of 1. Equal to ``affinity_score(x, y, covariance="empirical")``.

    Parameters
    ----------
    x, y
        Arrays or tensors of shape (n,), n >= 2, finite; ``x`` not constant.

    Returns
    -------
    numpy.float64
        NaN where ``y`` is constant.

    Raises
    ------
    ValueError
        If a shape is wrong, a value is not finite, or ``x`` is constant.

    >>> x = np.linspace(-1, 1, 101)                                             # (101,)
    >>> round(monotone_score(x, x**3).item(), 3)
    0.711
    """
    x, y = _numbers(x, "x"), _numbers(y, "y")
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError(
            f"x and y have shapes {tuple(x.shape)} and {tuple(y.shape)}; both should be (n,) with the same n >= 2."
        )
    x, y = np.sort(x), np.sort(y)
    if x[0] == x[-1]:
        raise ValueError(f"x is constant, all values are {x[0].item()}; it should vary.")
    if y[0] == y[-1]:
        return np.float64(math.nan)
    gap = (x - x.mean()) / x.std() - (y - y.mean()) / y.std()
    return np.float64(1 - math.sqrt(np.square(gap).mean() / 2))


def uniform_input(
    a: Any, b: Any, activation: str = "relu", *, slope: Any = 0.01, low: Any = -1.0, high: Any = 1.0
) -> Affinity:
    """Exact affinity score of an activation for an input that is uniform on [a, b] (Appendix A.2).

    Parameters
    ----------
    a, b
        Ends of the range, finite, ``a < b``.
    activation
        ``"relu"``; ``"leaky_relu"``, which multiplies negative inputs by ``slope`` in [0, 1]; or ``"hardtanh"``, which
        clips to ``[low, high]``.

    All arguments but ``activation`` are numbers, arrays or tensors that broadcast.

    Returns
    -------
    Affinity
        Score, correlation, numerator and denominator, each a float64 array of the broadcast shape. A range on which
        the activation is linear scores exactly 1, one on which it is constant NaN.

    Raises
    ------
    ValueError
        If an argument is not finite or out of its range, or ``activation`` is unknown.

    >>> uniform_input([-1.0, 0.0, -2.0], [1.0, 2.0, 0.0]).score.round(4)        # (3,)
    array([0.6751, 1.    ,    nan])
    """
    a, b, slope, low, high = _arguments(activation, a=a, b=b, slope=slope, low=low, high=high)
    _require(a < b, a, "a", "below b")
    with np.errstate(over="ignore"):
        width = b - a
    _require(np.isfinite(width), b, "b", "so close to a that b - a is finite")
    # The shares of the input below low, above high, and between.
    below = ((low - a) / width).clip(0, 1)
    above = ((b - high) / width).clip(0, 1)
    within = (np.minimum(b, high) - np.maximum(a, low)).clip(min=0) / width
    outside = below + above
    along = 6 * below * above + within * (3 * outside + within)
    square = ((below - above) ** 2 + below * above) * (within * outside + 3 * below * above)
    return _affinity(width / math.sqrt(12), slope, within, along, 2 * np.sqrt(square.clip(min=0)))


def gaussian_input(
    mean: Any, std: Any, activation: str = "relu", *, slope: Any = 0.01, low: Any = -1.0, high: Any = 1.0
) -> Affinity:
    """Exact affinity score of an activation for an input from N(mean, std^2).

    Parameters
    ----------
    mean, std
        Finite, ``std > 0``.
    activation, slope, low, high
        As in :func:`uniform_input`; all but ``activation`` are numbers, arrays or tensors that broadcast.

    Returns
    -------
    Affinity
        As :func:`uniform_input`. A Gaussian output is never constant, so no score is NaN: far in the dead range it
        becomes tiny, and 0 where it leaves the range of float64. Up to 51 standard deviations into the dead range all
        fields are exact to a relative error of 1e-10; beyond, ``w2`` and ``bound`` are only known to be below 1e-290
        standard deviations.

    Raises
    ------
    ValueError
        If an argument is not finite or out of its range, or ``activation`` is unknown.

    >>> [f"{score:.4e}" for score in gaussian_input([0.0, -30.0], 1.0).score]
    ['6.2109e-01', '2.3560e-98']
    """
    mean, std, slope, low, high = _arguments(activation, mean=mean, std=std, slope=slope, low=low, high=high)
    _require(std > 0, std, "std", "above 0")
    # The clip acts on a standard normal z. From the point of [low, high] that is nearest to 0 it reaches `up` and
    # `down`; at most one of the two is positive where that point is not 0.
    low, high, width = (low - mean) / std, (high - mean) / std, (high - low) / std
    near = np.maximum(low, -high).clip(0, 1e3)
    up = _moments(near, np.where(low >= 0, width, high))
    down = _moments(near, np.where(high <= 0, width, -low))
    root = _root_density(near)
    along = up[0] + down[0]
    across = _residual(root, along, up[1] - down[1], up[2] + down[2])
    # Where most of the mass lies between low and high, that residual cancels. What the clip cuts off, z - clip(z),
    # has the same residual but for the sign, and does not cancel.
    start = np.minimum(-low, high).clip(0, 1e3)
    cut = [_moments(end.clip(0, 1e3), np.full_like(end, math.inf), start) for end in (high, -low)]
    root_cut = _root_density(start)
    across_cut = _residual(root_cut, *(u + sign * d for u, d, sign in zip(*cut, (1, -1, 1), strict=True)))
    mostly_within = root**2 * along > 0.5
    across = np.where(mostly_within, root_cut * across_cut / np.where(mostly_within, root, 1.0), across)
    return _affinity(std, slope, root, root * along, across)


def _moments(start: Array, width: Array, scale_at: Array | None = None) -> tuple[Array, Array, Array]:
    """Moments of v = clip(z - start, 0, width), z ~ N(0, 1), start >= 0: P(0 < v < width), E v, E v^2.

    All are divided by the normal density at ``scale_at`` (default ``start``). The closed forms in the density and
    the distribution function cancel in the tail (by start^4 for E v^2); the integrals of the positive functions
    v^k exp(-start v - v^2 / 2) do not, and 40 Gauss-Legendre points give them to rounding error.
    """
    width = width.clip(0, 100)
    unscale = 1.0 if scale_at is None else np.exp((scale_at - start) * (scale_at + start) / 2)
    inside = [_integral(start, width, k) for k in (0, 1, 2)]
    top = np.exp(-width * (start + width / 2)) * _integral(start + width, np.full_like(width, math.inf), 0)
    return unscale * inside[0], unscale * (inside[1] + width * top), unscale * (inside[2] + width**2 * top)


def _integral(start: Array, width: Array, power: int) -> Array:
    """Integral of v^power exp(-start v - v^2 / 2) over [0, width]; beyond a fall by e^-40 nothing counts."""
    end = np.minimum(width, 80 / (np.sqrt(start**2 + 80) + start))[..., None]
    v = end * _NODES
    return (_WEIGHTS * end * v**power * np.exp(-v * (start[..., None] + v / 2))).sum(-1)


def _residual(root: Array, inside: Array, first: Array, second: Array) -> Array:
    """Standard deviation left by a regression on z, over ``root``, from moments that are over ``root ** 2``."""
    return np.sqrt((second - root**2 * (first**2 + inside**2)).clip(min=0))


def _root_density(z: Array) -> Array:
    """Square root of the standard normal density."""
    return np.exp(-(z**2) / 4) / (2 * math.pi) ** 0.25


def _affinity(std_x: Array, slope: Array, unit: Array, along: Array, across: Array) -> Affinity:
    """Put the score together from the regression of the clipped x on x, ``unit * (along, across)``."""
    unit = (1 - slope) * unit.clip(min=_SMALL)
    both, across = slope + unit * along, unit * across
    length = np.hypot(both, across)  # 0 where the output is constant: then r is 0 / 0
    # Not both / length: unit * along underflows where it matters.
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (slope / length + unit / length * along).clip(max=1)
        deficit = across / (length * np.sqrt(1 + r))
    score = np.where(deficit < 0.5, 1 - deficit, r / (1 + deficit))
    scale = math.sqrt(2) * std_x
    w2 = np.where(length > 0, scale * across / np.sqrt(1 + r), 0.0)
    return Affinity(*(value[()] for value in map(np.asarray, (score, deficit, r, w2, scale * length))))


def _arguments(activation: str, **arguments: Any) -> tuple[Array, ...]:
    """The checked arguments, broadcast; slope, low, high say slope * x + (1 - slope) * clip(x, low, high)."""
    check_choice("activation", activation, PIECEWISE_LINEAR)
    if activation != "leaky_relu":
        arguments["slope"] = 0.0
    if activation != "hardtanh":
        arguments["low"] = arguments["high"] = 0.0
    numbers = {name: _numbers(value, name) for name, value in arguments.items()}
    *law, slope, low, high = np.broadcast_arrays(*numbers.values())
    _require((slope >= 0) & (slope <= 1), slope, "slope", "in [0, 1]")
    if activation == "hardtanh":
        _require(low < high, low, "low", "below high")
    else:
        high = np.full_like(high, math.inf)
    return (*law, slope, low, high)


def _numbers(value: Any, name: str) -> Array:
    array = np.asarray(to_numpy(value) if is_tensor(value) else value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} has dtype {array.dtype}; it should hold real numbers.")
    array = array.astype(np.float64)
    _require(np.isfinite(array), array, name, "finite")
    return array


def _require(holds: Any, value: Array, name: str, should: str) -> None:
    if not np.all(holds):
        raise ValueError(f"{name} is {value[~np.asarray(holds)].ravel()[0]}; it should be {should}.")
