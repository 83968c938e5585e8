"""What two networks' features say about each other, and the best maps between them in closed form.

:class:`Moments` of the features are enough for :func:`least_squares` (any rank) and :func:`assignment` (permutation and
scales).

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendix D.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from affscore_book.kit.checking import square_matrix

__all__ = ["SMALLEST_SCALE", "Moments", "assignment", "best_scales", "explained", "hungarian", "least_squares"]

#: A scale of 0 would leave the group, so a channel that should vanish is scaled by this.
SMALLEST_SCALE = 1e-6


@dataclass(frozen=True)
class Moments:
    """Sums over images and pixels of the products of two networks' channels, float64.

    ``xx`` (inputs, inputs), ``yx`` (outputs, inputs), ``yy`` (outputs,) squares only, ``x`` (inputs,), ``y``
    (outputs,), and the number of pixels ``count``. The closed-form stitches need nothing else of the features.
    """

    count: int
    x: Tensor
    y: Tensor
    xx: Tensor
    yx: Tensor
    yy: Tensor

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Moments:
        """Of the first network's features (n, inputs, H, W) and the second's (n, outputs, H, W).

        Raises ValueError if the shapes do not fit.

        >>> Moments.of(torch.ones(4, 3, 2, 2), torch.ones(4, 5, 2, 2)).yx.shape
        torch.Size([5, 3])
        """
        if x.ndim != 4 or y.ndim != 4 or x.shape[0] != y.shape[0] or x.shape[2:] != y.shape[2:]:
            raise ValueError(
                f"x has shape {tuple(x.shape)} and y {tuple(y.shape)}; they should be (n, inputs, H, W) and "
                "(n, outputs, H, W) with the same n, H and W."
            )
        one, other = (value.detach().permute(1, 0, 2, 3).flatten(1).double() for value in (x, y))
        return cls(one.shape[1], one.sum(1), other.sum(1), one @ one.T, other @ one.T, other.square().sum(1))

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, name) + getattr(other, name) for name in ("count", "x", "y", "xx", "yx", "yy")))

    def correlation(self) -> Tensor:
        """Pearson correlations of the second network's channels with the first's, (outputs, inputs).

        0 for a dead channel, one whose standard deviation is below 1e-6 of its root mean square, or 0.
        """
        n = self.count
        covariance = self.yx / n - torch.outer(self.y / n, self.x / n)
        inverse = []
        for square, total in ((self.xx.diagonal() / n, self.x), (self.yy / n, self.y)):
            variance = square - (total / n) ** 2
            alive = variance > 1e-12 * square
            inverse.append(torch.where(alive, torch.where(alive, variance, 1.0).rsqrt(), 0.0))
        return inverse[1][:, None] * covariance * inverse[0]


def least_squares(moments: Moments, rank: int | None = None) -> Tensor:
    """The matrix M (outputs, inputs), of at most the given rank, with the smallest sum of |y - M x|^2. Float64.

    Without a bound it is ``yx xx^+``. With one it is projected on the leading eigenvectors of ``M xx M^T``, which is
    reduced-rank regression (Izenman 1975). Directions in which x hardly varies (1e-10 of the largest) are left out.

    >>> x = torch.randn(50, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> bool((least_squares(Moments.of(x, 2 * x)) - 2 * torch.eye(3)).abs().max() < 1e-12)
    True
    """
    matrix = moments.yx @ torch.linalg.pinv(moments.xx, rtol=1e-10, hermitian=True)
    if rank is None:
        return matrix
    vectors = torch.linalg.eigh(matrix @ moments.xx @ matrix.T).eigenvectors[:, -rank:]
    return vectors @ (vectors.T @ matrix)


def assignment(moments: Moments) -> tuple[Tensor, Tensor]:
    """The permutation of channels with the largest sum of correlations, int64, and its :func:`best_scales`, float64.

    Both of shape (channels,): output i is ``scale[i]`` times input ``permutation[i]``.

    Raises ValueError if the numbers of channels differ.
    """
    permutation = hungarian(moments.correlation())
    return permutation, best_scales(moments, permutation)


def best_scales(moments: Moments, permutation: Tensor) -> Tensor:
    """The best positive scales for a permutation, float64 (channels,).

    Output i is the i-th scale times input ``permutation[i]``, by regression without intercept; at least 1e-6.

    >>> x = torch.rand(50, 2, 2, 2, generator=torch.Generator().manual_seed(0))
    >>> best_scales(Moments.of(x, 3 * x.flip(1)), torch.tensor([1, 0])).round().tolist()
    [3.0, 3.0]
    """
    chosen = moments.xx.diagonal()[permutation]
    along = moments.yx.gather(1, permutation[:, None]).squeeze(1)
    alive = chosen > 0
    return torch.where(alive, along / torch.where(alive, chosen, 1.0), 1.0).clamp(min=SMALLEST_SCALE)


def explained(matrix: Tensor, moments: Moments) -> float:
    """The share of the second network's variance that a stitch (outputs, inputs) explains: 1 at y = M x, at most 1.

    One minus the sum of |y - M x|^2 over the sum of |y - mean of y|^2, over all channels.

    >>> x = torch.randn(50, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    >>> round(explained(torch.eye(3), Moments.of(x, x)), 12)
    1.0
    """
    m = matrix.detach().double()
    total = moments.yy.sum() - moments.y.square().sum() / moments.count
    left = moments.yy.sum() - 2 * (m * moments.yx).sum() + (m @ moments.xx * m).sum()
    return float(1 - left / total)


def hungarian(matrix: Tensor) -> Tensor:
    """The permutation pi with the largest sum of ``matrix[i, pi[i]]``, int64 (n,), for a matrix (n, n).

    >>> hungarian(torch.tensor([[0.6, 0.4], [0.5, 0.1]]))
    tensor([1, 0])
    """
    square_matrix("matrix", matrix)
    return torch.from_numpy(linear_sum_assignment(matrix.double().cpu().numpy(), maximize=True)[1]).to(matrix.device)
