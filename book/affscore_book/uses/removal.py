"""Make a quarter of the calls affine: which order keeps the accuracy? (experiment E2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from affscore_book.kit.statistics import Interval, leaving_out
from affscore_book.uses.replacing import calls_of, fit_lines, run_replaced

__all__ = ["RANDOM", "REMOVAL_ORDERS", "REMOVED_SHARES", "area", "area_of", "draws_of", "lead", "mean_over_families",
           "order_of", "remove", "removed_at", "same_calls"]  # fmt: skip

#: Shares of the calls that are made affine.
REMOVED_SHARES = (0.10, 0.25, 0.50)
RANDOM = 5
#: By name, what is made affine first: the calls in which this is small.
REMOVAL_ORDERS = {
    "score": lambda call: 1 - call["score"],
    "paired R²": lambda call: 1 - call["r2"],
    "sign entropy": lambda call: call["sign_entropy"],
    "latest first": lambda call: -call["position"],
    "true costs": lambda call: call["kl"],
}
ALL_ORDERS = (*REMOVAL_ORDERS, *(f"random {draw}" for draw in range(RANDOM)))


def removed_at(calls: int) -> list[int]:
    """How many of the calls each share of :data:`REMOVED_SHARES` is, at least one.

    >>> removed_at(13)
    [1, 3, 7]
    """
    return [max(1, math.floor(share * calls + 0.5)) for share in REMOVED_SHARES]


def order_of(name: str, calls: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of the calls in :func:`affscore_study.uses.costs.measure_costs` in the order in which they go.

    ``name`` is one of :data:`REMOVAL_ORDERS`, or ``"random 3"`` for the third shuffle.

    >>> order_of("latest first", [{"position": 0}, {"position": 1}])
    [1, 0]
    """
    if name.startswith("random "):
        return np.random.default_rng(int(name.removeprefix("random "))).permutation(len(calls)).tolist()
    return sorted(range(len(calls)), key=lambda at: (REMOVAL_ORDERS[name](calls[at]), at))


def remove(
    network: nn.Module,
    costs: Sequence[Mapping[str, Any]],
    fitted: Tensor,
    held_out: Tensor,
    labels: Tensor,
    names: Sequence[str] = ALL_ORDERS,
    counts: Sequence[int] | None = None,
) -> dict[str, list[float]]:
    """Accuracy with so many calls made affine, by the name of the order; lines are fitted one after another.

    Parameters
    ----------
    costs
        The calls of :func:`affscore_study.uses.costs.measure_costs`, of the same network.
    fitted, held_out, labels
        As there.
    counts
        How many calls go; those of :func:`removed_at` by default.
    """
    calls = calls_of(network, fitted[:4])
    found: dict[str, list[float]] = {}
    for name in names:
        order = order_of(name, costs)
        found[name] = []
        for count in removed_at(len(costs)) if counts is None else counts:
            gone = [costs[at]["position"] for at in order[:count]]
            lines = fit_lines(network, fitted, calls, gone) if gone else {}
            logits = run_replaced(network, held_out, lines)
            found[name].append(float((logits.argmax(1) == labels).double().mean()))
    return found


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


def lead(networks: Sequence[Mapping[str, Any]], families: Sequence[str], one: str, other: str) -> Interval:
    """Mean lead of an order over another in :func:`area`, in points; families left out one at a time, each counts once.

    ``"random"`` is the mean over its draws.
    """
    gaps, kinds = np.array([area_of(each, one) - area_of(each, other) for each in networks]), np.array(families)
    return leaving_out(lambda kept: float(mean_over_families(gaps[kept], kinds[kept])), len(gaps), families)


def same_calls(network: Mapping[str, Any], one: str, other: str) -> bool:
    """Whether two orders take out the very same calls at each of :data:`REMOVED_SHARES`; then their lead is 0."""
    first, second = (order_of(name, network["calls"]) for name in (one, other))
    return all(set(first[:count]) == set(second[:count]) for count in removed_at(len(network["calls"])))


def area_of(network: Mapping[str, Any], order: str) -> float:
    """The area of one stored network under one order."""
    calls = len(network["calls"])
    return float(np.mean([area(network["whole"], found, calls) for found in draws_of(network, order)]))
