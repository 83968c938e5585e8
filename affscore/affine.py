"""The affine optimal transport map between the normal approximations of two clouds of samples.

For samples ``X`` and ``Y`` with means ``m`` and covariances ``S`` it is ``T(x) = A (x - m_X) + m_Y`` with
``A = S_Y^1/2 (S_Y^1/2 S_X S_Y^1/2)^-1/2 S_Y^1/2``. The inverse root is restricted to the range of its argument, which
is the limit of a vanishing relative ridge. The book's chapter ``theory`` derives it.

It is computed as follows. With square roots ``S = R^T R`` and the singular value decomposition
``R_Y R_X^T = U diag(sigma) V^T`` the map is ``A = Z Z^T`` with ``Z = R_Y^T U diag(sigma)^-1/2``: covariances are
never squared or inverted. Everything happens in the span of the centred samples, of dimension at most ``2 n``,
because shrinkage only adds a multiple of the identity, so no ``d x d`` matrix is formed when ``d`` is large.

References
----------
Bouniot et al., CVPR 2025 (:mod:`affscore.score`): Theorem 3.3 (the map).
Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", 2004.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from affscore.arguments import check_choice
from affscore.samples import centre, check_pair, check_samples, on_one_thread, power_of_two

__all__ = ["COVARIANCES", "AffineMap", "affine_map", "shrinkage"]

COVARIANCES = ("ledoit_wolf", "empirical")

_EPS = torch.finfo(torch.float64).eps
# Eigenvalues of R R^T below this fraction of the largest would lose too many digits to the square: use the SVD.
_SAFE_TO_SQUARE = 1e-9


def shrinkage_from(norms: Tensor, product: Tensor, d: int) -> Tensor:
    """The Ledoit-Wolf coefficient, in [0, 1], of n centred samples in d dimensions.

    It takes their squared norms (n,) and, of their coordinates X (n, k), the product X X^T or X^T X: both have the same
    Frobenius norm (Ledoit and Wolf 2004, section 3.2).
    """
    n = len(norms)
    if d == 1:
        return norms.new_zeros(())
    frobenius = product.square().sum() / n**2
    mu = norms.sum() / (n * d)
    delta = (frobenius - d * mu.square()).clamp_min(0)
    beta = ((norms.square().sum() / n - frobenius) / n).clamp_min(0)
    safe = torch.where(delta > 0, delta, 1.0)
    return torch.where(delta > 0, torch.minimum(beta, delta) / safe, 0.0)


@on_one_thread
def shrinkage(x: Any) -> Tensor:
    """The Ledoit-Wolf shrinkage coefficient of samples ``x``, shape (n, d) or (n,); a float64 number in [0, 1].

    The shrunk covariance is ``(1 - s) S + s tr(S)/d I``. Errors are those of :func:`affinity_score`.

    >>> round(shrinkage([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).item(), 3)
    0.944
    """
    centred = centre(check_samples(x, "x"))[0]
    n, d = centred.shape
    product = centred @ centred.T if n < d else centred.T @ centred
    return shrinkage_from(centred.square().sum(dim=1), product, d)


def coordinates(x: Tensor, y: Tensor, basis: bool = False) -> tuple[Tensor, Tensor, Tensor | None]:
    """Both clouds in an orthonormal basis (d, 2 n) of their joint span if 2 n <= d, and the basis if ``basis`` is True.

    A derivative may treat the basis as constant: by reflection symmetry, moving a sample out of the span does not
    change the score to first order.
    """
    n, d = x.shape
    if d < 2 * n:
        return x, y, None
    joint = torch.cat([y, x])
    if basis or joint.requires_grad:
        q = torch.linalg.qr(joint.detach().T).Q
        inside = joint @ q
    else:
        q, inside = None, torch.linalg.qr(joint.T, mode="r").R.T
    return inside[n:], inside[:n], q


class Cloud(NamedTuple):
    """Centred samples (n, k) with covariance ``weight * samples^T samples + ridge * I``."""

    samples: Tensor
    weight: Tensor
    ridge: Tensor

    def root(self) -> Tensor:
        """R with R^T R = S, differentiable: the scaled samples and, if there is a ridge, a multiple of the identity."""
        rows = self.weight.sqrt() * self.samples
        if not self.ridge > 0:
            return rows
        return torch.cat([rows, self.ridge.sqrt() * torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)])


def normal(samples: Tensor, d: int, covariance: str) -> Cloud:
    """Centred samples (n, k), in k of d coordinates, with their covariance in d dimensions; the others are 0."""
    n, k = samples.shape
    if covariance == "empirical":
        return Cloud(samples, samples.new_full((), 1 / n), samples.new_zeros(()))
    norms = samples.square().sum(dim=1)
    s = shrinkage_from(norms, samples @ samples.T if n < k else samples.T @ samples, d)
    # Where all is shrunk the root of a weight of 0 would have no derivative.
    return Cloud(samples, (1 - s).clamp_min(1e-14) / n, s * norms.sum() / (n * d))


def _short_root(cloud: Cloud) -> Tensor:
    """R with R^T R = S and at most k rows."""
    samples, weight, ridge = cloud
    if ridge > 0:
        covariance = weight * (samples.T @ samples)
        if ridge > _SAFE_TO_SQUARE * covariance.diagonal().sum():
            covariance.diagonal().add_(ridge)
            return torch.linalg.cholesky(covariance, upper=True)
    rows = cloud.root()
    return torch.linalg.qr(rows, mode="r").R if rows.shape[0] > rows.shape[1] else rows


def map_factor(x: Cloud, y: Cloud) -> tuple[Tensor, Tensor]:
    """Z (k, r) and sigma (r,) with A = Z Z^T and Z^T S_X Z = diag(sigma); r is the numerical rank."""
    root = _short_root(y)
    half = root @ x.samples.T  # R_Y S_X R_Y^T needs no root of S_X
    squares, left = torch.linalg.eigh(x.weight * half @ half.T + x.ridge * root @ root.T)
    if squares[0] > _SAFE_TO_SQUARE * squares[-1]:
        sigma = squares.sqrt()
    else:
        cross = root @ _short_root(x).T
        left, sigma, _ = torch.linalg.svd(cross, full_matrices=False)
        keep = sigma > max(cross.shape) * _EPS * sigma[0]
        left, sigma = left[:, keep], sigma[keep]
    return root.T @ (left / sigma.sqrt()), sigma


class AffineMap:
    """The affine optimal transport map ``T(v) = A (v - mean_x) + mean_y`` fitted by :func:`affine_map`.

    ``A`` is symmetric positive semi-definite. It is stored as a multiple of the identity plus a matrix of rank at
    most 2 n, so that products never need a (d, d) matrix. The map is a constant: gradients flow to its argument.
    The book's chapter ``theory`` derives it.

    Attributes
    ----------
    mean_x, mean_y
        Means of the two samples, float64, shape (d,).
    offset
        ``mean_y - A mean_x``, float64, shape (d,): ``T(v) = A v + offset``.
    """

    def __init__(self, mean_x: Tensor, mean_y: Tensor, factor: Tensor, basis: Tensor | None, outside: Tensor):
        self.mean_x, self.mean_y = mean_x, mean_y
        self._factor, self._basis, self._outside = factor, basis, outside
        self.offset = mean_y - self.matvec(mean_x)

    def __repr__(self) -> str:
        d, basis = len(self.mean_x), self._basis
        outside = d - basis.shape[1] if basis is not None and self._outside > 0 else 0
        return f"AffineMap(d={d}, rank={self._factor.shape[1] + outside})"

    def matvec(self, v: Any) -> Tensor:
        """``A v`` for vectors of shape (d,) or (m, d); float64 of the same shape."""
        v = self._points(v)
        if self._basis is None:
            return (v @ self._factor) @ self._factor.T
        inside = v @ self._basis
        change = (inside @ self._factor) @ self._factor.T - self._outside * inside
        return self._outside * v + change @ self._basis.T

    def __call__(self, v: Any) -> Tensor:
        """``T(v)`` for points of shape (d,) or (m, d); float64 of the same shape."""
        return self.matvec(self._points(v) - self.mean_x) + self.mean_y

    def _points(self, v: Any) -> Tensor:
        v = torch.as_tensor(v).to(self._factor)
        d = len(self.mean_x)
        if v.ndim not in (1, 2) or v.shape[-1] != d:
            raise ValueError(f"v has shape {tuple(v.shape)}; it should be ({d},) or (m, {d}).")
        return v

    def matrix(self) -> Tensor:
        """``A`` as a dense float64 matrix of shape (d, d). Needs memory d^2."""
        return self.matvec(torch.eye(len(self.mean_x), dtype=torch.float64, device=self.mean_x.device))


@on_one_thread
@torch.no_grad()
def affine_map(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> AffineMap:
    """The affine optimal transport map between the normal approximations of ``x`` and ``y`` (Theorem 3.3).

    The book's chapter ``theory`` derives it. Arguments and errors are those of :func:`affinity_score`. If ``x``
    does not vary in some direction and nothing is shrunk, the map is the limit for a vanishing ridge on its covariance,
    restricted to the rank of ``x``: ``T(x)`` then has only as much of the spread of ``y`` as ``x`` can reach.

    >>> import torch
    >>> x = torch.randn(100, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))     # (100, 2)
    >>> a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    >>> fitted = affine_map(x, x @ a + 5, covariance="empirical")
    >>> [[round(v, 6) for v in row] for row in fitted.matrix().tolist()]
    [[2.0, 1.0], [1.0, 3.0]]
    >>> [round(v, 6) for v in fitted([0.0, 0.0]).tolist()]
    [5.0, 5.0]
    """
    check_choice("covariance", covariance, COVARIANCES)
    x, y = check_pair(x, y)
    d = x.shape[1]
    x, mean_x, exponent_x = centre(x)
    y, mean_y, exponent_y = centre(y)
    inside_x, inside_y, basis = coordinates(x, y, basis=True)
    cloud_x, cloud_y = normal(inside_x, d, covariance), normal(inside_y, d, covariance)
    ridge_x, ridge_y = cloud_x.ridge, cloud_y.ridge
    outside = torch.where(ridge_x > 0, (ridge_y / torch.where(ridge_x > 0, ridge_x, 1.0)).sqrt(), 0.0)
    if bool(x.any()) and bool(y.any()):
        factor, _ = map_factor(cloud_x, cloud_y)
    else:
        factor = x.new_zeros((inside_x.shape[1], 0))
    scale = power_of_two(exponent_y - exponent_x)
    return AffineMap(mean_x, mean_y, factor * scale.sqrt(), basis, outside * scale)
