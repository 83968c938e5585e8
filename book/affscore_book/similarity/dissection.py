"""Network dissection: does a unit respond to something that people have a word for?

A unit is called *interpretable* if the pixels where it is most active coincide well enough with those of some concept
(:mod:`affscore_book.similarity.concepts`).

Method (Bau et al. 2017, as in section 6 and appendix F.1 of the paper): a unit's threshold is the activation that it
exceeds at the top 0.5 % of all positions of all images; its map is interpolated to the size of the masks and cut
there; it is interpretable if its intersection over union with some concept, over the whole data set, is above 0.04.
Positions are those of the map as the network made it, or the pixels of the interpolated map: the second threshold is
lower, because interpolation flattens peaks.

Sources: Bau, Zhou, Khosla, Oliva, Torralba, "Network dissection: quantifying interpretability of deep visual
representations", CVPR 2017; Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 6, Figure 3, appendix F.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from affscore.arguments import check_choice
from affscore_book.similarity.concepts import Concepts

__all__ = ["Dissection", "dissect"]


@dataclass(frozen=True, eq=False)
class Dissection:
    """What the units of a layer respond to.

    Attributes
    ----------
    iou
        Intersection over union of every unit with every concept, float64, shape (units, concepts).
    dead
        Units that are the same everywhere; they are not interpretable.
    threshold
        Above which a unit is interpretable.
    concepts
        Names of the concepts.
    """

    iou: np.ndarray = field(repr=False)
    dead: tuple[int, ...]
    threshold: float
    concepts: tuple[str, ...] = field(repr=False)

    @property
    def best(self) -> np.ndarray:
        """The highest intersection over union of each unit, shape (units,)."""
        return self.iou.max(1)

    @property
    def fraction(self) -> float:
        """The fraction of interpretable units, of all units."""
        return float((self.best > self.threshold).mean())

    @property
    def labels(self) -> list[str | None]:
        """The best concept of every unit, None where it is not interpretable."""
        found = zip(self.iou.argmax(1), self.best, strict=True)
        return [self.concepts[k] if value > self.threshold else None for k, value in found]

    def __repr__(self) -> str:
        found = int((self.best > self.threshold).sum())
        dead = f", {len(self.dead)} dead" if self.dead else ""
        return f"Dissection({found} of {len(self.iou)} units interpretable{dead})"


def dissect(
    features: Any, concepts: Concepts, *, quantile: float = 0.005, threshold: float = 0.04, top_of: str = "map"
) -> Dissection:
    """Compare where every unit is most active with every concept.

    Parameters
    ----------
    features
        The units' maps for ``concepts.images``, tensor of shape (n, units, h, w), h, w >= 1, finite.
    quantile
        Share of positions at which a unit counts as active, between 0 and 1. Ties, such as the zeros of ReLU, do not
        count, so it may be less.
    threshold
        Of the intersection over union.
    top_of
        Where the quantile is taken: ``"map"``, the positions of the map as it is (Bau et al.), or ``"pixels"``, those
        of the interpolated map, so that a unit is active at that share of the pixels.

    Raises ValueError if shapes do not fit, a value is not finite or an argument is out of range.

    >>> images = torch.rand(50, 1, 8, 8, generator=torch.Generator().manual_seed(0)).mul(256).to(torch.uint8)
    >>> dark = Concepts(images, images < 50, ("dark",), ("level",))
    >>> dissect(255.0 - images, dark, quantile=0.1)                         # a unit that answers to dark pixels
    Dissection(1 of 1 units interpretable)
    """
    features = torch.as_tensor(features)
    if features.ndim != 4 or len(features) != len(concepts) or 0 in features.shape:
        raise ValueError(
            f"features have shape {tuple(features.shape)}; they should be ({len(concepts)}, units, height, width)."
        )
    if not bool(torch.isfinite(features).all()):
        raise ValueError("features hold values that are NaN or infinite; all should be finite.")
    for name, share in (("quantile", quantile), ("threshold", threshold)):
        if not 0 < share < 1:
            raise ValueError(f"{name} is {share}; it should be between 0 and 1.")
    check_choice("top_of", top_of, ("map", "pixels"))
    features = features.detach().to("cpu", torch.float32)
    size = concepts.masks.shape[-2:]
    if top_of == "pixels":
        features = _sized(features, size)
    units = features.transpose(0, 1).flatten(1)
    count = units.shape[1]
    # At most this share of the values is above the threshold.
    cut = units.kthvalue(count - int(quantile * count), dim=1).values[:, None, None]
    dead = units.amin(1) == units.amax(1)

    both = torch.zeros(len(units), len(concepts.names), dtype=torch.float64)
    area = torch.zeros(len(units), dtype=torch.float64)
    for index in torch.arange(len(features)).split(100):
        active = (_sized(features[index], size) > cut).transpose(0, 1).flatten(1).float()
        masks = concepts.masks[index].transpose(0, 1).flatten(1).float()
        both += (active @ masks.T).double()
        area += active.sum(1)
    union = area[:, None] + concepts.masks.sum((0, 2, 3)) - both
    iou = both / union.clamp_min(1)
    return Dissection(iou.numpy(), tuple(dead.nonzero()[:, 0].tolist()), threshold, concepts.names)


def _sized(maps: Tensor, size: torch.Size) -> Tensor:
    """Maps (n, units, h, w), interpolated to a size."""
    if maps.shape[-2:] == size:
        return maps
    return functional.interpolate(maps, size=size, mode="bilinear", align_corners=False)
