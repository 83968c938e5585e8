"""Network dissection: does a unit respond to something that people have a word for, and do rotated units too?

A unit is called *interpretable* if the pixels where it is most active coincide well enough with those of some concept
(:mod:`affscore_book.similarity.concepts`). Rotate the units of a layer, ``z -> Q^alpha z``: nothing that a linear
reader could use is lost, but the units are others. If the fraction of interpretable units falls, the basis of single
neurons was special.

Method (Bau et al. 2017, as in section 6 and appendix F.1 of the paper): a unit's threshold is the activation that it
exceeds at the top 0.5 % of all positions of all images; its map is interpolated to the size of the masks and cut
there; it is interpretable if its intersection over union with some concept, over the whole data set, is above 0.04.
Positions are those of the map as the network made it, or the pixels of the interpolated map: the second threshold is
lower, because interpolation flattens peaks.

Sources: Bau, Zhou, Khosla, Oliva, Torralba, "Network dissection: quantifying interpretability of deep visual
representations", CVPR 2017; Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 6, Figure 3, appendix F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.linalg import schur
from scipy.stats import ortho_group
from torch import Tensor
from torch.nn import functional

from affscore.arguments import check_choice
from affscore_book.kit.checking import square_matrix
from affscore_book.similarity.concepts import Concepts

__all__ = ["Dissection", "Rotation", "dissect", "dissect_rotated", "rotation_curve"]


class Rotation:
    """A rotation Q and its powers Q^alpha, from the identity (0) along the shortest way to Q (1).

    With the real Schur form ``Q = Z R Z^T``, R made of plane rotations by angles in [-pi, pi], Q^alpha turns each plane
    by alpha times its angle. Pairs of eigenvalues -1 are a plane turned by pi; ``scipy.linalg.fractional_matrix_power``
    takes the principal power of each of them, which is complex.

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
        q = square_matrix("q", torch.as_tensor(q, dtype=torch.float64)).numpy()
        if np.abs(q @ q.T - np.eye(len(q))).max() > 1e-8:
            raise ValueError("q is not orthogonal: q q^T differs from the identity.")
        if np.linalg.det(q) < 0:
            raise ValueError("q is a reflection (determinant -1); only rotations have real powers.")
        self.q = q
        t, self._basis = schur(q, output="real")
        turned = np.flatnonzero(np.abs(t.diagonal(-1)) > 1e-12)
        alone = np.setdiff1d(np.arange(len(q)), [turned, turned + 1])
        flipped = alone[t.diagonal()[alone] < 0]
        self._planes = [(i, i + 1, math.atan2(t[i + 1, i], t[i, i])) for i in turned]
        self._planes += [(i, j, math.pi) for i, j in zip(flipped[::2], flipped[1::2], strict=True)]

    @classmethod
    def random(cls, d: int, seed: int) -> Rotation:
        """Uniform on the rotations of d dimensions.

        Half of the orthogonal matrices are reflections; in them the last column changes its sign.
        """
        q = ortho_group.rvs(d, random_state=np.random.default_rng(seed))
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

    >>> from affscore_book.similarity.concepts import generated_concepts
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


def dissect_rotated(
    features: Tensor, concepts: Concepts, rotation: Rotation, alpha: float, **options: Any
) -> Dissection:
    """:func:`dissect` of the units of ``rotation.power(alpha)`` times the channels, with its ``options``.

    >>> from affscore_book.similarity.concepts import generated_concepts
    >>> concepts = generated_concepts(50)
    >>> quarter = Rotation([[0.0, -1.0], [1.0, 0.0]])
    >>> maps = concepts.masks[:, [2, 9]].float()                                 # (50, 2, 32, 32)
    >>> dissect_rotated(maps, concepts, quarter, 0.0, quantile=0.2).labels
    ['blue', 'diagonals']
    >>> dissect_rotated(maps, concepts, quarter, -1.0, quantile=0.2).labels[0]   # the first is the second now
    'diagonals'
    """
    q = torch.from_numpy(rotation.power(alpha)).to(features)
    return dissect(torch.einsum("ij,njhw->nihw", q, features), concepts, **options)


def rotation_curve(
    features: Tensor,
    concepts: Concepts,
    alphas: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    *,
    draws: int = 5,
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
    draws
        Number of random rotations, the same in every call.
    shuffled
        Give the images the masks of others: what is left is found by chance.
    options
        ``quantile``, ``threshold`` and ``top_of`` of :func:`dissect`.

    Returns
    -------
    float64 array of shape (draws, len(alphas)).
    """
    if shuffled:
        order = torch.from_numpy(np.random.default_rng(0).permutation(len(concepts)))
        concepts = Concepts(concepts.images, concepts.masks[order], concepts.names, concepts.categories)
    result = np.zeros((draws, len(alphas)))
    for draw in range(draws):
        rotation = Rotation.random(features.shape[1], draw)
        for at, alpha in enumerate(alphas):
            if alpha == 0 and draw:  # the basis of single units is the same in every draw
                result[draw, at] = result[0, at]
                continue
            result[draw, at] = dissect_rotated(features, concepts, rotation, alpha, **options).fraction
    return result
