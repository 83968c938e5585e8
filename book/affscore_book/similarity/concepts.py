"""Images whose pixels are labelled with concepts, such as those of objects on black.

A *concept* is a set of pixels in every image: where it is red, where there is a stripe, where there is a disc. The
Broden concepts that the paper uses cannot be shipped. :class:`Concepts` takes any: give it images and, for each, one
boolean mask a concept.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Concepts", "labelled_concepts"]


@dataclass(frozen=True, eq=False)
class Concepts:
    """Images whose pixels are labelled.

    Attributes
    ----------
    images
        uint8, shape (n, channels, H, W).
    masks
        bool, shape (n, concepts, h, w): the pixels of each concept. h x w need not be H x W.
    names, categories
        One word a concept, and the kind of thing it is ("colour", "texture", ...).

    Raises ValueError where shapes or counts do not fit.

    To use Broden: download it from the page of the network dissection project, read its images and the pixel labels of
    the concepts you want, and stack them into these two tensors.
    """

    images: Tensor = field(repr=False)
    masks: Tensor = field(repr=False)
    names: tuple[str, ...]
    categories: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        images, masks = self.images, self.masks
        if images.ndim != 4 or images.dtype != torch.uint8:
            raise ValueError(
                f"images have shape {tuple(images.shape)} and dtype {images.dtype}; they should be uint8 "
                "(n, channels, height, width)."
            )
        if masks.ndim != 4 or masks.dtype != torch.bool or len(masks) != len(images):
            raise ValueError(
                f"masks have shape {tuple(masks.shape)} and dtype {masks.dtype}; they should be bool "
                f"({len(images)}, concepts, height, width)."
            )
        if not len(self.names) == len(self.categories) == masks.shape[1]:
            raise ValueError(
                f"there are {len(self.names)} names and {len(self.categories)} categories for {masks.shape[1]} "
                "concepts; each should have one of both."
            )

    def __len__(self) -> int:
        return len(self.images)


def labelled_concepts(images: Tensor, labels: Tensor, names: Sequence[str]) -> Concepts:
    """Concepts in labelled grey images of objects on black, such as Fashion-MNIST: the networks' own world.

    The class of the object ("object", its lit pixels), six bands of grey ("level"), edges in four directions ("edge")
    and the four quarters of the object's box ("part").

    Parameters
    ----------
    images
        uint8, shape (n, 1, H, W).
    labels
        Integers of shape (n,), positions in ``names``.
    """
    if images.ndim != 4 or images.shape[1] != 1 or len(labels) != len(images):
        raise ValueError(
            f"images have shape {tuple(images.shape)} and labels {tuple(labels.shape)}; they should be "
            "(n, 1, height, width) and (n,)."
        )
    grey = images[:, 0].float()
    lit = grey > 25
    masks = {("object", name): lit & (labels == k)[:, None, None] for k, name in enumerate(names)}
    bounds = [25, 70, 110, 150, 190, 225, 256]
    for low, high in itertools.pairwise(bounds):
        masks["level", f"grey {low}"] = (grey > low) & (grey <= high)
    down, right = (functional.pad(grey.diff(dim=axis), pad) for axis, pad in ((1, (0, 0, 0, 1)), (2, (0, 1))))
    for rising, falling, slope, other in (("top", "bottom", down, right), ("left", "right", right, down)):
        steep = (slope.abs() > 50) & (slope.abs() > 2 * other.abs())
        masks["edge", rising], masks["edge", falling] = steep & (slope > 0), steep & (slope < 0)
    height, width = (torch.arange(size) * 2 >= size for size in grey.shape[1:])
    for (level, rows), (side, columns) in itertools.product(
        (("upper", ~height), ("lower", height)), (("left", ~width), ("right", width))
    ):
        masks["part", f"{level} {side}"] = lit & rows[:, None] & columns
    categories, words = zip(*masks, strict=True)
    return Concepts(images, torch.stack(list(masks.values()), 1), tuple(words), tuple(categories))
