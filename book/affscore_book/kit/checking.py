"""Refuses invalid arguments, as :mod:`affscore.arguments` does for whole numbers and choices."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

__all__ = ["positive", "square_matrix"]


def positive(name: str, value: float) -> None:
    """Raise ValueError unless ``value`` is a finite number above 0."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is {value}; it should be a finite number greater than 0.")


def square_matrix(name: str, value: Any) -> Tensor:
    """``value`` without its graph, if it is a square matrix of finite floating-point numbers.

    Raises
    ------
    TypeError
        If it is not a real floating-point tensor.
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
