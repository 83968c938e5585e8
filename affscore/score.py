"""The affinity score: how close is ``y`` to being an affine image of ``x``?

The book's chapter ``theory`` explains every step. In short, for samples ``X`` and ``Y`` (row ``i`` of ``Y`` is
the output for row ``i`` of ``X``), where ``S_Y`` is the covariance of ``Y``:

1.  ``T`` is the affine optimal transport map between the normal approximations (:mod:`affscore.affine`).
2.  ``W2`` is the exact optimal-transport distance between the two clouds ``{T(x_i)}`` and ``{y_j}``.
3.  ``score = 1 - sqrt(W2^2 / (2 tr S_Y))``.

References
----------
Bouniot et al., "From Alexnet to Transformers: Measuring the Non-linearity of Deep Neural Networks with Affine
Optimal Transport", CVPR 2025: Proposition 3.5 (the bound), equation 5 (the score).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from affscore.affine import COVARIANCES, Cloud, coordinates, map_factor, normal
from affscore.arguments import check_choice
from affscore.coupling import partners
from affscore.errors import warn
from affscore.samples import (
    STILL,
    centre,
    check_pair,
    exponent,
    largest_magnitude,
    on_one_thread,
    power_of_two,
    rounding_of,
)

__all__ = ["SHIFT", "affinity_score", "paired_affinity_score", "score_and_shift", "wasserstein2"]

#: A score that rounding can move by more than this is no measurement: a signature leaves it out, a function warns.
SHIFT = 0.005


class _Image(torch.autograd.Function):
    """``R_X A`` for roots of the covariances, ``S = R^T R``, and Z and sigma of :func:`map_factor`, ``A = Z Z^T``.

    It equals ``W^T R_Y`` with the polar factor ``W = U V^T`` of ``R_Y R_X^T = U diag(sigma) V^T``: the affine image
    only re-mixes the rows of R_Y. The derivative of a polar factor divides by sums of singular values, not by their
    differences, so equal ones do no harm.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, z: Tensor, sigma: Tensor) -> Tensor:
        ctx.save_for_backward(x, y, z, sigma)
        return (x @ z) @ z.T

    @staticmethod
    @once_differentiable
    @on_one_thread
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, y, z, sigma = ctx.saved_tensors
        v = (x @ z) / sigma.sqrt()
        u = y @ (x.T @ v) / sigma
        uy, vx, vg = u.T @ y, v.T @ x, v.T @ grad
        inner = uy @ vg.T
        inner = (inner - inner.T) / (sigma[:, None] + sigma)
        uy_, vg_ = uy / sigma[:, None], vg / sigma[:, None]
        # The gradient of G = y x^T is U inner V^T + U uy_ (grad - V vg)^T + (y - U uy) vg_^T V^T.
        grad_y = u @ (inner @ vx + uy_ @ (grad - v @ vg).T @ x) + (y - u @ uy) @ (vg_.T @ vx)
        grad_x = v @ (inner.T @ uy + vg_ @ ((y - u @ uy).T @ y)) + (grad - v @ vg) @ (uy_.T @ uy)
        return grad_x, u @ vg + grad_y, None, None


def _image(x: Cloud, y: Cloud, z: Tensor, sigma: Tensor) -> Tensor:
    """The images of the samples of x under the affine map ``A = Z Z^T``."""
    if not (x.samples.requires_grad or y.samples.requires_grad):
        return (x.samples @ z) @ z.T
    return _Image.apply(x.root(), y.root(), z, sigma)[: len(x.samples)] / x.weight.sqrt()


def score_and_shift(
    x: Tensor,
    y: Tensor,
    covariance: str,
    rounding: tuple[Tensor, Tensor],
    paired: bool = False,
    entries: float = 1.0,
) -> tuple[Tensor, float]:
    """The score of checked samples, and how far their rounding can have moved it.

    ``rounding`` says how far rounding moves a value of each channel of x and of y, both of shape (d,), as
    :func:`affscore.samples.rounding_of`; channels that vary by no more are left out, and so are, if it matters and
    nothing is shrunk, directions in which x varies by no more. If the true score is 1, the square
    of the distance that is measured is the sum over the channels of the variance of y's rounding, and of x's, as the
    affine map stretches it. A larger distance is moved less, since squares add up.

    ``entries`` is the number of entries of which a value of x is the mean. The rounding of many entries mostly cancels,
    which ``rounding`` counts on; that of equal entries, such as a picture's background, does not. So where nothing is
    shrunk, that of a single entry counts. Between the two a direction is left out or not, and what this changes counts
    as moved by rounding.
    """
    (x, _, power_x), (y, _, power_y) = centre(x, rounding[0]), centre(y, rounding[1])
    powers = zip(rounding, (power_x, power_y), strict=True)
    limits = [limit.detach().to(torch.float64) * power_of_two(-power) for limit, power in powers]
    spread = y.square().sum() / len(y)
    if not bool(spread > 0):
        # Undefined: 0 / 0. The sums keep the result attached to the graph, with zero gradients.
        return (x.sum() + y.sum()) * 0 + float("nan"), 0.0
    mean, limits[0] = limits[0], limits[0] * (entries**0.5 if covariance == "empirical" else 1.0)
    distance, shift = _distance(x, y, spread, covariance, limits, paired)
    if shift > SHIFT and covariance == "empirical":
        # Without shrinkage the map stretches directions in which x is only rounding to the spread of y.
        distance, shift = _distance(_without_rounding(x, limits[0]), y, spread, covariance, limits, paired)
        if entries > 1:
            other, _ = _distance(_without_rounding(x, mean), y, spread, covariance, limits, paired)
            shift = max(shift, abs(float(other - distance)))
    return 1 - distance, shift


def _distance(
    x: Tensor, y: Tensor, spread: Tensor, covariance: str, limits: list[Tensor], paired: bool
) -> tuple[Tensor, float]:
    """The distance of centred samples from the best affine image, and by how much rounding can have raised it."""
    d = x.shape[1]
    x, y, _ = coordinates(x, y)
    cloud_x, cloud_y = normal(x, d, covariance), normal(y, d, covariance)
    with torch.no_grad():
        z, sigma = map_factor(cloud_x, cloud_y)
    image = _image(cloud_x, cloud_y, z, sigma)
    residual = image - (y if paired else y[partners(image, y)])
    distance = _root(residual.square().sum() / (2 * len(residual) * spread))
    with torch.no_grad():
        return distance, _shift(distance, spread, z, *limits)


def _without_rounding(x: Tensor, limit: Tensor) -> Tensor:
    """Centred samples without the directions in which they vary by no more than rounding, as channels are left out.

    Such directions are many where a layer has more channels than inputs. They are found with each channel in units of
    its rounding.
    """
    unit = torch.where(limit > 0, limit, 1.0)
    scaled = x / unit
    _, sizes, directions = torch.linalg.svd(scaled.detach(), full_matrices=False)
    kept = directions[sizes > STILL * len(x) ** 0.5].T
    return (scaled @ kept) @ kept.T * unit


def _shift(distance: Tensor, spread: Tensor, z: Tensor, limit_x: Tensor, limit_y: Tensor) -> float:
    """By how much rounding can have raised the distance, when the map is ``A = Z Z^T`` and tr S_Y is ``spread``."""
    own, squares = limit_y.square().sum(), limit_x.square()
    # The trace of A bounds how far A stretches anything, and is at hand.
    shift = _part(distance, (own + squares.sum() * z.square().sum().square()) / spread)
    if shift > SHIFT:
        stretched = (z @ (z.T @ z) * z).sum(dim=1)  # the diagonal of A^2
        # In coordinates of the joint span channels have no axis of their own, and the mean over all stands for each.
        through = squares @ stretched if len(z) == len(squares) else squares.mean() * stretched.sum()
        shift = _part(distance, (own + through) / spread)
    return shift


def _part(distance: Tensor, square: Tensor) -> float:
    """The part of a distance that is due to rounding, whose own distance has this square."""
    return float(distance - (distance.square() - square).clamp_min(0).sqrt())


def _score(x: Any, y: Any, covariance: str, paired: bool) -> Tensor:
    check_choice("covariance", covariance, COVARIANCES)
    x, y = check_pair(x, y)
    score, shift = score_and_shift(x, y, covariance, (rounding_of(x), rounding_of(y)), paired)
    if shift > SHIFT:
        kinds = " and ".join(sorted({str(value.dtype).removeprefix("torch.") for value in (x, y)}))
        advice = "subtract their means where they are made" if kinds == "float64" else "compute them in float64"
        warn(
            f"x and y vary so little beside their size that rounding in {kinds} can have moved the score by "
            f"{shift:.2g}; {advice}."
        )
    return score


def _root(value: Tensor) -> Tensor:
    """The root of a number that is not negative, with the derivative 0 at 0, where the true one is infinite."""
    return torch.where(value > 0, torch.where(value > 0, value, 1.0).sqrt(), 0.0)


@on_one_thread
def affinity_score(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> Tensor:
    """The affinity score of ``y`` with respect to ``x`` (equation 5 of the paper).

    The book's chapter ``theory`` explains it, ``blind_spots`` shows what it does not see.

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
        A float64 tensor of shape () on the device of ``x``, differentiable in ``x`` and ``y``; NaN where ``y`` does
        not vary. With ``"empirical"`` it lies in [0, 1], and is 1 where the two clouds differ by a positive
        semi-definite affine map. With shrinkage such clouds score below 1, the fewer the samples the more, unless the
        map scales all directions alike; the score can be negative for small heavy-tailed samples and is not clipped.

    Raises
    ------
    ValueError
        If a shape is wrong, n < 2, a value is NaN or infinite, or ``covariance`` is unknown.
    TypeError
        If ``x`` or ``y`` does not hold real numbers.

    Warns
    -----
    AffscoreWarning
        (a UserWarning) If rounding in the dtype of the samples can have moved the score by more than 0.005, because
        they vary so little beside their size.

    Notes
    -----
    The score sees only the two clouds, not which input went to which output: permuting the rows of ``y`` does not
    change it. :func:`paired_affinity_score` sees the pairing. Exact transport solves an assignment problem, which
    takes memory n^2 and at worst time n^3 (for d = 1 a sort is enough).

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))     # (500, 3)
    >>> round(affinity_score(x, 2 * x + 1, covariance="empirical").item(), 6)   # affine, so 1
    1.0
    >>> bool(affinity_score(x, torch.relu(x)) < affinity_score(x, torch.relu(x + 2)))
    True

    With shrinkage even an exactly affine map scores below 1, when samples are few. So read a score beside that of the
    linear twin, straight lines with the same means and variances:

    >>> from affscore.companions import linear_twin
    >>> x = torch.randn(60, 40, generator=torch.Generator().manual_seed(0))     # (60, 40)
    >>> y = x * torch.linspace(0.05, 2, 40)                                     # affine
    >>> round(affinity_score(x, y).item(), 2), round(affinity_score(x, linear_twin(x, y)).item(), 2)
    (0.76, 0.76)
    """
    return _score(x, y, covariance, paired=False)


@on_one_thread
def paired_affinity_score(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> Tensor:
    """The affinity score with each ``T(x_i)`` compared to its own output ``y_i`` instead of the best partner.

    It is ``1 - sqrt(mean |T(x_i) - y_i|^2 / (2 tr S_Y))``, in [1 - sqrt(2), 1] without shrinkage. So it does see the
    pairing and never exceeds :func:`affinity_score`. It is not the score that the paper defines. The book's chapter
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

    The book's chapter ``theory`` explains it. The result is a float64 tensor of shape (), in the units of ``x``,
    differentiable where the coupling is unique. Arguments and errors are those of :func:`affinity_score`.

    >>> round(wasserstein2([0.0, 1.0], [3.0, 2.0]).item(), 12)       # sorted: 0 -> 2, 1 -> 3
    2.0
    """
    x, y = (value.to(torch.float64) for value in check_pair(x, y))
    scale = torch.maximum(exponent(largest_magnitude(x)), exponent(largest_magnitude(y)))
    # A common translation changes no distance, and without large offsets the costs lose no digits.
    x, y = torch.ldexp(x, -scale), torch.ldexp(y, -scale)
    middle = (x.detach().mean(dim=0) + y.detach().mean(dim=0)) / 2
    x, y = x - middle, y - middle
    square = (x - y[partners(x, y)]).square().sum() / len(x)
    return torch.ldexp(_root(square), scale)
