"""The effect of averaging over positions on the score of feature maps, and the two clouds that a score compares.

Figure 9 of the source averages independent normal numbers; here the maps come from trained networks.
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

#: The numbers of positions along each side to which a map is averaged; None keeps all positions.
SIDES = (1, 2, 4, None)
KINDS = (nn.ReLU, nn.ReLU6, nn.GELU, nn.Hardswish, nn.SiLU)
#: The number of images that a cloud shows.
SHOWN = 48


def _averaged(maps: Tensor, side: int | None) -> Tensor:
    """Maps of shape (n, channels, height, width), averaged to (n, channels * side * side), float64.

    If ``side`` is None, they are flattened to (n, channels * height * width).
    """
    maps = maps.double()
    return (maps if side is None else functional.adaptive_avg_pool2d(maps, side)).flatten(1)


@torch.no_grad()
def scored_maps(network: nn.Module, images: Tensor) -> dict[str, Feature]:
    """The inputs and outputs of activations that are feature maps with more than one position, by module name.

    Parameters
    ----------
    network
        Its activations must be modules that run once for an image. The function runs a copy of it.
    images
        Shape (n, channels, height, width), with n at least 2.

    Raises
    ------
    ValueError
        If a module runs twice.
    """
    network = copy.deepcopy(network)
    modules = {name: module for name, module in network.named_modules() if isinstance(module, KINDS)}
    for module in modules.values():
        if not isinstance(module, nn.GELU):
            module.inplace = False  # otherwise the output would replace the input
    with evaluating(network), features(network, modules) as seen:
        network(images)
    return {name: maps for name, maps in seen.items() if maps.input.ndim == 4 and maps.input.shape[-1] > 1}


def map_scores(network: nn.Module, images: Tensor) -> dict[str, dict[int | None, float]]:
    """The scores of :func:`scored_maps`, averaged to each of :data:`SIDES`, by module name and side.

    Sides with more positions than the map are left out.
    """
    return {
        name: {
            side: affinity_score(*(_averaged(each, side) for each in maps)).item()
            for side in SIDES if side is None or side <= maps.input.shape[-1]
        }
        for name, maps in scored_maps(network, images).items()
    }  # fmt: skip


class Clouds(NamedTuple):
    """Two clouds of one call in the plane, shape (points, 2): the outputs, and the best affine image of the inputs."""

    outputs: np.ndarray
    image: np.ndarray


@torch.no_grad()
def clouds_of_call(network: nn.Module, images: Tensor, call: int) -> Clouds:
    """The two clouds that the score of a call compares, projected on the two widest directions of the outputs.

    The unit of both axes is the root of the trace of the outputs' covariance. The first :data:`SHOWN` images are shown;
    the affine map and the directions are fitted to all images. Each direction has the sign that makes the third moment
    of the outputs positive. The points of a dead call are at 0.

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
