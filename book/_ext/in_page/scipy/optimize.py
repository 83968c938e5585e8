"""The assignment problem, solved by the JavaScript of the book's widgets (``affscore_book/kit/assignment.js``)."""

from __future__ import annotations

import numpy as np
from affscore_in_page import assignment
from numpy.typing import ArrayLike, NDArray

__all__ = ["linear_sum_assignment"]


def linear_sum_assignment(cost_matrix: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows 0 to n - 1, and the column of each in the cheapest assignment of a square matrix of costs, (n, n)."""
    cost = np.ascontiguousarray(cost_matrix, dtype=np.float64)
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1]:
        raise ValueError(f"cost_matrix has shape {cost.shape}; in the page it should be square.")
    if not np.isfinite(cost).all():
        raise ValueError("cost_matrix holds values that are not finite; it should hold numbers.")
    columns = assignment(cost.ravel(), len(cost))
    return np.arange(len(cost)), np.asarray(columns, dtype=np.intp)
