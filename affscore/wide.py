"""The distance of a score from inner products of samples, for clouds with at least as many channels as samples.

The affine map of :mod:`affscore.affine` takes the samples X to images of which only inner products matter. With the
products ``X X^T``, ``Y Y^T`` and ``X Y^T`` everything has n or 2 n coordinates, whatever the number of channels:

1.  Without shrinkage, ``Y X^T = U diag(s) V^T`` gives the images ``V U^T Y``: the map only re-mixes the outputs.
2.  With shrinkage, the Cholesky factor of the products of all samples holds coordinates of all samples. The first ones
    suffice for Y. With ``S_Y = R^T R``, where R is a multiple of the identity on the other coordinates, and
    ``R S_X R^T = U diag(sigma)^2 U^T``, the images are ``X R^T U diag(sigma)^-1 U^T R``.

Products of samples hold squares of distances, so a distance loses half of its digits. The result is therefore None
where digits are lost that matter, and the caller takes the samples themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from affscore.affine import SAFE_TO_SQUARE, SMALL, rounding_floor, weight_and_ridge
from affscore.arrays import identity, namespace, needs_gradient, sum_of_squares, to_numpy
from affscore.coupling import optimal_partners

__all__ = ["distance_from_products"]

_EPS = float(np.finfo(np.float64).eps)


class _Images(NamedTuple):
    """The images of n samples: their inner products with the outputs, (n, n), and the sum of their squared norms.

    ``stretch`` bounds the sum over all channels of the squares by which the map stretches equal errors of x.
    """

    products: Any
    total: Any
    stretch: Any


def distance_from_products(x: Any, y: Any, covariance: str, paired: bool) -> tuple[float, float] | None:
    """The distance of centred samples (n, d) from their best affine image, in units of the outputs' spread.

    The second number bounds the sum over the channels of the squares by which the affine map stretches errors of x, as
    large in each channel. The result is None if the clouds have fewer channels, if a gradient may be asked for, or if
    the distance needs more digits.
    """
    n, d = x.shape
    if d < (2 * n if covariance == "ledoit_wolf" else n) or needs_gradient(x, y):
        return None
    own = y @ y.T
    images = (_shrunk if covariance == "ledoit_wolf" else _plain)(x, y, own)
    if images is None:
        return None
    products, norms = to_numpy(images.products), to_numpy(own).diagonal()
    # The norms are the same for every coupling. With them the nearest outputs are more often all different.
    partners = np.arange(n) if paired else optimal_partners(norms - 2 * products)
    square = float(images.total) + norms.sum() - 2 * products[np.arange(n), partners].sum()
    distance = float(np.sqrt(max(square, 0.0) / (2 * norms.sum())))
    return (distance, float(images.stretch)) if distance > SMALL else None


def _plain(x: Any, y: Any, own: Any) -> _Images:
    """The images without shrinkage."""
    # Eigenvalues of the square would be faster, but in most calls of real networks they lose too many digits.
    u, s, vh = namespace(x).linalg.svd(y @ x.T)
    keep = s > rounding_floor(s, len(x), sum_of_squares(x), own.trace())
    u, s, v = u[:, keep], s[keep], vh[keep].T
    inner = u.T @ own
    squares = (inner * u.T).sum(axis=1)
    return _Images(v @ inner, squares.sum(), (squares / s).sum() ** 2)  # the trace of the map bounds its norm


def _shrunk(x: Any, y: Any, own: Any) -> _Images | None:
    """The images with shrinkage."""
    (n, d), xp = x.shape, namespace(x)
    products, cross = x @ x.T, y @ x.T
    (weight_x, ridge_x), (weight_y, ridge_y) = (weight_and_ridge(part.diagonal(), part, d) for part in (products, own))
    if not (ridge_x > 0 and ridge_y > 0):
        return None
    # The samples are centred, so the last one follows from the others.
    yy, yx, xx = (part[: n - 1, : n - 1] for part in (own, cross, products))
    joint = xp.concatenate([xp.concatenate([yy, yx], 1), xp.concatenate([yx.T, xx], 1)])
    # The added diagonal has the size of rounding, so that samples of lower rank have a Cholesky factor too. Each cloud
    # gets one of its own size: a diagonal of the size of the larger cloud would drown the other.
    first, rest = xp.arange(n - 1), xp.arange(n - 1, 2 * n - 2)
    joint[first, first] += 2 * _EPS * yy.trace()
    joint[rest, rest] += 2 * _EPS * xx.trace()
    try:
        inside = xp.linalg.cholesky(joint)
        parts = inside[: n - 1, : n - 1], inside[n - 1 :]
        inside_y, inside_x = (xp.concatenate([part, -part.sum(axis=0)[None]]) for part in parts)
        root = xp.linalg.cholesky(weight_y * inside_y.T @ inside_y + ridge_y * identity(n - 1, joint)).T
    except xp.linalg.LinAlgError:
        return None
    half = xp.concatenate([root @ inside_x[:, : n - 1].T, xp.sqrt(ridge_y) * inside_x[:, n - 1 :].T])
    square = weight_x * half @ half.T
    square[: n - 1, : n - 1] += ridge_x * root @ root.T
    square[rest, rest] += ridge_x * ridge_y
    values, u = xp.linalg.eigh(square)
    if not values[0] > SAFE_TO_SQUARE * values[-1]:
        return None
    mixed = half.T @ (u / xp.sqrt(values))
    first = mixed @ u[: n - 1].T
    image = first @ root
    total = sum_of_squares(image) + ridge_y * (sum_of_squares(mixed) - sum_of_squares(first))
    # A S_X A = S_Y, and no eigenvalue of S_X lies below its ridge.
    return _Images(image @ inside_y.T, total, own.trace() / n / ridge_x)
