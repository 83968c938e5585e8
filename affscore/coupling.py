"""Exact optimal transport between two clouds of n samples with equal weights: an assignment."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

__all__ = ["partners"]


def partners(source: Tensor, target: Tensor) -> Tensor:
    """The optimal assignment: target[result[i]] is the partner of source[i]."""
    with torch.no_grad():
        if source.shape[1] == 1:
            partner = torch.empty(source.shape[0], dtype=torch.long, device=source.device)
            partner[source[:, 0].argsort()] = target[:, 0].argsort()
            return partner
        return torch.from_numpy(optimal_partners(squared_distances(source, target).cpu().numpy())).to(source.device)


def squared_distances(source: Tensor, target: Tensor) -> Tensor:
    """All pairwise squared distances, (n, n); rounding can make one slightly negative."""
    return source.square().sum(1)[:, None] + target.square().sum(1) - 2 * source @ target.T


def optimal_partners(cost: np.ndarray) -> np.ndarray:
    """The column assigned to each row at minimal total cost. Overwrites ``cost``."""
    nearest = cost.argmin(axis=1)
    # If the rows' cheapest columns are all different, nothing can be cheaper.
    if len(np.unique(nearest)) == len(nearest):
        return nearest
    # Subtracting potentials keeps the optimum and gives the solver a head start, most of all near the identity.
    cost -= cost.min(axis=0)
    cost -= cost.min(axis=1, keepdims=True)
    return linear_sum_assignment(cost)[1]
