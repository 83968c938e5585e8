"""The affinity score: how far is ``y`` from being an affine image of ``x``?

The book's chapter on theory explains every step. In short, for samples ``X`` and ``Y`` (row ``i`` of ``Y`` is
the output for row ``i`` of ``X``) with means ``m`` and covariances ``S``:

1.  ``T(x) = A (x - m_X) + m_Y`` with ``A = S_Y^1/2 (S_Y^1/2 S_X S_Y^1/2)^-1/2 S_Y^1/2`` is the affine optimal
    transport map between the normal approximations. The inverse root is cut to the rank of its argument, which is
    the limit of a vanishing relative ridge.
2.  ``W2`` is the exact optimal-transport distance between the two clouds ``{T(x_i)}`` and ``{y_j}``.
3.  ``score = 1 - sqrt(W2^2 / (2 tr S_Y))``.

How it is computed here. With square roots ``S = R^T R`` and the singular value decomposition
``R_Y R_X^T = U diag(sigma) V^T`` the map is ``A = Z Z^T`` with ``Z = R_Y^T U diag(sigma)^-1/2``: covariances are
never squared or inverted. Everything happens in the span of the centred samples, of dimension at most ``2 n``,
because shrinkage only adds a multiple of the identity, so no ``d x d`` matrix is formed when ``d`` is large.

References
----------
Bouniot et al., "From Alexnet to Transformers: Measuring the Non-linearity of Deep Neural Networks with Affine
Optimal Transport", CVPR 2025: Theorem 3.3 (the map), Proposition 3.5 (the bound), equation 5 (the score).
Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", 2004.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from affscore.coupling import partners
from affscore.samples import (
    centre,
    check_pair,
    check_samples,
    exponent,
    largest_magnitude,
    on_one_thread,
    power_of_two,
)  # fmt: skip

__all__ = [
    "COVARIANCES",
    "AffineMap",
    "affine_map",
    "affinity_score",
    "paired_affinity_score",
    "shrinkage",
    "wasserstein2",
]

COVARIANCES = ("ledoit_wolf", "empirical")

_EPS = torch.finfo(torch.float64).eps
# Eigenvalues of R R^T below this fraction of the largest would lose too many digits to the square: use the SVD.
_SAFE_TO_SQUARE = 1e-9


def _check_covariance(covariance: str) -> None:
    if covariance not in COVARIANCES:
        raise ValueError(f"covariance is {covariance!r}; it should be one of {', '.join(map(repr, COVARIANCES))}.")


def shrinkage_from(norms: Tensor, product: Tensor, d: int) -> Tensor:
    """The Ledoit-Wolf coefficient, in [0, 1], of n centred samples that live in a subspace of dimension d.

    From their squared norms (n,) and either of their products, (n, n) or (d, d): |S|_F = |Gram / n|_F
    (Ledoit and Wolf 2004, section 3.2).
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


def _coordinates(x: Tensor, y: Tensor, basis: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Both clouds in an orthonormal basis of their joint span where that is no larger than d, and that basis.

    Its first n vectors span y: the other coordinates of y are 0. The basis may be held constant in a derivative: the
    score does not change to first order when a sample leaves the span, by reflection symmetry.
    """
    n = len(x)
    if x.shape[1] < 2 * n:
        return x, y, None
    joint = torch.cat([y, x])
    if basis or joint.requires_grad:
        q = torch.linalg.qr(joint.detach().T).Q
        coordinates = joint @ q
    else:
        q, coordinates = None, torch.geqrf(joint.T)[0].T[:, : 2 * n].tril()  # R, transposed
    return coordinates[n:], coordinates[:n], q


class _Cloud(NamedTuple):
    """Centred samples (n, k) with covariance ``weight * samples^T samples + ridge * I``; that product for an output."""

    samples: Tensor
    weight: Tensor
    ridge: Tensor
    product: Tensor | None = None  # of the coordinates that are not 0


def _root(cloud: _Cloud) -> Tensor:
    """R with R^T R = S, with at most k rows."""
    samples, weight, ridge, product = cloud
    k = samples.shape[1]
    rows = weight.sqrt() * samples
    if ridge > 0:
        covariance = weight * (samples.T @ samples if product is None else product)
        if ridge > _SAFE_TO_SQUARE * covariance.diagonal().sum():
            covariance.diagonal().add_(ridge)
            return torch.linalg.cholesky(covariance, upper=True)
        rows = torch.cat([rows, ridge.sqrt() * torch.eye(k, dtype=rows.dtype, device=rows.device)])
    return torch.linalg.qr(rows, mode="r").R if rows.shape[0] > k else rows


def _map_factor(x: _Cloud, y: _Cloud) -> tuple[Tensor, Tensor]:
    """Z (k, r) and sigma (r,) with A = Z Z^T and Z^T S_X Z = diag(sigma); r is the numerical rank."""
    if y.product is not None and y.ridge > 0:
        y = y._replace(samples=y.samples[:, : len(y.product)])
    root, rest = _root(y), y.ridge.sqrt()

    def times(root: Tensor, matrix: Tensor) -> Tensor:
        """R_Y matrix, where R_Y is the root and, for coordinates in which y is 0, ``rest * I``."""
        k = root.shape[1]
        return torch.cat([root @ matrix[:k], rest * matrix[k:]]) if k < len(matrix) else root @ matrix

    core = None if x.ridge > 0 else times(root, _root(x).T)
    if core is None:  # R_Y S_X R_Y^T, without a root of S_X
        half = times(root, x.samples.T)
        square = x.weight * half @ half.T
        square[: len(root), : len(root)] += x.ridge * root @ root.T
        square.diagonal()[len(root) :] += x.ridge * y.ridge
    else:
        square = core @ core.T
    squares, left = torch.linalg.eigh(square)
    if squares[0] > _SAFE_TO_SQUARE * squares[-1]:
        sigma = squares.sqrt()
    else:
        core = times(root, _root(x).T) if core is None else core
        left, sigma, _ = torch.linalg.svd(core, full_matrices=False)
        keep = sigma > max(core.shape) * _EPS * sigma[0]
        left, sigma = left[:, keep], sigma[keep]
    return times(root.T, left / sigma.sqrt()), sigma


class _AffineImage(torch.autograd.Function):
    """x -> x @ A for centred samples, where S = weight * samples^T samples + ridge * I for both clouds.

    The products samples^T samples are handed over because they are there already; no derivative is taken for them.

    The derivative uses no differences of singular values, so equal ones do no harm:

    - With ridges, A solves A S_X A = S_Y. Differentiating that gives, in the basis Z, a Lyapunov equation with a
      diagonal coefficient: dA = Z [(N^T dS_Y N - Z^T dS_X Z)_ij / (sigma_i + sigma_j)] Z^T, N = S_X Z / sigma.
    - Without, x A = W^T y where W = U V^T is the polar factor of weight * y x^T: the affine image only re-mixes the
      samples of y. The derivative of a polar factor has the same denominators, also where n <= d.
    """

    @staticmethod
    def forward(ctx: Any, *parts: Any) -> Tensor:
        x, y = _Cloud(*parts[:4]), _Cloud(*parts[4:])
        z, sigma = _map_factor(x, y)
        ctx.save_for_backward(*x[:3], *y[:3], z, sigma)
        return (x.samples @ z) @ z.T

    @staticmethod
    @once_differentiable
    @on_one_thread
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight_x, ridge_x, y, weight_y, ridge_y, z, sigma = ctx.saved_tensors
        n = (weight_x * (x.T @ (x @ z)) + ridge_x * z) / sigma
        if not ridge_x and not ridge_y:
            grad_x, grad_y = _through_polar_factor(x, y, grad, weight_x, weight_y, z, n, sigma)
            return grad_x, None, None, None, grad_y, None, None, None
        through = grad @ z
        inner = (x @ z).T @ through
        inner = (inner + inner.T) / (2 * (sigma[:, None] + sigma))

        def pull(factor: Tensor, samples: Tensor, weight: Tensor, sign: float) -> tuple[Tensor, Tensor, Tensor]:
            """The gradients for samples, weight and ridge, given that of S: sign * factor @ inner @ factor.T."""
            half = sign * factor @ inner
            spread = (samples @ half) @ factor.T
            return 2 * weight * spread, (spread * samples).sum(), (half * factor).sum()

        grad_x, *rest_x = pull(z, x, weight_x, -1.0)
        return grad_x + through @ z.T, *rest_x, None, *pull(n, y, weight_y, 1.0), None


def _through_polar_factor(
    x: Tensor, y: Tensor, grad: Tensor, weight_x: Tensor, weight_y: Tensor, z: Tensor, n: Tensor, sigma: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of W^T y for x and y, with thin singular vectors U, V of sqrt(weight_x weight_y) y x^T."""
    v = weight_x.sqrt() * (x @ z) / sigma.sqrt()
    u = weight_y.sqrt() * (y @ n) / sigma.sqrt()
    uy, vx, vg = u.T @ y, v.T @ x, v.T @ grad
    inner = uy @ vg.T
    inner = (inner - inner.T) / (sigma[:, None] + sigma)
    uy_, vg_ = uy / sigma[:, None], vg / sigma[:, None]
    # The gradient for G = y x^T is U inner V^T + U uy_ (grad - V vg)^T + (y - U uy) vg_^T V^T.
    g_x = u @ (inner @ vx + uy_ @ (grad - v @ vg).T @ x) + (y - u @ uy) @ (vg_.T @ vx)
    g_y = v @ (inner.T @ uy + vg_ @ ((y - u @ uy).T @ y)) + (grad - v @ vg) @ (uy_.T @ uy)
    weight = (weight_x * weight_y).sqrt()
    return weight * g_y, u @ vg + weight * g_x


def _score(x: Any, y: Any, covariance: str, paired: bool) -> Tensor:
    _check_covariance(covariance)
    x, y = check_pair(x, y)
    n, d = x.shape
    x, y = centre(x)[0], centre(y)[0]
    spread = y.square().sum() / n
    if not bool(spread > 0):
        # Undefined: 0 / 0. The sums keep the result attached to the graph, with zero gradients.
        return (x.sum() + y.sum()) * 0 + float("nan")
    x, y, _ = _coordinates(x, y, basis=False)
    cloud_x, cloud_y = _clouds(x, y, d, covariance)
    image = _AffineImage.apply(*cloud_x, *cloud_y)
    return one_minus_root(image - (y if paired else y[partners(image, y)]), spread)


def one_minus_root(residual: Tensor, spread: Tensor) -> Tensor:
    """The score: residuals (n, k) between image and partner, and the trace of the output's covariance."""
    ratio = residual.square().sum() / (2 * len(residual) * spread)
    # At a ratio of exactly 0 the root has no derivative: take 0.
    return 1 - torch.where(ratio > 0, torch.where(ratio > 0, ratio, 1.0).sqrt(), 0.0)


def _clouds(x: Tensor, y: Tensor, d: int, covariance: str) -> tuple[_Cloud, _Cloud]:
    """Both clouds, centred and in :func:`_coordinates`, with their covariances in d dimensions."""
    n, k = x.shape
    if covariance == "empirical":
        weight, ridge = x.new_full((), 1 / n), x.new_zeros(())
        return _Cloud(x, weight, ridge), _Cloud(y, weight, ridge)

    def shrunk(samples: Tensor, product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        norms = samples.square().sum(dim=1)
        s = shrinkage_from(norms, product, d)
        return samples, (1 - s) / n, s * norms.sum() / (n * d)

    leading = y[:, :n] if k == 2 * n else y
    product = leading.T @ leading
    return _Cloud(*shrunk(x, x @ x.T if n < k else x.T @ x)), _Cloud(*shrunk(y, product), product.detach())


@on_one_thread
def affinity_score(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> Tensor:
    """The affinity score of ``y`` with respect to ``x`` (equation 5 of the paper).

    The book's chapter ``theory`` explains it, ``blind_spots`` what it does not see.

    Parameters
    ----------
    x, y
        Inputs and outputs of an activation: NumPy arrays or torch tensors of shape (n, d) or (n,), n >= 2, of any
        real dtype, on the same device. Row ``i`` of ``y`` belongs to row ``i`` of ``x``.
    covariance
        ``"ledoit_wolf"`` shrinks both covariances towards a multiple of the identity (the paper's protocol);
        ``"empirical"`` uses them as they are, normalised by 1/n.

    Returns
    -------
    Tensor
        A float64 tensor without dimensions on the device of ``x``, differentiable in ``x`` and ``y``. It is 1 where
        the two clouds differ by a positive semi-definite affine map, and NaN where ``y`` does not vary. With
        ``"empirical"`` it lies in [0, 1]. With shrinkage it can be negative for small heavy-tailed samples; it is
        not clipped.

    Raises
    ------
    ValueError
        If a shape is wrong, n < 2, a value is NaN or infinite, or ``covariance`` is unknown.
    TypeError
        If ``x`` or ``y`` does not hold real numbers.

    Notes
    -----
    The score sees only the two clouds, not which input went to which output: permuting the rows of ``y`` does not
    change it. :func:`paired_affinity_score` sees the pairing. Exact transport solves an assignment problem, which
    takes memory n^2 and at worst time n^3 (for d = 1 it is a sort).

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))     # (500, 3)
    >>> round(affinity_score(x, 2 * x + 1, covariance="empirical").item(), 6)   # affine, so 1
    1.0
    >>> bool(affinity_score(x, torch.relu(x)) < affinity_score(x, torch.relu(x + 2)))
    True
    """
    return _score(x, y, covariance, paired=False)


@on_one_thread
def paired_affinity_score(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> Tensor:
    """The paired variant: ``1 - sqrt(mean |T(x_i) - y_i|^2 / (2 tr S_Y))``, in [1 - sqrt(2), 1] without shrinkage.

    It compares each ``T(x_i)`` with its own output instead of with the best partner, so it is never above
    :func:`affinity_score`, and it does see the pairing. It is not what the paper defines. The book's chapter
    ``blind_spots`` explains it. Arguments, result and errors are those of :func:`affinity_score`.

    >>> import torch
    >>> x = torch.randn(500, generator=torch.Generator().manual_seed(0))        # (500,)
    >>> round(paired_affinity_score(x, 3 * x).item(), 6), round(affinity_score(x, -x).item(), 1)
    (1.0, 0.9)
    >>> bool(paired_affinity_score(x, -x) < 0)
    True
    """
    return _score(x, y, covariance, paired=True)


@on_one_thread
def wasserstein2(x: Any, y: Any) -> Tensor:
    """The 2-Wasserstein distance between the empirical measures of ``x`` and ``y``, with uniform weights.

    The book's chapter ``theory`` explains it.

    Parameters
    ----------
    x, y
        Arrays or tensors of the same shape (n, d) or (n,), n >= 2.

    Returns
    -------
    Tensor
        A float64 tensor without dimensions, in the units of ``x``, differentiable where the coupling is unique.

    Raises
    ------
    ValueError, TypeError
        As :func:`affinity_score`.

    Examples
    --------
    >>> round(wasserstein2([0.0, 1.0], [3.0, 2.0]).item(), 12)       # sorted: 0 -> 2, 1 -> 3
    2.0
    """
    x, y = (value.to(torch.float64) for value in check_pair(x, y))
    scale = torch.maximum(exponent(largest_magnitude(x)), exponent(largest_magnitude(y)))
    # A common translation changes nothing but keeps large offsets from cancelling in the costs.
    x, y = torch.ldexp(x, -scale), torch.ldexp(y, -scale)
    middle = (x.detach().mean(dim=0) + y.detach().mean(dim=0)) / 2
    x, y = x - middle, y - middle
    square = (x - y[partners(x, y)]).square().sum() / len(x)
    root = torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), 0.0)
    return torch.ldexp(root, scale)


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
        return f"AffineMap(d={len(self.mean_x)}, rank={self._factor.shape[1]})"

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
        """``A`` as a dense float64 matrix of shape (d, d). Takes memory d^2."""
        return self.matvec(torch.eye(len(self.mean_x), dtype=torch.float64, device=self.mean_x.device))


@on_one_thread
@torch.no_grad()
def affine_map(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> AffineMap:
    """The affine optimal transport map between the normal approximations of ``x`` and ``y`` (Theorem 3.3).

    The book's chapter ``theory`` derives it. Arguments and errors are those of :func:`affinity_score`. Where ``x``
    does not vary in some direction and nothing is shrunk, the map is the limit for a vanishing ridge on its covariance,
    restricted to the rank of ``x``: ``T(x)`` then keeps only as much of the spread of ``y`` as ``x`` can reach.

    >>> import torch
    >>> x = torch.randn(100, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))     # (100, 2)
    >>> a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    >>> fitted = affine_map(x, x @ a + 5, covariance="empirical")
    >>> [[round(v, 6) for v in row] for row in fitted.matrix().tolist()]
    [[2.0, 1.0], [1.0, 3.0]]
    >>> [round(v, 6) for v in fitted([0.0, 0.0]).tolist()]
    [5.0, 5.0]
    """
    _check_covariance(covariance)
    x, y = check_pair(x, y)
    d = x.shape[1]
    x, mean_x, exponent_x = centre(x)
    y, mean_y, exponent_y = centre(y)
    x, y, basis = _coordinates(x, y, basis=True)
    cloud_x, cloud_y = _clouds(x, y, d, covariance)
    ridge_x, ridge_y = cloud_x.ridge, cloud_y.ridge
    outside = torch.where(ridge_x > 0, (ridge_y / torch.where(ridge_x > 0, ridge_x, 1.0)).sqrt(), 0.0)
    if bool(x.any()) and bool(y.any()):
        factor, _ = _map_factor(cloud_x, cloud_y)
    else:
        factor = x.new_zeros((x.shape[1], 0))
    scale = power_of_two(exponent_y - exponent_x)
    return AffineMap(mean_x, mean_y, factor * scale.sqrt(), basis, outside * scale)
