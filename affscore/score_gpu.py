"""Affinity scores of many activation calls at once, by matrix products alone: the route for a GPU.

:func:`affscore.affinity_score` decomposes matrices, which a GPU does slowly. With shrinkage both covariances have a
ridge, and then the map ``A`` that solves ``A S_X A = S_Y`` comes from products: it is a block of the matrix sign
function of ``[[0, S_Y], [S_X, 0]]``, to which the Newton-Schulz iteration converges,

    ``Y <- Y W,  Z <- W Z,  W = (3 I - Z Y) / 2,``   from   ``Y = S_Y, Z = S_X``   to   ``Y = A``,

where the eigenvalues of ``S_X S_Y`` lie between 0 and 1. The ridges bound them from below and the norms from above, so
that every step is scaled as well as it can be and the number of steps is known before the first.

A polynomial in ``S_X`` and ``S_Y`` needs no orthonormal basis. Where d > 2 n the iteration runs on the coefficients of
vectors in terms of the 2 n samples, whose products with both covariances follow from the samples' Gram matrix.

References
----------
Higham, "Functions of Matrices", SIAM 2008, chapters 5 and 6 (the sign function and the Newton-Schulz iteration).
Chen and Chow, "A stable scaling of Newton-Schulz for improving the sign function computation of a Hermitian matrix",
Argonne National Laboratory, 2014 (the scaling).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore.affine import shrinkage_from
from affscore.coupling import optimal_partners, squared_distances
from affscore.samples import centre, check_pair, on_one_thread
from affscore.score import affinity_score, one_minus_root

__all__ = ["affinity_scores", "scales"]

# Roots of eigenvalues of S_X S_Y below this fraction of the largest would cost the iteration its last digits.
_LEAST = 1e-7
#: How many calls go through the iteration together: about 1 GiB of GPU memory at n = 512.
TOGETHER = 16


@on_one_thread
@torch.no_grad()
def affinity_scores(
    pairs: Sequence[tuple[Any, Any]],
    *,
    solve: Callable[[Callable[[np.ndarray], np.ndarray], list[np.ndarray]], Iterable[np.ndarray]] = map,
) -> list[float]:
    """The affinity score of each pair, with Ledoit-Wolf shrinkage and without derivatives.

    They equal those of :func:`affscore.affinity_score` to about 1e-12. Pairs with the same number of channels, or with
    more than 2 n, go through the iteration together.

    Parameters
    ----------
    pairs
        Inputs and outputs of activations, as for :func:`affscore.affinity_score`; pairs may have different shapes.
    solve
        Called as ``solve(function, costs)`` for the assignment problems, which need the processor: ``map``, or that of
        an executor to solve several at a time.

    Returns
    -------
    list of float
        NaN where an output does not vary.

    Notes
    -----
    A pair whose covariances have no ridge, or so small a one that the iteration would lose digits (roots of
    eigenvalues spread over seven orders of magnitude or more), goes through :func:`affscore.affinity_score`. This is so
    for d = 1, for an input or output that does not vary, and where the samples leave nothing to shrink.

    Raises
    ------
    ValueError, TypeError
        As :func:`affscore.affinity_score`.

    Examples
    --------
    >>> x = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))        # (100, 3)
    >>> one, two = affinity_scores([(x, torch.relu(x)), (x, x)])
    >>> abs(one - affinity_score(x, torch.relu(x)).item()) < 1e-10, round(two, 10)
    (True, 1.0)
    """
    checked = [check_pair(x, y) for x, y in pairs]
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, (x, _) in enumerate(checked):
        n, d = x.shape
        groups[n, min(d, 2 * n + 1), x.device].append(place)
    scores = [math.nan] * len(checked)
    for places in groups.values():
        for begin in range(0, len(places), TOGETHER):
            some = places[begin : begin + TOGETHER]
            for place, score in zip(some, _scores([checked[place] for place in some], solve), strict=True):
                scores[place] = score
    return scores


def _scores(pairs: list[tuple[Tensor, Tensor]], solve: Callable[..., Iterable[np.ndarray]]) -> list[float]:
    centred = [(centre(x)[0], centre(y)[0]) for x, y in pairs]
    parts = [_covariances(x, y) for x, y in centred]
    least = torch.stack([part[3] for part in parts]).tolist()
    chosen = [i for i, value in enumerate(least) if value >= _LEAST]  # not where it is NaN
    scores = [math.nan if i in chosen else affinity_score(*pair).item() for i, pair in enumerate(pairs)]
    if not chosen:
        return scores
    maps = _solutions(
        torch.stack([parts[i][0] for i in chosen]),
        torch.stack([parts[i][1] for i in chosen]),
        min(least[i] for i in chosen),
    )
    clouds = [(_image(a, *centred[i]) * parts[i][2], centred[i][1]) for a, i in zip(maps, chosen, strict=True)]
    columns = solve(optimal_partners, [squared_distances(image, y).cpu().numpy() for image, y in clouds])
    found = [
        one_minus_root(image - y[torch.from_numpy(partner).to(y.device)], y.square().sum() / len(y))
        for (image, y), partner in zip(clouds, columns, strict=True)
    ]
    for i, score in zip(chosen, torch.stack(found).tolist(), strict=True):
        scores[i] = score
    return scores


def _covariances(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """S_X and S_Y, each divided by a bound of its norm; the factor by which that changes A; and the least root.

    The least root is a lower bound of those of the eigenvalues of the product of the scaled matrices, which are at
    most 1. Where d > 2 n the matrices act on coefficients c of vectors ``J^T c``, J holding the samples of x, then y.
    """
    n, d = x.shape
    if d <= 2 * n:
        products, rows = (x.T @ x, y.T @ y), (slice(None), slice(None))
        places = products
    else:
        joint = torch.cat([x, y])
        gram = joint @ joint.T
        rows = slice(n), slice(n, None)
        products = gram[:n, :n], gram[n:, n:]
        places = gram[:n], gram[n:]
    scaled, ridges, bounds = [], [], []
    for cloud, product, row, place in zip((x, y), products, rows, places, strict=True):
        norms = cloud.square().sum(dim=1)
        s = shrinkage_from(norms, product, d)
        ridge = s * norms.sum() / (n * d)
        bound = ridge + (1 - s) / n * torch.linalg.matrix_norm(product)
        matrix = torch.eye(min(d, 2 * n), dtype=x.dtype, device=x.device) * (ridge / bound)
        matrix[row] += (1 - s) / (n * bound) * place
        scaled.append(matrix)
        ridges.append(ridge / bound)
        bounds.append(bound)
    return scaled[0], scaled[1], (bounds[1] / bounds[0]).sqrt(), (ridges[0] * ridges[1]).sqrt()


def _image(a: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x @ A, where ``a`` is A or acts on coefficients."""
    n, d = x.shape
    return x @ a if d <= 2 * n else a[:, :n].T @ torch.cat([x, y])


def _solutions(s_x: Tensor, s_y: Tensor, least: float) -> Tensor:
    """The solutions A of A S_X A = S_Y for a stack of pairs, shape (pairs, k, k)."""
    for scale in scales(least):
        w = torch.matmul(s_x, s_y).mul_(-(scale**3) / 2)
        w.diagonal(dim1=-2, dim2=-1).add_(1.5 * scale)
        s_y, s_x = torch.matmul(s_y, w), torch.matmul(w, s_x)
    return s_y


def scales(least: float) -> Iterator[float]:
    """The factor of each step, which maps [least, 1] to a shorter interval that ends at 1, until that is a point.

    In terms of roots of eigenvalues a step is ``t -> (3 r t - (r t)^3) / 2``. The best r makes both ends equal.
    """
    while True:
        scale = math.sqrt(3 / (1 + least + least**2))
        yield scale
        if 1 - least < 1e-8:  # the error of a step is about the square of that before it
            return
        least = scale * least * (3 - (scale * least) ** 2) / 2
