"""Network dissection: does a unit respond to something that people have a word for, and do rotated units too?

A *concept* is a set of pixels in every image: where it is red, where there is a stripe, where there is a disc. A unit
is called *interpretable* if the pixels where it is most active coincide well enough with those of some concept. Rotate
the units of a layer, ``z -> Q^alpha z``: nothing that a linear reader could use is lost, but the units are others. If
the fraction of interpretable units falls, the basis of single neurons was special.

Method (Bau et al. 2017, as in section 6 and appendix F.1 of the paper): a unit's threshold is the activation that it
exceeds at the top 0.5 % of all positions of all images; its map is interpolated to the size of the masks and cut
there; it is interpretable if its intersection over union with some concept, over the whole data set, is above 0.04.

The Broden concepts that the paper uses cannot be shipped. :func:`generated_concepts` draws a small substitute, and
:class:`Concepts` takes any other: give it images and, for each, one boolean mask a concept.

Sources: Bau, Zhou, Khosla, Oliva, Torralba, "Network dissection: quantifying interpretability of deep visual
representations", CVPR 2017; Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 6, Figure 3, appendix F.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.linalg import schur
from torch import Tensor
from torch.nn import functional

__all__ = [
    "Concepts",
    "Dissection",
    "Rotation",
    "dissect",
    "generated_concepts",
    "labelled_concepts",
    "rotation_curve",
]

COLOURS = {
    "red": (230, 40, 40),
    "green": (40, 170, 60),
    "blue": (50, 80, 230),
    "yellow": (240, 220, 50),
    "cyan": (60, 210, 220),
    "magenta": (210, 60, 200),
}
LEVELS = {f"grey {level}": (level,) for level in (60, 100, 140, 180, 220, 255)}
TEXTURES = ("plain", "rows", "columns", "diagonals", "checks", "dots")
SHAPES = ("disc", "ring", "square", "triangle", "cross", "frame")


# -------------------------------------------------------------------------------------------- concepts


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
        if images.ndim != 4 or images.dtype != torch.uint8 or len(images) < 1:
            raise ValueError(
                f"images have shape {tuple(images.shape)} and dtype {images.dtype}; they should be uint8 "
                "(n, channels, height, width), n >= 1."
            )
        if masks.ndim != 4 or masks.dtype != torch.bool or len(masks) != len(images) or masks.shape[1] < 1:
            raise ValueError(
                f"masks have shape {tuple(masks.shape)} and dtype {masks.dtype}; they should be bool "
                f"({len(images)}, concepts, height, width), at least one concept."
            )
        if not len(self.names) == len(self.categories) == masks.shape[1]:
            raise ValueError(
                f"there are {len(self.names)} names and {len(self.categories)} categories for {masks.shape[1]} "
                "concepts; each should have one of both."
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shares(self) -> Tensor:
        """The share of all pixels that each concept covers, float64, shape (concepts,).

        A unit is active at a share q of the pixels, so its intersection over union with a concept that covers s > q
        is at most q / s: with q = 0.005, concepts on more than an eighth of the pixels can never pass 0.04.
        """
        return self.masks.double().mean((0, 2, 3))


def generated_concepts(n: int = 600, *, channels: int = 3, side: int = 32, seed: int = 0) -> Concepts:
    """Drawn images with two objects each, on a dark and noisy ground: 6 colours, 6 textures, 6 shapes.

    Parameters
    ----------
    n
        Number of images, at least 1.
    channels
        3, or 1 for grey images, in which six grey levels take the place of the colours.
    side
        Height and width in pixels, at least 16.
    seed
        Of everything.

    A colour's mask are the lit pixels of its objects; those of a texture and of a shape are all pixels of the object.

    >>> concepts = generated_concepts(5, channels=1)
    >>> concepts.images.shape, concepts.masks.shape, concepts.names[0], concepts.names[-1]
    (torch.Size([5, 1, 32, 32]), torch.Size([5, 18, 32, 32]), 'grey 60', 'frame')
    """
    if n < 1 or side < 16:
        raise ValueError(f"n is {n} and side {side}; they should be at least 1 and 16.")
    if channels not in (1, 3):
        raise ValueError(f"channels is {channels}; it should be 3, or 1 for grey images.")
    colours: dict[str, tuple[int, ...]] = dict(COLOURS if channels == 3 else LEVELS)
    names = (*colours, *TEXTURES, *SHAPES)
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:side, :side] + 0.5
    images = np.zeros((n, channels, side, side))
    masks = np.zeros((n, len(names), side, side), dtype=bool)
    for i in range(n):
        # One object left of the middle and one right of it, or above and below.
        flipped = rng.random() < 0.5
        for half in (0.27, 0.73):
            radius = side * rng.uniform(0.14, 0.22)
            across, along = side * half, rng.uniform(radius, side - radius)
            x, y = (row, column) if flipped else (column, row)
            dx, dy = (x - across) / radius, (y - along) / radius
            colour, texture, shape = rng.choice(list(colours)), rng.choice(TEXTURES), rng.choice(SHAPES)
            inside = _shape(shape, dx, dy)
            lit = inside & _texture(texture, row, column, max(1, side // 16))
            images[i] = np.where(lit, np.array(colours[colour])[:, None, None], images[i])
            for name, mask in ((colour, lit), (texture, inside), (shape, inside)):
                masks[i, names.index(name)] |= mask
    images += rng.normal(12, 6, size=images.shape)
    return Concepts(
        torch.from_numpy(images.clip(0, 255).astype(np.uint8)), torch.from_numpy(masks), names,
        ("colour",) * len(colours) + ("texture",) * len(TEXTURES) + ("shape",) * len(SHAPES),
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
    if not 0 <= int(labels.min()) <= int(labels.max()) < len(names):
        raise ValueError(f"labels go from {labels.min()} to {labels.max()}; there are {len(names)} names.")
    grey = images[:, 0].float()
    lit = grey > 25
    masks = {("object", name): lit & (labels == k)[:, None, None] for k, name in enumerate(names)}
    bounds = [25, 70, 110, 150, 190, 225, 256]
    for low, high in itertools.pairwise(bounds):
        masks["level", f"grey {low}"] = (grey > low) & (grey <= high)
    down, right = (functional.pad(grey.diff(dim=axis), pad) for axis, pad in ((1, (0, 0, 0, 1)), (2, (0, 1))))
    for name, slope, other in (("top", down, right), ("left", right, down)):
        steep = (slope.abs() > 50) & (slope.abs() > 2 * other.abs())
        masks["edge", name] = steep & (slope > 0)
        masks["edge", {"top": "bottom", "left": "right"}[name]] = steep & (slope < 0)
    height, width = (torch.arange(size) * 2 >= size for size in grey.shape[1:])
    for name, rows, columns in (
        ("upper left", ~height, ~width),
        ("upper right", ~height, width),
        ("lower left", height, ~width),
        ("lower right", height, width),
    ):
        masks["part", name] = lit & rows[:, None] & columns
    categories, words = zip(*masks, strict=True)
    return Concepts(images, torch.stack(list(masks.values()), 1), tuple(words), tuple(categories))


# ------------------------------------------------------------------------------------------- rotations


class Rotation:
    """A rotation Q and its powers Q^alpha, from the identity (0) along the shortest way to Q (1).

    With the real Schur form ``Q = Z R Z^T``, R made of plane rotations by angles in [-pi, pi], Q^alpha turns each plane
    by alpha times its angle. Pairs of eigenvalues -1 are a plane turned by pi.

    Parameters
    ----------
    q
        (d, d), orthogonal to 1e-8, determinant 1.

    Raises ValueError otherwise: a reflection has no real root.

    >>> Rotation([[0.0, -1.0], [1.0, 0.0]]).power(0.5).round(3)
    array([[ 0.707, -0.707],
           [ 0.707,  0.707]])
    """

    def __init__(self, q: Any):
        q = np.array(q, dtype=np.float64)
        if q.ndim != 2 or q.shape[0] != q.shape[1] or not np.isfinite(q).all():
            raise ValueError(f"q has shape {q.shape}; it should be a square matrix of finite numbers.")
        if np.abs(q @ q.T - np.eye(len(q))).max() > 1e-8:
            raise ValueError("q is not orthogonal: q q^T differs from the identity.")
        if np.linalg.det(q) < 0:
            raise ValueError("q is a reflection (determinant -1); only rotations have real powers.")
        self.q = q
        t, self._basis = schur(q, output="real")
        self._planes: list[tuple[int, int, float]] = []
        flipped = []
        at = 0
        while at < len(q):
            if at + 1 < len(q) and abs(t[at + 1, at]) > 1e-12:
                self._planes.append((at, at + 1, math.atan2(t[at + 1, at], t[at, at])))
                at += 2
            else:
                if t[at, at] < 0:
                    flipped.append(at)
                at += 1
        self._planes += [(i, j, math.pi) for i, j in zip(flipped[::2], flipped[1::2], strict=True)]

    def __repr__(self) -> str:
        return f"Rotation(d={len(self.q)})"

    @classmethod
    def random(cls, d: int, seed: int) -> Rotation:
        """Uniform on the rotations of d dimensions: Q of a Gaussian matrix's QR with positive diagonal of R.

        Half of these are reflections; in them the last column changes its sign. Raises ValueError for d < 1.
        """
        if d < 1:
            raise ValueError(f"d is {d}; it should be at least 1.")
        q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
        q = q * np.sign(np.diag(r))
        if np.linalg.det(q) < 0:
            q[:, -1] *= -1
        return cls(q)

    def power(self, alpha: float) -> np.ndarray:
        """Q^alpha, float64, shape (d, d): orthogonal for every real alpha."""
        turn = np.eye(len(self.q))
        for i, j, angle in self._planes:
            c, s = math.cos(alpha * angle), math.sin(alpha * angle)
            turn[i, i] = turn[j, j] = c
            turn[i, j], turn[j, i] = -s, s
        return self._basis @ turn @ self._basis.T


# ------------------------------------------------------------------------------------------ dissection


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

    @functools.cached_property
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
    features: Any, concepts: Concepts, *, quantile: float = 0.005, threshold: float = 0.04, batch_size: int = 100
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

    Raises ValueError if shapes do not fit, a value is not finite or an argument is out of range.

    >>> concepts = generated_concepts(50)
    >>> dissect(concepts.masks.float(), concepts, quantile=0.2).fraction        # units that know the masks
    1.0
    """
    features = torch.as_tensor(features)
    if features.ndim != 4 or len(features) != len(concepts) or 0 in features.shape:
        raise ValueError(
            f"features have shape {tuple(features.shape)}; they should be ({len(concepts)}, units, height, width)."
        )
    if not bool(torch.isfinite(features).all()):
        raise ValueError("features hold values that are NaN or infinite; all should be finite.")
    for name, value in (("quantile", quantile), ("threshold", threshold)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}; it should be between 0 and 1.")
    features = features.detach().to("cpu", torch.float32)
    units = features.transpose(0, 1).flatten(1)
    count = units.shape[1]
    # At most this share of the values is above the threshold.
    cut = units.kthvalue(count - int(quantile * count), dim=1).values[:, None, None]
    dead = units.amin(1) == units.amax(1)

    size = concepts.masks.shape[-2:]
    both = torch.zeros(len(units), len(concepts.names), dtype=torch.float64)
    area = torch.zeros(len(units), dtype=torch.float64)
    for index in torch.arange(len(features)).split(batch_size):
        maps = features[index]
        if maps.shape[-2:] != size:
            maps = functional.interpolate(maps, size=size, mode="bilinear", align_corners=False)
        active = (maps > cut).transpose(0, 1).flatten(1).float()
        masks = concepts.masks[index].transpose(0, 1).flatten(1).float()
        both += (active @ masks.T).double()
        area += active.sum(1)
    union = area[:, None] + concepts.masks.sum((0, 2, 3)) - both
    iou = both / union.clamp_min(1)
    return Dissection(iou.numpy(), tuple(dead.nonzero()[:, 0].tolist()), threshold, concepts.names)


def rotation_curve(
    features: Tensor,
    concepts: Concepts,
    alphas: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    *,
    draws: int = 5,
    seed: int = 0,
    shuffled: bool = False,
    **options: Any,
) -> np.ndarray:
    """The fraction of interpretable units after rotating them by Q^alpha (Figure 3 of the paper).

    Parameters
    ----------
    features
        As in :func:`dissect`.
    alphas
        Powers; 0 is the basis of single units.
    draws, seed
        Number of random rotations, and the seed of the first; the next have the seeds after it.
    shuffled
        Give the images the masks of others: what is left is found by chance.
    options
        ``quantile`` and ``threshold`` of :func:`dissect`.

    Returns
    -------
    float64 array of shape (draws, len(alphas)).
    """
    if draws < 1 or not len(alphas):
        raise ValueError(f"draws is {draws} and there are {len(alphas)} alphas; there should be at least one of both.")
    features = torch.as_tensor(features)
    if features.ndim != 4:
        raise ValueError(f"features have shape {tuple(features.shape)}; they should be (n, units, height, width).")
    if shuffled:
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(concepts)))
        concepts = Concepts(concepts.images, concepts.masks[order], concepts.names, concepts.categories)
    result = np.zeros((draws, len(alphas)))
    known: dict[float, float] = {}
    for draw in range(draws):
        rotation = Rotation.random(features.shape[1], seed + draw)
        for at, alpha in enumerate(alphas):
            if alpha == 0 and alpha in known:
                result[draw, at] = known[alpha]
                continue
            q = torch.from_numpy(rotation.power(alpha)).to(features)
            turned = torch.einsum("ij,njhw->nihw", q, features)
            result[draw, at] = dissect(turned, concepts, **options).fraction
            if alpha == 0:
                known[alpha] = result[draw, at]
    return result
