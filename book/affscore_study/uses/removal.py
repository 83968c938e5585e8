"""The removal of calls, which are made affine in different orders, and the leads between orders (experiment E2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from affscore_book.kit.statistics import Interval, leaving_out
from affscore_book.uses.removal import REMOVAL_ORDERS, area_of, mean_over_families, removed_at
from affscore_book.uses.replacing import calls_of, fit_lines, run_replaced

__all__ = ["RANDOM", "lead", "order_of", "remove", "same_calls"]

#: The number of random orders.
RANDOM = 5
ALL_ORDERS = (*REMOVAL_ORDERS, *(f"random {draw}" for draw in range(RANDOM)))


def order_of(name: str, calls: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places of the calls of :func:`affscore_study.uses.costs.measure_costs` in the order of their removal.

    ``name`` is one of :data:`REMOVAL_ORDERS`, or for instance ``"random 3"`` for the shuffle with seed 3.

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
    """The accuracies with increasing numbers of calls made affine, by the name of the order.

    The lines of a removal are fitted one after another.

    Parameters
    ----------
    costs
        The calls of :func:`affscore_study.uses.costs.measure_costs`, of the same network.
    fitted, held_out, labels
        As in :func:`affscore_study.uses.costs.measure_costs`.
    counts
        The numbers of removed calls, by default those of :func:`removed_at`.
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


def lead(networks: Sequence[Mapping[str, Any]], families: Sequence[str], one: str, other: str) -> Interval:
    """The mean lead of an order over another in :func:`area`, in points, with equal weights of the families.

    The interval leaves out one family at a time. ``"random"`` is the mean over its draws.
    """
    gaps, kinds = np.array([area_of(each, one) - area_of(each, other) for each in networks]), np.array(families)
    return leaving_out(lambda kept: float(mean_over_families(gaps[kept], kinds[kept])), len(gaps), families)


def same_calls(network: Mapping[str, Any], one: str, other: str) -> bool:
    """Whether two orders take out the same calls at each of :data:`REMOVED_SHARES`, so that their lead is 0."""
    first, second = (order_of(name, network["calls"]) for name in (one, other))
    return all(set(first[:count]) == set(second[:count]) for count in removed_at(len(network["calls"])))
