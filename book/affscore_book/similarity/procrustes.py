"""Procrustes: how near do two representations come when one may be moved by a group?

``procrustes(x, y, "orthogonal")`` allows orthogonal maps, one common scale and translations, ``procrustes(x, y,
"relu")`` permutations of the channels, a positive scale for each, and translations: the symmetries of ReLU.

Feature maps of shape (n, C, H, W) follow the paper's appendix D.7, where the groups act on channels only: every pixel
is a sample, ``as_samples(x)`` of shape (n H W, C).

Sources: Godfrey, Brown, Emerson, Kvinge, "On the symmetries of deep learning models and their internal
representations", NeurIPS 2022, section 5 and appendix D.7; Williams et al., "Generalized shape metrics on neural
representations", NeurIPS 2021.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from affscore.arguments import check_choice, whole_number
from affscore_book.similarity.channels import as_samples, checked_pair, square_sum, unit_live_channels, unit_matrix
from affscore_book.similarity.results import Similarity, random_orders, similarity

__all__ = ["best_matching", "best_rotation", "from_gain", "procrustes"]


def procrustes(x: Any, y: Any, group: str = "relu", *, centred: bool = True, null: int = 10) -> Similarity:
    """Procrustes similarity: 1 minus half the distance that is left after the best map of the group.

    With ``group="relu"`` (definition 5.2 of the paper), channels get norm 1 and are then matched one to one:
    ``delta^2 = min_P |X~ - Y~ P|^2`` over permutations P, similarity ``1 - delta / (2 sqrt d)``. With
    ``"orthogonal"``, both matrices get Frobenius norm 1, and ``delta = min_Q |X - Y Q|`` over orthogonal Q, similarity
    ``1 - delta / 2``. In both cases the distance stored in the result is that of matrices of norm 1, so the
    similarity is ``1 - distance / 2``.

    Parameters
    ----------
    x, y
        Arrays or tensors of shape (n, d) or (n, C, H, W), n >= 2, real, finite; sample i is the same in both. The
        numbers of channels may differ: channels without partner then count with their whole norm.
    group
        ``"relu"`` or ``"orthogonal"``.
    centred
        Subtract the mean of every channel, which makes the measure invariant to translations. The paper's code does
        not; with ``False`` this is its measure.
    null
        How many random orders of the samples of ``y`` to compare with.

    Returns
    -------
    Similarity
        In [0, 1] for the group of ReLU. For orthogonal maps, and for non-negative features that are not centred, not
        below 1 - 1/sqrt(2) = 0.293.

    Raises
    ------
    ValueError
        If shapes do not fit, n < 2, values are not finite, or no channel varies.

    Examples
    --------
    >>> x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)     # (50, 3)
    >>> procrustes(x, 2 * x[:, [2, 0, 1]] + 1).distance < 1e-10
    True
    >>> rotated = x @ torch.linalg.qr(x[:3]).Q
    >>> procrustes(x, rotated, "orthogonal").distance < 1e-10 < 0.1 < procrustes(x, rotated).distance
    True
    """
    check_choice("group", group, ("relu", "orthogonal"))
    whole_number("null", null, 0)
    x, y = checked_pair(x, y)
    if x.shape[2:] != y.shape[2:]:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and y has shape {tuple(y.shape)}; Procrustes compares pixel by pixel, so "
            "height and width should be the same."
        )
    normed, best = (unit_live_channels, best_matching) if group == "relu" else (unit_matrix, best_rotation)
    (a, alive_x), (b, alive_y) = normed(x, "x", centred), normed(y, "y", centred)
    if a.shape[1] > b.shape[1]:
        a, b = b, a
    a, b = as_samples(a), as_samples(b)
    size = square_sum(a) + square_sum(b)
    distance = math.sqrt(2 * _residual(a, b, best(a.T @ b)[1]) / size)
    values = [1 - distance / 2]
    pixels = b.reshape(len(y), -1, b.shape[1])
    for order in random_orders(len(y), null, y.device):
        gain, _ = best(a.T @ pixels[order].reshape(-1, b.shape[1]))
        values.append(from_gain(gain, size))
    return similarity(values, x, y, alive_x, alive_y, distance)


def from_gain(gain: float, size: float) -> float:
    """The similarity of X and Y with |X|^2 + |Y|^2 = ``size``, where the best map makes tr(X^T Y Q^T) = ``gain``.

    Near 1 it loses digits that :func:`procrustes` keeps.

    >>> from_gain(1.0, 2.0), round(from_gain(0.0, 2.0), 6)
    (1.0, 0.292893)
    """
    return 1 - math.sqrt(max(0.0, 2 * (size - 2 * gain) / size)) / 2


def best_rotation(cross: Tensor) -> tuple[float, Tensor]:
    """max tr(cross Q^T) over maps Q with orthonormal rows or columns, and that Q, of the shape of cross."""
    u, sigma, v = torch.linalg.svd(cross, full_matrices=False)
    return float(sigma.sum()), u @ v


def best_matching(cross: Tensor) -> tuple[float, Tensor]:
    """max tr(cross P^T) over partial permutations P of the shape of cross, and that P."""
    rows, columns = linear_sum_assignment(cross.cpu().numpy(), maximize=True)
    p = torch.zeros_like(cross)
    p[rows, columns] = 1.0
    return float(cross[rows, columns].sum()), p


def _residual(x: Tensor, y: Tensor, q: Tensor) -> float:
    """|X - Y Q^T|^2 + |Y|^2 - |Y Q^T|^2: what is left, with what Q does not reach. Exact near 0, unlike |X|^2 - ..."""
    image = y @ q.T
    unreached = y - image @ q if q.shape[0] < q.shape[1] else y.new_zeros(())
    return square_sum(x - image) + square_sum(unreached)
