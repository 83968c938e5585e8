"""Network dissection in rotated bases of a layer, as a test of whether rotated units are interpretable too.

If the units of a layer are rotated, ``z -> Q^alpha z``, no information is lost for a linear readout, but the units
change. If the fraction of interpretable units falls, the basis of single neurons is special.

Source: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 6, Figure 3, appendix F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.linalg import schur
from scipy.stats import ortho_group
from torch import Tensor

from affscore_book.kit.checking import square_matrix
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.dissection import Dissection, dissect

__all__ = ["Rotation", "dissect_rotated", "rotation_curve"]


class Rotation:
    """A rotation Q and its powers Q^alpha, from the identity (0) along the shortest path to Q (1).

    In the real Schur form ``Q = Z R Z^T``, R consists of plane rotations by angles in [-pi, pi], and Q^alpha turns each
    plane by alpha times its angle. A pair of eigenvalues -1 is a plane turned by pi, for which
    ``scipy.linalg.fractional_matrix_power`` would return the complex principal powers.

    Parameters
    ----------
    q
        Matrix of shape (d, d) with determinant 1, orthogonal to 1e-8.

    Raises ValueError if q is not orthogonal or is a reflection, which has no real powers.

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
        """A rotation drawn uniformly from those of d dimensions.

        Half of the orthogonal matrices are reflections, whose last column therefore changes its sign.
        """
        q = ortho_group.rvs(d, random_state=np.random.default_rng(seed))
        if np.linalg.det(q) < 0:
            q[:, -1] *= -1
        return cls(q)

    def power(self, alpha: float) -> np.ndarray:
        """Q^alpha, float64 of shape (d, d), which is orthogonal for every real alpha."""
        turn = np.eye(len(self.q))
        for i, j, angle in self._planes:
            c, s = math.cos(alpha * angle), math.sin(alpha * angle)
            turn[i, i] = turn[j, j] = c
            turn[i, j], turn[j, i] = -s, s
        return self._basis @ turn @ self._basis.T


def dissect_rotated(
    features: Tensor, concepts: Concepts, rotation: Rotation, alpha: float, **options: Any
) -> Dissection:
    """The dissection (:func:`dissect`, with its ``options``) of ``rotation.power(alpha)`` times the channels.

    >>> from affscore_study.similarity.drawn_concepts import generated_concepts
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
    """The fractions of interpretable units after rotating them by Q^alpha (Figure 3 of the paper).

    Parameters
    ----------
    features
        As in :func:`affscore_book.similarity.dissection.dissect`.
    alphas
        The powers; 0 is the basis of single units.
    draws
        The number of random rotations, which are the same in every call.
    shuffled
        Give the images the masks of others, so that units are interpretable only by chance.
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
