"""The best pair of layers of two networks, and the distribution of the best pair if the networks are unrelated.

Reference: Gröger, Wen, Brbić, "Revisiting the Platonic Representation Hypothesis: An Aristotelian View", ICML 2026,
algorithm 2, which uses one order of the images for all layers, and the maximum over all pairs of layers for each order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from affscore.arguments import whole_number
from affscore_book.similarity.kernels import centred_gram, cka_map

__all__ = ["BestPair", "best_pair"]


class BestPair(NamedTuple):
    """The largest CKA of any pair of layers, and its null.

    Attributes
    ----------
    value
        The largest CKA of all pairs.
    threshold
        The 95 % quantile of the largest CKA over random orders of the second network's images and the true order.
    single
        The median over all pairs of the same quantile for one pair, which does not allow for the search.
    """

    value: float
    threshold: float
    single: float


def best_pair(grams_x: Sequence[Any], grams_y: Sequence[Any], *, orders: int = 199, seed: int = 0) -> BestPair:
    """The best pair of layers of two networks, with a threshold that allows for the search among all pairs.

    Parameters
    ----------
    grams_x, grams_y
        As in :func:`affscore_book.similarity.kernels.cka_map`, a Gram matrix (n, n) of the same samples for each layer.
    orders, seed
        The number of random orders of the samples, and the seed of their draw.

    Raises
    ------
    ValueError
        As :func:`~affscore_book.similarity.kernels.cka_map`, or if ``orders`` is below 19, too few for 95 %.

    >>> from affscore_book.similarity.kernels import gram
    >>> features = torch.randn(2, 3, 30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> x, y = ([gram(layer, "linear") for layer in network] for network in features)
    >>> found = best_pair(x, y)
    >>> found.single < found.threshold, found.value > found.threshold, best_pair(x, x).value > found.threshold
    (True, False, True)
    """
    whole_number("orders", orders, 19)
    maps = [cka_map(grams_x, grams_y)]
    x, y = (torch.stack([centred_gram(torch.as_tensor(k).double()) for k in grams]) for grams in (grams_x, grams_y))
    x, y = (tables / torch.linalg.matrix_norm(tables)[:, None, None] for tables in (x, y))
    random = np.random.default_rng(seed)
    for _ in range(orders):
        order = torch.from_numpy(random.permutation(len(grams_y[0])))
        maps.append((x.flatten(1) @ y[:, order][:, :, order].flatten(1).T).cpu().numpy())
    values = np.array(maps)
    at = math.ceil(0.95 * (orders + 1)) - 1
    largest = values.max(axis=(1, 2))
    return BestPair(
        float(largest[0]),
        float(np.sort(largest)[at]),
        float(np.median(np.sort(values, axis=0)[at])),
    )
