"""Arguments that make no sense, refused with the name of the argument and what it should have been."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any

from torch import Tensor

__all__ = ["between", "one_of", "positive", "square_matrix", "whole"]


def one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is among the allowed ones.

    >>> one_of("stage", "later", ("before", "after"))
    Traceback (most recent call last):
    ...
    ValueError: stage is 'later'; it should be one of 'before', 'after'.
    """
    allowed = list(allowed)
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; it should be one of {', '.join(map(repr, allowed))}.")


def whole(name: str, value: Any, least: int) -> None:
    """Raise ValueError unless ``value`` is a whole number, and no less than ``least``.

    >>> whole("draws", 0, 1)
    Traceback (most recent call last):
    ...
    ValueError: draws is 0; it should be at least 1.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; it should be a whole number.")
    if value < least:
        raise ValueError(f"{name} is {value}; it should be at least {least}.")


def between(name: str, value: float, low: float, high: float) -> None:
    """Raise ValueError unless ``low < value < high``; NaN is not."""
    if not low < value < high:
        raise ValueError(f"{name} is {value}; it should be between {low:g} and {high:g}.")


def positive(name: str, value: float) -> None:
    """Raise ValueError unless ``value`` is a finite number above 0."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is {value}; it should be a finite number greater than 0.")


def square_matrix(name: str, value: Any) -> Tensor:
    """``value`` without its graph, if it is a square matrix of finite floating-point numbers.

    Raises
    ------
    TypeError
        If it is not a real tensor of floating point.
    ValueError
        If it is not square, is empty, or holds NaN or infinity.
    """
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"{name} is of type {kind}; it should be a real floating-point tensor.")
    if value.ndim != 2 or value.shape[0] != value.shape[1] or not len(value):
        raise ValueError(f"{name} has shape {tuple(value.shape)}; it should be (n, n) with n of at least 1.")
    if not bool(value.isfinite().all()):
        raise ValueError(f"{name} holds {value[~value.isfinite()][0].item()}; all entries should be finite.")
    return value.detach()
