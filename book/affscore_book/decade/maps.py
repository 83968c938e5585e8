"""What averaging over positions does to the score of real feature maps, and to the clouds that it compares.

Figure 9 of the source asks the first of independent normal numbers; here the maps are those of trained networks.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.affine import affine_map
from affscore.forward import evaluating
from affscore.score import affinity_score
from affscore.tracing import trace
from affscore_book.kit.features import features

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


def scored_maps(network: nn.Module) -> dict[str, nn.Module]:
    """The activations of a network that are modules, by name. They no longer work in place: it should be a copy."""
    modules: dict[str, nn.Module] = {
        name: module for name, module in network.named_modules() if isinstance(module, KINDS)
    }
    for module in modules.values():
        if not isinstance(module, nn.GELU):
            module.inplace = False  # type: ignore[assignment]  # or the input would be gone
    return modules


@torch.no_grad()
def map_scores(
    network: nn.Module, images: Tensor, sides: Sequence[int | None] = SIDES
) -> dict[str, dict[int | None, float]]:
    """The score of feature maps averaged to ``sides`` positions, by the name of the activation's module.

    Parameters
    ----------
    network
        Its activations are modules, each run once for an image; it is left as it was.
    images
        (n, channels, height, width), n of 2 or more.
    sides
        Whole numbers, or None for the flattened map. Maps with fewer positions than a side has are not averaged to it,
        and maps of one position, or vectors, are left out.

    Raises
    ------
    ValueError
        If a module runs twice.
    """
    network = copy.deepcopy(network)
    modules = scored_maps(network)
    with evaluating(network), features(network, modules) as seen:
        network(images)
    found = {}
    for name, (before, after) in seen.items():
        if before.ndim == 4 and before.shape[-1] > 1:
            fit = [side for side in sides if side is None or side <= before.shape[-1]]
            found[name] = {side: affinity_score(_averaged(before, side), _averaged(after, side)).item() for side in fit}
    return found


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
