"""Drawn images whose pixels are labelled with concepts, as a small substitute for Broden, which cannot be shipped."""

from __future__ import annotations

import numpy as np
import torch

from affscore_book.similarity.concepts import Concepts

__all__ = ["generated_concepts"]

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


def generated_concepts(n: int = 600, *, side: int = 32) -> Concepts:
    """n drawn images with two objects each on a dark and noisy ground, with 6 colours, 6 textures and 6 shapes.

    Height and width are ``side`` pixels, at least 16. The mask of a colour consists of the lit pixels of its objects.
    Those of a texture and of a shape consist of all pixels of the object.

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
        # One object is left of the middle and one right of it, or one is above and one below.
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
    """The pixels of a shape with a radius of about 1."""
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
