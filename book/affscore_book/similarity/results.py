"""What a comparison gives: a similarity beside what the same measure gives for samples in random order.

A similarity alone says little, because independent features can score high.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

__all__ = ["Similarity", "random_orders", "similarity"]


@dataclass(frozen=True)
class Similarity:
    """A similarity beside what it is for the same features with the samples of ``y`` in random order.

    Attributes
    ----------
    value
        The similarity, at most 1.
    null
        The values under random orders, float64, shape (draws,). Rows that do not belong together should not be
        similar: what is left is what the measure gives for nothing.
    dead_x, dead_y
        Channels that do not vary (or, uncentred, are 0). They were left out.
    channels_x, channels_y
        How many channels there were before any was left out.
    distance
        For Procrustes, the distance that the value comes from; None otherwise.
    """

    value: float
    null: np.ndarray = field(repr=False)
    dead_x: tuple[int, ...]
    dead_y: tuple[int, ...]
    channels_x: int
    channels_y: int
    distance: float | None = None

    @property
    def null_mean(self) -> float:
        """Mean of the null values, NaN if none were drawn."""
        return float(self.null.mean()) if len(self.null) else math.nan

    def __repr__(self) -> str:
        drawn = f", null {self.null_mean:.3f}" if len(self.null) else ""
        dead = [
            f", {len(gone)} of {count} channels of {name} dead"
            for name, gone, count in (("x", self.dead_x, self.channels_x), ("y", self.dead_y, self.channels_y))
            if gone
        ]
        return f"Similarity({self.value:.3f}{drawn}{''.join(dead)})"


def similarity(
    values: list[float], x: Tensor, y: Tensor, alive_x: Tensor, alive_y: Tensor, distance: float | None = None
) -> Similarity:
    """The result for features ``x`` and ``y``: the first of ``values``, and the others as its null."""
    dead_x, dead_y = (tuple((~alive).nonzero()[:, 0].tolist()) for alive in (alive_x, alive_y))
    return Similarity(float(values[0]), np.array(values[1:]), dead_x, dead_y, x.shape[1], y.shape[1], distance)


def random_orders(n: int, draws: int, device: torch.device) -> Iterator[Tensor]:
    """Random orders of n samples, each int64 (n,), the same in every call."""
    generator = np.random.default_rng(0)
    for _ in range(draws):
        yield torch.from_numpy(generator.permutation(n)).to(device)
