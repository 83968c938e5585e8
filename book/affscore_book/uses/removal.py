"""Orders in which calls are made affine, and how much accuracy is left on the way (experiment E2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["REMOVAL_ORDERS", "REMOVED_SHARES", "area", "area_of", "draws_of", "mean_over_families", "removed_at"]

#: Shares of the calls that are made affine.
REMOVED_SHARES = (0.10, 0.25, 0.50)
#: By name, what is made affine first: the calls in which this is small.
REMOVAL_ORDERS = {
    "score": lambda call: 1 - call["score"],
    "paired R²": lambda call: 1 - call["r2"],
    "sign entropy": lambda call: call["sign_entropy"],
    "latest first": lambda call: -call["position"],
    "true costs": lambda call: call["kl"],
}


def removed_at(calls: int) -> list[int]:
    """How many of the calls each share of :data:`REMOVED_SHARES` is, at least one.

    >>> removed_at(13)
    [1, 3, 7]
    """
    return [max(1, math.floor(share * calls + 0.5)) for share in REMOVED_SHARES]


def area(whole: float, accuracies: Sequence[float], calls: int) -> float:
    """Mean accuracy along the way from no call to half of them, in points; straight lines between what was measured.

    >>> area(0.9, [0.9, 0.8, 0.5], 20)                                              # 2, 5, 10 of 20 calls
    76.0
    """
    x = np.array([0, *removed_at(calls)], dtype=np.float64)
    return round(float(np.trapezoid([whole, *accuracies], x) / x[-1] * 100), 10)


def mean_over_families(values: ArrayLike, families: Sequence[str] | np.ndarray) -> np.ndarray:
    """Mean along the first axis of numbers of networks, (networks, ...), in which each family counts once."""
    table, kinds = np.asarray(values), np.asarray(families)
    return np.mean([table[kinds == kind].mean(axis=0) for kind in np.unique(kinds)], axis=0)


def draws_of(network: Mapping[str, Any], order: str) -> list[list[float]]:
    """The accuracies of one stored network under one order, a list a draw; only ``"random"`` has several."""
    return [found for name, found in network["removal"].items() if order in (name, name.split(" ")[0])]


def area_of(network: Mapping[str, Any], order: str) -> float:
    """The area of one stored network under one order."""
    calls = len(network["calls"])
    return float(np.mean([area(network["whole"], found, calls) for found in draws_of(network, order)]))
