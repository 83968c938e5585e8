"""Images whose pixels are labelled with concepts: drawn ones, and those of objects on black.

A *concept* is a set of pixels in every image: where it is red, where there is a stripe, where there is a disc. The
Broden concepts that the paper uses cannot be shipped. :func:`generated_concepts` draws a small substitute, and
:class:`Concepts` takes any other: give it images and, for each, one boolean mask a concept.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Concepts", "generated_concepts", "labelled_concepts"]

COLOURS = {
    "red": (230, 40, 40),
    "green": (40, 170, 60),
    "blue": (50, 80, 230),
    "yellow": (240, 220, 50),
    "cyan": (60, 210, 220),
    "magenta": (210, 60, 200),
}
TEXTURES = ("plain", "rows", "columns", "diagonals", "checks", "dots")
SHAPES = ("disc", "ring", "square", "triangle", "cross", "frame")


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


def generated_concepts(n: int = 600, *, side: int = 32) -> Concepts:
    """n drawn images with two objects each, on a dark and noisy ground: 6 colours, 6 textures, 6 shapes.

    Height and width are ``side`` pixels, at least 16. A colour's mask are the lit pixels of its objects; those of a
    texture and of a shape are all pixels of the object.

    >>> concepts = generated_concepts(5)
    >>> concepts.images.shape, concepts.masks.shape, concepts.names[0], concepts.names[-1]
    (torch.Size([5, 3, 32, 32]), torch.Size([5, 18, 32, 32]), 'red', 'frame')
    """
    names = (*COLOURS, *TEXTURES, *SHAPES)
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:side, :side] + 0.5
    images = np.zeros((n, 3, side, side))
    masks = np.zeros((n, len(names), side, side), dtype=bool)
    for i in range(n):
        # One object left of the middle and one right of it, or above and below.
        x, y = (row, column) if rng.random() < 0.5 else (column, row)
        for half in (0.27, 0.73):
            radius = side * rng.uniform(0.14, 0.22)
            across, along = side * half, rng.uniform(radius, side - radius)
            dx, dy = (x - across) / radius, (y - along) / radius
            colour, texture, shape = rng.choice(list(COLOURS)), rng.choice(TEXTURES), rng.choice(SHAPES)
            inside = _shape(shape, dx, dy)
            lit = inside & _texture(texture, row, column, max(1, side // 16))
            images[i] = np.where(lit, np.array(COLOURS[colour])[:, None, None], images[i])
            for name, mask in ((colour, lit), (texture, inside), (shape, inside)):
                masks[i, names.index(name)] |= mask
    images += rng.normal(12, 6, size=images.shape)
    return Concepts(
        torch.from_numpy(images.clip(0, 255).astype(np.uint8)), torch.from_numpy(masks), names,
        ("colour",) * len(COLOURS) + ("texture",) * len(TEXTURES) + ("shape",) * len(SHAPES),
    )  # fmt: skip


def _shape(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The pixels of a shape of about radius 1."""
    r, box = np.hypot(x, y), np.maximum(abs(x), abs(y))
    return {
        "disc": r < 1,
        "ring": (r < 1.1) & (r > 0.6),
        "square": box < 0.9,
        "triangle": (y < 0.9) & (y > 1.9 * abs(x) - 1.0),
        "cross": (np.minimum(abs(x), abs(y)) < 0.33) & (box < 1),
        "frame": (box < 1) & (box > 0.55),
    }[name]


def _texture(name: str, row: np.ndarray, column: np.ndarray, width: int) -> np.ndarray:
    """The lit pixels of a texture; stripes are ``width`` pixels wide."""
    i, j = (row // width).astype(int), (column // width).astype(int)
    return {
        "plain": np.ones_like(i, dtype=bool),
        "rows": i % 2 == 0,
        "columns": j % 2 == 0,
        "diagonals": (i + j) % 3 == 0,
        "checks": (i + j) % 2 == 0,
        "dots": (i % 2 == 0) & (j % 2 == 0),
    }[name]


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
