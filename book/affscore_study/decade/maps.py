"""What averaging over positions does to the score of real feature maps, and to the clouds that it compares.

Figure 9 of the source asks the first of independent normal numbers; here the maps are those of trained networks.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.affine import affine_map
from affscore.forward import evaluating
from affscore.score import affinity_score
from affscore.tracing import trace
from affscore_book.kit.features import Feature, features

__all__ = ["SIDES", "Clouds", "clouds_of_call", "map_scores", "scored_maps"]

#: Each map is averaged to as many positions along each side; None keeps all of them.
SIDES = (1, 2, 4, None)
KINDS = (nn.ReLU, nn.ReLU6, nn.GELU, nn.Hardswish, nn.SiLU)
#: How many images a cloud shows.
SHOWN = 48


def _averaged(maps: Tensor, side: int | None) -> Tensor:
    """(n, channels, height, width) to (n, channels * side * side), float64."""
    maps = maps.double()
    return (maps if side is None else functional.adaptive_avg_pool2d(maps, side)).flatten(1)


@torch.no_grad()
def scored_maps(network: nn.Module, images: Tensor) -> dict[str, Feature]:
    """What activations take and give that are feature maps of more than one position, by the name of their module.

    Parameters
    ----------
    network
        Its activations are modules, each run once for an image; it is left as it was.
    images
        (n, channels, height, width), n of 2 or more.

    Raises
    ------
    ValueError
        If a module runs twice.
    """
    network = copy.deepcopy(network)
    modules = {name: module for name, module in network.named_modules() if isinstance(module, KINDS)}
    for module in modules.values():
        if not isinstance(module, nn.GELU):
            module.inplace = False  # or the input would be gone
    with evaluating(network), features(network, modules) as seen:
        network(images)
    return {name: maps for name, maps in seen.items() if maps.input.ndim == 4 and maps.input.shape[-1] > 1}


def map_scores(network: nn.Module, images: Tensor) -> dict[str, dict[int | None, float]]:
    """Scores of :func:`scored_maps` averaged to :data:`SIDES`, but not where a side has more positions than the map."""
    return {
        name: {
            side: affinity_score(*(_averaged(each, side) for each in maps)).item()
            for side in SIDES if side is None or side <= maps.input.shape[-1]
        }
        for name, maps in scored_maps(network, images).items()
    }  # fmt: skip


class Clouds(NamedTuple):
    """Two clouds of one call in the plane, each (points, 2): outputs, and the best affine image of the inputs."""

    outputs: np.ndarray
    image: np.ndarray


@torch.no_grad()
def clouds_of_call(network: nn.Module, images: Tensor, call: int) -> Clouds:
    """The two clouds that the score of a call compares, as seen along the two widest directions of the outputs.

    The unit of both axes is the root of the trace of the outputs' covariance. The first
    :data:`SHOWN` images are shown; map and directions are of all. Of each direction the end with the larger third
    power is drawn to the right, or up. A dead call has points at 0.

    Raises
    ------
    IndexError
        If there is no such call.
    """
    with evaluating(network), trace(network, batch=len(images)) as found:
        network(images)
    observation = found.observations[call]
    before, after = observation.before.double(), observation.after.double()
    moved = affine_map(before, after)(before) - after.mean(dim=0)
    after = after - after.mean(dim=0)
    spread = after.square().sum(dim=1).mean().sqrt()
    if not spread:
        return Clouds(*np.zeros((2, SHOWN, 2)))
    directions = torch.linalg.svd(after, full_matrices=False).Vh[:2]
    seen = after @ directions.T
    directions = directions * torch.where(seen.pow(3).sum(dim=0) < 0, -1.0, 1.0)[:, None]
    outputs, image = ((cloud[:SHOWN] @ directions.T / spread).numpy() for cloud in (after, moved))
    return Clouds(outputs, image)
