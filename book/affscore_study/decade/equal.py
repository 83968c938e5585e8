"""Scores with equally many numbers a call: some random channels of each, or one random position a channel of a map.

A score falls or rises with the number of channels, and architectures differ in theirs.
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
    """Scores of each call with ``channels`` random channels, averages over space, (draws, calls); NaN where dead."""
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
    """Scores of feature maps of which each channel is seen at one random position, means over the draws; by module.

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
