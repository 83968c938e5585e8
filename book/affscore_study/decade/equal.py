"""Scores from equally many numbers in each call: some random channels, or one random position of each channel of a map.

This is a control, because a score depends on the number of channels, and architectures differ in that number.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from affscore.forward import evaluating
from affscore.score import affinity_score
from affscore.tracing import trace
from affscore_book.decade.equal import DRAWS
from affscore_study.decade.maps import scored_maps

__all__ = ["few_channels", "one_position"]


@torch.no_grad()
def few_channels(network: nn.Module, images: Tensor, channels: int) -> np.ndarray:
    """The scores of each call with ``channels`` random channels, averaged over space; NaN for a dead call.

    Returns a float64 array of shape (draws, calls).
    """
    with evaluating(network), trace(network, batch=len(images)) as found:
        network(images)
    rows = np.full((DRAWS, len(found.observations)), math.nan)
    for draw, at in np.ndindex(rows.shape):
        seen = found.observations[at]
        order = np.random.default_rng((draw, at)).permutation(seen.before.shape[1])
        some = torch.from_numpy(order[:channels])
        pair = (each[:, some].double() for each in (seen.before, seen.after))
        rows[draw, at] = affinity_score(*pair, covariance="ledoit_wolf").item()
    return rows


def one_position(network: nn.Module, images: Tensor) -> dict[str, float]:
    """The scores of feature maps with each channel at one random position, by module, as means over the draws.

    There are as many numbers as in the map that is averaged over all positions. The networks and the maps are those of
    :func:`affscore_study.decade.maps.scored_maps`.
    """
    found = {}
    for at, (name, maps) in enumerate(scored_maps(network, images).items()):
        before, after = (each.double().flatten(2) for each in maps)
        scores = []
        for draw in range(DRAWS):
            places = np.random.default_rng((draw, at)).integers(before.shape[2], size=before.shape[1])
            taken = (each[:, range(each.shape[1]), places] for each in (before, after))
            scores.append(affinity_score(*taken).item())
        found[name] = float(np.mean(scores))
    return found
