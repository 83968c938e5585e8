"""Procrustes similarities of many pairs of networks, from one product of features for each pair and order.

:func:`affscore_book.similarity.procrustes.procrustes` normalises both features for each measure and pair. For the 120
pairs of sixteen networks that would take hours. The distance after the best map depends on the product ``X^T Y`` and
on the norms of the channels alone, whether features are centred or not, so here each network is read once.

The definitions and their source are in that module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from affscore_book.similarity.channels import as_samples, unit_live_channels
from affscore_book.similarity.procrustes import best_matching, best_rotation, from_gain
from affscore_book.similarity.results import random_orders

__all__ = ["Layer", "layer_of", "pair_similarities"]


class Layer(NamedTuple):
    """The features of a network at a layer: of each image (n, pixels, C) float64, the means (C,), and for centred and
    for raw features the squared norms of the channels (C,) and which channels are live, bool (C,).
    """

    images: Tensor
    means: Tensor
    norms: dict[bool, Tensor]
    live: dict[bool, Tensor]


def layer_of(features: Tensor) -> Layer:
    """What :func:`pair_similarities` needs of features (n, C) or (n, C, H, W). Raises ValueError as procrustes does."""
    samples = as_samples(features).double()
    means = samples.mean(0)
    norms = {True: (samples - means).square().sum(0), False: samples.square().sum(0)}
    live = {centred: unit_live_channels(features, "features", centred)[1] for centred in (True, False)}
    return Layer(samples.reshape(len(features), -1, samples.shape[1]), means, norms, live)


def pair_similarities(x: Layer, y: Layer, measures: list[str], null: int) -> dict[str, list[float]]:
    """For each measure the similarity, and its mean over ``null`` random orders of the images of ``y``.

    A measure is ``"relu"`` or ``"orthogonal"``, and with ``"_uncentred"`` behind it of features that are not centred.
    All are equal to those of :func:`affscore_book.similarity.procrustes.procrustes` to rounding.
    """
    flat = x.images.flatten(0, 1)
    orders = [None, *random_orders(len(y.images), null, y.images.device)]
    products = [flat.T @ (y.images if order is None else y.images[order]).flatten(0, 1) for order in orders]
    means = len(flat) * x.means[:, None] * y.means
    found = {}
    for measure in measures:
        group, _, uncentred = measure.partition("_")
        values = [_similarity(product, means, x, y, group, not uncentred) for product in products]
        found[measure] = [values[0], float(np.mean(values[1:]))]
    return found


def _similarity(product: Tensor, means: Tensor, x: Layer, y: Layer, group: str, centred: bool) -> float:
    """One minus half the distance after the best map of the group."""
    cross = product - means if centred else product
    own_x, own_y = x.norms[centred], y.norms[centred]
    if group == "orthogonal":
        return from_gain(best_rotation(cross / (own_x.sum() * own_y.sum()).sqrt())[0], 2.0)
    unit = (cross / (own_x[:, None] * own_y).sqrt())[x.live[centred]][:, y.live[centred]]
    return from_gain(best_matching(unit)[0], sum(unit.shape))
