"""Exact optimal transport between two clouds of n samples with equal weights, which is an assignment problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from affscore.arrays import constant_of, is_tensor, namespace, to_numpy

__all__ = ["partners"]


def partners(source: Any, target: Any) -> Any:
    """The optimal assignment: target[result[i]] is the partner of source[i].

    The result has shape (n,), and is a tensor if ``source`` is.
    """
    source, target = constant_of(source), constant_of(target)
    xp = namespace(source)
    if source.shape[1] == 1:
        partner = xp.empty_like(source[:, 0], dtype=xp.int64)
        partner[xp.argsort(source[:, 0])] = xp.argsort(target[:, 0])
        return partner
    found = optimal_partners(to_numpy(squared_distances(source, target)))
    return xp.from_numpy(found).to(source.device) if is_tensor(source) else found


def squared_distances(source: Any, target: Any) -> Any:
    """All pairwise squared distances, (n, n); rounding can make one slightly negative."""
    xp = namespace(source)
    cost = source @ (-2 * target.T)
    cost += xp.square(source).sum(axis=1)[:, None]
    cost += xp.square(target).sum(axis=1)
    return cost


def optimal_partners(cost: np.ndarray) -> np.ndarray:
    """The column assigned to each row at minimal total cost. Overwrites ``cost``."""
    nearest = cost.argmin(axis=1)
    # If the cheapest columns of the rows all differ, they are optimal.
    if len(np.unique(nearest)) == len(nearest):
        return nearest
    from scipy.optimize import linear_sum_assignment  # takes half a second to import

    # Subtracting potentials keeps the optimum and speeds the solver up, most of all near the identity.
    cost -= cost.min(axis=0)
    cost -= cost.min(axis=1, keepdims=True)
    return linear_sum_assignment(cost)[1]
