"""The affine optimal transport map between the normal approximations of two clouds of samples.

For samples ``X`` and ``Y`` with means ``m`` and covariances ``S`` it is ``T(x) = A (x - m_X) + m_Y`` with
``A = S_Y^1/2 (S_Y^1/2 S_X S_Y^1/2)^-1/2 S_Y^1/2``. The inverse root is restricted to the range of its argument, which
is the limit of a vanishing relative ridge. The book's chapter ``theory`` derives it.

The map is computed as follows. With square roots ``S = R^T R`` and the eigenvalues
``R_Y S_X R_Y^T = U diag(sigma)^2 U^T``, the map is ``A = Z Z^T`` with ``Z = R_Y^T U diag(sigma)^-1/2``. Where squaring
would lose digits, sigma and U come from the singular value decomposition ``R_Y R_X^T = U diag(sigma) V^T``, and no
covariance is squared. All computations take place in the span of the centred samples, of dimension at most ``2 n``,
because shrinkage only adds a multiple of the identity. So no ``d x d`` matrix is formed when ``d`` is large. Scores
of clouds with many channels come from :mod:`affscore.wide` instead where they can.

References
----------
Bouniot et al., CVPR 2025 (:mod:`affscore.score`): Theorem 3.3 (the map).
Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", 2004.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from affscore.arguments import check_choice
from affscore.arrays import (
    constant_of,
    identity,
    is_tensor,
    namespace,
    needs_gradient,
    of_kind,
    on_one_thread,
    sum_of_squares,
)
from affscore.samples import centre, check_pair, check_samples, power_of_two

__all__ = ["COVARIANCES", "AffineMap", "affine_map", "shrinkage"]

COVARIANCES = ("ledoit_wolf", "empirical")

_EPS = float(np.finfo(np.float64).eps)
#: If R R^T has eigenvalues below this fraction of the largest, squaring loses too many digits, and the SVD is used.
SAFE_TO_SQUARE = 1e-12
#: The same fraction for scores near 1.
PRECISE = 1e-9
#: A distance is the root of a square that is off by rounding: below this it needs the samples and a more precise map.
SMALL = 1e-2


def shrinkage_from(norms: Any, product: Any, d: int) -> Any:
    """The Ledoit-Wolf coefficient, in [0, 1], of n centred samples in d dimensions.

    ``norms`` holds their squared norms (n,). ``product`` is X X^T or X^T X for their coordinates X (n, k); both have
    the same Frobenius norm (Ledoit and Wolf 2004, section 3.2).
    """
    n, xp = len(norms), namespace(norms)
    if d == 1:
        return 0 * norms.sum()
    frobenius = sum_of_squares(product) / n**2
    mu = norms.sum() / (n * d)
    delta = xp.clip(frobenius - d * mu * mu, 0, None)
    beta = xp.clip((xp.square(norms).sum() / n - frobenius) / n, 0, None)
    safe = xp.where(delta > 0, delta, 1.0)
    return xp.where(delta > 0, xp.minimum(beta, delta) / safe, 0.0)


def weight_and_ridge(norms: Any, product: Any, d: int) -> tuple[Any, Any]:
    """The two numbers of the shrunk covariance ``weight * X^T X + ridge * I``; arguments as :func:`shrinkage_from`."""
    s, n = shrinkage_from(norms, product, d), len(norms)
    # Full shrinkage would give the weight 0, whose root has no derivative.
    return namespace(norms).clip(1 - s, 1e-14, None) / n, s * norms.sum() / (n * d)


@on_one_thread
def shrinkage(x: Any) -> Any:
    """The Ledoit-Wolf shrinkage coefficient of samples ``x``, shape (n, d) or (n,); a float64 number in [0, 1].

    The shrunk covariance is ``(1 - s) S + s tr(S)/d I``. The result is a tensor for a tensor, otherwise a NumPy
    scalar; errors are those of :func:`affinity_score`.

    >>> round(shrinkage([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).item(), 3)
    0.944
    """
    centred = centre(check_samples(x, "x"))[0]
    n, d = centred.shape
    product = centred @ centred.T if n < d else centred.T @ centred
    return shrinkage_from(namespace(centred).square(centred).sum(axis=1), product, d)[()]


def coordinates(x: Any, y: Any, basis: bool = False) -> tuple[Any, Any, Any]:
    """Both clouds in an orthonormal basis of their joint span if 2 n <= d, and the basis if ``basis`` is True.

    There are then 2 n coordinates. A derivative may treat the basis as constant: by reflection symmetry, moving a
    sample out of the span does not change the score to first order.
    """
    n, d = x.shape
    if d < 2 * n:
        return x, y, None
    joint = namespace(x).concatenate([x, y])
    if basis or needs_gradient(joint):
        q = namespace(x).linalg.qr(constant_of(joint).T)[0]
        inside = joint @ q
        return inside[:n], inside[n:], q
    inside = _triangle(joint.T).T
    return inside[:n], inside[n:], None


def _triangle(matrix: Any) -> Any:
    """The factor R of the QR decomposition."""
    found = namespace(matrix).linalg.qr(matrix, mode="r")
    return found[1] if is_tensor(matrix) else found


class Cloud(NamedTuple):
    """Centred samples (n, k) with covariance ``weight * samples^T samples + ridge * I``.

    ``product`` is samples^T samples if it has been computed.
    """

    samples: Any
    weight: Any
    ridge: Any
    product: Any = None

    def root(self) -> Any:
        """A differentiable R with R^T R = S: the scaled samples, stacked on a scaled identity if there is a ridge."""
        xp = namespace(self.samples)
        rows = xp.sqrt(self.weight) * self.samples
        if not self.ridge > 0:
            return rows
        return xp.concatenate([rows, xp.sqrt(self.ridge) * identity(rows.shape[1], rows)])

    def covariance(self) -> Any:
        """The covariance S, of shape (k, k)."""
        product = self.samples.T @ self.samples if self.product is None else self.product
        return self.weight * product + self.ridge * identity(len(product), product)


def normal(samples: Any, d: int, covariance: str) -> Cloud:
    """The cloud of centred samples (n, k) in d dimensions, whose other d - k coordinates are 0."""
    n, k = samples.shape
    xp = namespace(samples)
    if covariance == "empirical":
        one = of_kind(1.0, samples)
        return Cloud(samples, one / n, 0 * one)
    norms = xp.square(samples).sum(axis=1)
    product = samples @ samples.T if n < k else samples.T @ samples
    return Cloud(samples, *weight_and_ridge(norms, product, d), None if n < k else product)


def _short_root(cloud: Cloud) -> Any:
    """A matrix R with R^T R = S and at most k rows."""
    samples, ridge = cloud.samples, cloud.ridge
    if ridge > 0:
        covariance = cloud.covariance()
        if ridge > SAFE_TO_SQUARE * covariance.trace():
            return namespace(samples).linalg.cholesky(covariance).T
    rows = cloud.root()
    return _triangle(rows) if rows.shape[0] > rows.shape[1] else rows


def rounding_floor(sizes: Any, n: int, square_x: Any, square_y: Any) -> Any:
    """The size below which a singular value of a product ``Y X^T`` is rounding; ``sizes`` holds them, descending.

    ``n`` is the larger side of the product. Its rounding errors have the size of its factors, whose sums of squares are
    ``square_x`` and ``square_y``, and do not shrink with the product where its terms cancel.
    """
    xp = namespace(sizes)
    return _EPS * xp.maximum(n * sizes[0], 4 * xp.sqrt(square_x * square_y))


def map_factor(x: Cloud, y: Cloud, precise: bool = False) -> tuple[Any, Any]:
    """Z (k, r) and sigma (r,) with A = Z Z^T and Z^T S_X Z = diag(sigma); r is the numerical rank.

    Sigma ascends where it comes from the eigenvalues of a squared matrix, and descends where it comes from the SVD.

    With ``precise``, covariances are squared only if this loses no digit that matters for a score near 1.
    """
    xp = namespace(x.samples)
    (n, k), root = x.samples.shape, _short_root(y)
    if (x.ridge > 0 and y.ridge > 0) or k < n:  # otherwise the matrix is singular
        values, left = xp.linalg.eigh(root @ x.covariance() @ root.T)
        if values[0] > (PRECISE if precise else SAFE_TO_SQUARE) * values[-1]:
            sigma = xp.sqrt(values)
            return root.T @ (left / xp.sqrt(sigma)), sigma
    other = _short_root(x)
    left, sigma, _ = xp.linalg.svd(root @ other.T, full_matrices=False)
    keep = sigma > rounding_floor(sigma, max(len(root), n), sum_of_squares(root), sum_of_squares(other))
    left, sigma = left[:, keep], sigma[keep]
    return root.T @ (left / xp.sqrt(sigma)), sigma


class AffineMap:
    """The affine optimal transport map ``T(v) = A (v - mean_x) + mean_y`` fitted by :func:`affine_map`.

    ``A`` is symmetric positive semi-definite. It is stored as a multiple of the identity plus a matrix of rank at
    most 2 n, so that products never need a (d, d) matrix. The map is constant: gradients flow only to its argument.
    The book's chapter ``theory`` derives it.

    Attributes
    ----------
    mean_x, mean_y
        Means of the two samples, float64, shape (d,); tensors if the map was fitted to tensors, otherwise arrays.
    offset
        ``mean_y - A mean_x``, float64, shape (d,): ``T(v) = A v + offset``.
    """

    def __init__(self, mean_x: Any, mean_y: Any, factor: Any, basis: Any, outside: Any):
        self.mean_x, self.mean_y = mean_x, mean_y
        self._factor, self._basis, self._outside = factor, basis, outside
        self.offset = mean_y - self.matvec(mean_x)

    def __repr__(self) -> str:
        d, basis = len(self.mean_x), self._basis
        outside = d - basis.shape[1] if basis is not None and self._outside > 0 else 0
        return f"AffineMap(d={d}, rank={self._factor.shape[1] + outside})"

    def matvec(self, v: Any) -> Any:
        """``A v`` for vectors of shape (d,) or (m, d), float64 of the same shape; a tensor if v or mean_x is one."""
        v = self._points(v)
        factor = of_kind(self._factor, v)
        if self._basis is None:
            return (v @ factor) @ factor.T
        basis, outside = of_kind(self._basis, v), of_kind(self._outside, v)
        inside = v @ basis
        change = (inside @ factor) @ factor.T - outside * inside
        return outside * v + change @ basis.T

    def __call__(self, v: Any) -> Any:
        """``T(v)`` for points of shape (d,) or (m, d), float64 of the same shape; a tensor if v or mean_x is one."""
        v = self._points(v)
        return self.matvec(v - of_kind(self.mean_x, v)) + of_kind(self.mean_y, v)

    def _points(self, v: Any) -> Any:
        if is_tensor(v) and not is_tensor(self.mean_x):
            v = v.to(sys.modules["torch"].float64)
        else:
            v = of_kind(v, self.mean_x)
        d = len(self.mean_x)
        if v.ndim not in (1, 2) or v.shape[-1] != d:
            raise ValueError(f"v has shape {tuple(v.shape)}; it should be ({d},) or (m, {d}).")
        return v

    def matrix(self) -> Any:
        """``A`` as a dense float64 matrix of shape (d, d), which takes memory d^2."""
        return self.matvec(identity(len(self.mean_x), self.mean_x))


@on_one_thread
def affine_map(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> AffineMap:
    """The affine optimal transport map between the normal approximations of ``x`` and ``y`` (Theorem 3.3).

    The book's chapter ``theory`` derives it. Arguments and errors are those of :func:`affinity_score`. If ``x``
    does not vary in some direction and there is no shrinkage, the map is the limit of a vanishing ridge on the
    covariance of ``x``, and its rank is at most that of ``x``: ``T(x)`` then has only a part of the spread of ``y``.

    >>> x = np.random.default_rng(0).normal(size=(100, 2))                      # (100, 2)
    >>> a = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> fitted = affine_map(x, x @ a + 5, covariance="empirical")
    >>> [[round(v, 6) for v in row] for row in fitted.matrix().tolist()]
    [[2.0, 1.0], [1.0, 3.0]]
    >>> [round(v, 6) for v in fitted([0.0, 0.0]).tolist()]
    [5.0, 5.0]
    """
    check_choice("covariance", covariance, COVARIANCES)
    x, y = map(constant_of, check_pair(x, y))
    d, xp = x.shape[1], namespace(x)
    x, mean_x, exponent_x = centre(x)
    y, mean_y, exponent_y = centre(y)
    inside_x, inside_y, basis = coordinates(x, y, basis=True)
    cloud_x, cloud_y = normal(inside_x, d, covariance), normal(inside_y, d, covariance)
    ridge_x, ridge_y = cloud_x.ridge, cloud_y.ridge
    outside = xp.where(ridge_x > 0, xp.sqrt(ridge_y / xp.where(ridge_x > 0, ridge_x, 1.0)), 0.0)
    if bool(x.any()) and bool(y.any()):
        factor, _ = map_factor(cloud_x, cloud_y, precise=True)
    else:
        factor = inside_x[:0].T
    scale = power_of_two(exponent_y - exponent_x)
    return AffineMap(mean_x, mean_y, factor * xp.sqrt(scale), basis, outside * scale)
