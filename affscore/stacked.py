"""The affinity scores of many calls at once, on the device where their samples lie.

A graphics card multiplies matrices fast and is slow at eigenvalues and assignments. This module therefore computes
the map from products and Cholesky factors alone, guesses the assignment, and proves the guess. For one call, whose
centred samples X, Y (n, d) have the shrunk covariances ``S = w X^T X + r I`` of :mod:`affscore.affine`:

1.  ``B_X`` has the rows sqrt(w) X above sqrt(r) I, so ``S_X = B_X^T B_X``; R is the Cholesky factor, ``S_Y = R^T R``.
2.  ``B_X A = Q R``, where Q is the orthogonal polar factor of ``B = B_X R^T``: the map is
    ``A = R^T (R S_X R^T)^-1/2 R``, and ``Q = B (B^T B)^-1/2``. The first n rows of Q R, divided by sqrt(w), are the
    images of the samples.
3.  Q is the limit of ``B <- B (a + b G + c G^2)`` with ``G = B^T B``. A step takes each singular value s of B to
    ``a s + b s^3 + c s^5``; its coefficients take the whole interval in which s can lie as close to 1 as possible.
    The least possible s is known beforehand: ``s^2 >= r_X r_Y``. Each step forms G anew and corrects the rounding
    of earlier ones, so that the loss of digits depends on the ratio of the singular values and not on its square.
4.  The assignment p is guessed: each image's nearest output, if these are all different, otherwise its own output. With
    the costs C it is optimal if there are potentials f with ``f_i - f_j <= C[i, p_j] - C[j, p_j]`` for all i and j.
    The lengths of shortest paths satisfy this, and ``f_i <- min_j (C[i, p_j] - C[j, p_j] + f_j)`` leads to them. By
    duality, the mean cost of p exceeds the least by no more than the mean by which such a step still lowers f. Only
    costs without that proof go to the processor.

If d >= 2 n, all of this is done in 2 n - 2 coordinates, the rows of the Cholesky factor of the products of all samples.

References
----------
Amsel, Persson, Musco and Gower, "The Polar Express: optimal matrix sign methods", 2025: the polynomials of step 3.
Bellman, "On a routing problem", 1958: step 4.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from affscore.affine import SMALL, shrinkage_from
from affscore.coupling import optimal_partners
from affscore.samples import STILL
from affscore.score import TOLERANCE

__all__ = ["PROMISE", "device_name", "most_calls", "stacked_scores"]

#: How closely a score that is returned agrees with that of :func:`affscore.affinity_score`.
PROMISE = 1e-9
# Each thing that can move a score may take up this much of the promise.
_SHARE = PROMISE / 10
# The least ratio of the singular values of B. Rounding moves the images of the smallest by 2e-16 divided by it.
_RATIO = 1e-6
# How far Q^T Q may be from the identity: it is a few units of rounding wherever the steps have converged.
_ORTHOGONAL = 1e-12
# The processor's map comes from squares, and its own score is then off by up to this over the square of that ratio and
# over the distance. (8e-23 for calls of ResNet-50 with n = 512, beside maps without squares, from which the scores here
# differ by 3e-11 at most.)
_SQUARES = 1e-22
# The least share of the samples' own covariance after shrinkage; images lose the digits of its root.
_OWN = 1e-6
# Of 82 calls of trained and random networks this many steps prove 76.
_STEPS = 24
_EPS = float(np.finfo(np.float64).eps)
# About a quarter of a gigabyte for the largest of a stack's matrices, of which there are eight at a time.
_ENTRIES = 1 << 25


def device_name(device: torch.device) -> str:
    """The name of a device in provenance and in :data:`affscore.score_queue.STACKED`: the card's, or ``"cpu"``."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def most_calls(n: int, d: int) -> int:
    """How many calls of that shape to score at once: as many as fill the device without filling its memory."""
    k = min(d, 2 * n)
    return max(1, _ENTRIES // ((n + k) * max(n, k)))


@torch.no_grad()
def stacked_scores(x: Tensor, y: Tensor, rounding_x: Tensor, rounding_y: Tensor) -> Tensor:
    """The scores (``"ledoit_wolf"``) of stacked calls, float64 of shape (calls,) in the processor's memory.

    ``x`` and ``y``, (calls, n, d), are inputs and outputs on one device that has float64; ``rounding_x`` and
    ``rounding_y``, (calls, d), say how far rounding moves a value of each channel, as
    :func:`affscore.samples.rounding_of`.

    A number agrees with :func:`affscore.affinity_score` to :data:`PROMISE`, and rounding of the samples has moved it by
    no more than :data:`affscore.score.TOLERANCE`. Where this is not sure there is NaN: that call is for the processor,
    where it may have a score. Among such are d = 1, outliers that leave little to shrink, channels that are shrunk to
    one and the same variance, scores close to 1, and values that are not finite.
    """
    (x, limit_x), (y, limit_y) = _centred(x, rounding_x), _centred(y, rounding_y)
    n, d = x.shape[1:]
    spread = y.square().sum((1, 2)) / n
    x, y, factors = _coordinates(x, y)
    image, stretch, ratio, sure = _images(x, y, d)
    sure &= factors
    cost = torch.baddbmm(image.square().sum(2, keepdim=True) + y.square().sum(2)[:, None], image, y.mT, alpha=-2)
    partners, gap = _guess(cost)
    distance = _distance(image, y, partners, spread)
    # A mean cost that is off by e moves the distance, its root, by e times this.
    slope = 1 / (4 * spread * distance)
    sure &= 16 * _EPS * cost.abs().amax((1, 2)) * slope <= _SHARE
    # As affscore.score estimates it, by the trace of the map, which bounds how far it stretches anything.
    moved = (limit_y.square().sum(1) + limit_x.square().sum(1) * stretch.square()) / spread
    sure &= torch.maximum(distance, moved.sqrt()) - (distance.square() - moved).clamp_min(0).sqrt() <= TOLERANCE
    unproved = sure & ~(2 * gap * slope <= _SHARE)
    if bool(unproved.any()):
        partners[unproved] = _assigned(cost[unproved])
        distance = _distance(image, y, partners, spread)
    sure &= _SHARE * ratio.square() * distance >= _SQUARES
    if d >= 2 * n:
        sure &= distance > SMALL
    return torch.where(sure, 1 - distance, torch.nan).cpu()


def _centred(value: Tensor, rounding: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`affscore.samples.centre` does it: the samples, and their rounding in the same units."""
    centred, limit = value.double(), rounding.double()
    outer = _inverse_power(centred.abs().amax((1, 2)))
    centred, limit = centred * outer[:, None, None], limit * outer[:, None]
    for _ in range(2):
        centred = centred - centred.mean(1, keepdim=True)
    reach = centred.abs().amax(1)
    centred = torch.where((reach <= STILL * limit)[:, None], 0.0, centred)
    inner = _inverse_power(reach.amax(1))
    return centred * inner[:, None, None], limit * inner[:, None]


def _inverse_power(largest: Tensor) -> Tensor:
    """One over a power of two above each magnitude, clipped to the range of floating-point numbers."""
    return torch.ldexp(torch.ones_like(largest), -torch.frexp(largest).exponent.clamp(-1000, 1000))


def _coordinates(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both clouds in fewer than 2 n coordinates, as :func:`affscore.affine.coordinates` by products, and whether it is
    safe."""
    n, d = x.shape[1:]
    if d < 2 * n:
        return x, y, x.new_ones(len(x), dtype=torch.bool)
    others = torch.cat([y[:, :-1], x[:, :-1]], 1)  # the samples are centred: the last follows from the others
    products = others @ others.mT
    diagonal = products.diagonal(dim1=1, dim2=2)
    sizes = diagonal[:, : n - 1].sum(1, keepdim=True), diagonal[:, n - 1 :].sum(1, keepdim=True)
    diagonal += _EPS * others.shape[1] / n * sum(sizes)
    inside, failed = torch.linalg.cholesky_ex(products)
    parts = inside[:, n - 1 :], inside[:, : n - 1]
    x, y = (torch.cat([part, -part.sum(1, keepdim=True)], 1) for part in parts)
    # The number added to the diagonal has to be small beside each of the clouds.
    alike = torch.minimum(*sizes) > 1e-3 * torch.maximum(*sizes)
    return x, y, (failed == 0) & alike.flatten()


class _Normal(NamedTuple):
    """The product X^T X of each call, and w and r of its covariance, of shape (calls, 1, 1)."""

    product: Tensor
    weight: Tensor
    ridge: Tensor


def _normal(samples: Tensor, d: int) -> _Normal:
    """The covariances of centred samples in d dimensions, given in k coordinates."""
    n, norms, product = samples.shape[1], samples.square().sum(2), samples.mT @ samples
    s = torch.vmap(functools.partial(shrinkage_from, d=d))(norms, product)
    return _Normal(product, (1 - s)[:, None, None] / n, (s * norms.sum(1) / (n * d))[:, None, None])


def _images(x: Tensor, y: Tensor, d: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The images of the samples of x, the trace of the map, a bound for the ratio of the singular values of B, and for
    which calls these are as exact as promised."""
    (n, k), cloud_x, cloud_y = x.shape[1:], _normal(x, d), _normal(y, d)
    one = torch.eye(k, dtype=x.dtype, device=x.device)
    root, failed = torch.linalg.cholesky_ex(cloud_y.weight * cloud_y.product + cloud_y.ridge * one, upper=True)
    scale_x, scale_one = cloud_x.weight.sqrt(), cloud_x.ridge.sqrt()
    q, ratio = _polar(torch.cat([scale_x * (x @ root.mT), scale_one * root.mT], 1), cloud_x.ridge * cloud_y.ridge)
    apart = (q.mT @ q - one).abs().amax((1, 2))
    sure = (failed == 0) & (ratio >= _RATIO) & (apart <= _ORTHOGONAL) & (n * cloud_x.weight.flatten() >= _OWN)
    trace = (q[:, n:] * root.mT).sum((1, 2)) / scale_one.flatten()
    return q[:, :n] @ root / scale_x, trace, ratio, sure


def _polar(b: Tensor, least: Tensor) -> tuple[Tensor, Tensor]:
    """The orthogonal polar factor of matrices B, and a bound from below for the ratio of their singular values.

    ``least``, (calls, 1, 1), bounds the squares of the singular values from below.
    """
    one = torch.eye(b.shape[2], dtype=b.dtype, device=b.device)
    gram = b.mT @ b
    largest = torch.linalg.matrix_norm(gram @ gram, keepdim=True).sqrt()  # the fourth root of the sum of their powers
    b = b / largest.sqrt()
    for first, second, third in quintics(_RATIO):
        gram = b.mT @ b
        b = b @ (first * one + second * gram + third * (gram @ gram))
    return b, (least / largest).sqrt().flatten()


@functools.cache
def quintics(lower: float) -> tuple[tuple[float, float, float], ...]:
    """Coefficients (a, b, c) of polynomials ``a s + b s^3 + c s^5`` that one after the other take [lower, 1] to 1.

    >>> s = 1e-3
    >>> for a, b, c in quintics(1e-3):
    ...     s = a * s + b * s**3 + c * s**5
    >>> abs(s - 1) < 1e-15
    True
    """
    steps, upper = [], 1.0
    while upper - lower > 1e-2:
        *coefficients, error = _best_quintic(lower, upper)
        steps.append(tuple(coefficients))
        lower, upper = 1 - error, 1 + error
    # Two derivatives of this one vanish at 1, so that it cubes the error that is left: 5e-3, 3e-7, nothing.
    return (*steps, *[(15 / 8, -10 / 8, 3 / 8)] * 2)  # type: ignore[arg-type]


def _best_quintic(lower: float, upper: float) -> tuple[float, float, float, float]:
    """The odd quintic closest to 1 on [lower, upper], and its largest error, by the algorithm of Remez.

    Its error has one size and alternating signs at both ends and at the two extrema between them.
    """
    inner = [lower + (upper - lower) / 4, lower + 3 * (upper - lower) / 4]
    for _ in range(100):
        points = np.array([lower, *inner, upper])
        matrix = np.stack([points, points**3, points**5, [1, -1, 1, -1]], axis=1)
        a, b, c, error = np.linalg.solve(matrix, np.ones(4)).tolist()
        root = math.sqrt(9 * b * b - 20 * a * c)
        inner = [math.sqrt((-3 * b + sign * root) / (10 * c)) for sign in (-1, 1)]
    return a, b, c, abs(error)


def _guess(cost: Tensor) -> tuple[Tensor, Tensor]:
    """An assignment for each of the costs (calls, n, n), and a bound of how far its mean cost exceeds the least."""
    nearest = cost.argmin(2)
    own = torch.arange(cost.shape[1], device=cost.device).expand_as(nearest)
    different = (nearest.sort(1).values == own).all(1, keepdim=True)
    partners = torch.where(different, nearest, own)
    of_partner = cost.gather(2, partners[:, None].expand_as(cost))
    potential = of_partner.diagonal(dim1=1, dim2=2)
    reduced = of_partner - potential[:, None]
    for _ in range(_STEPS):
        last, potential = potential, (reduced + potential[:, None]).amin(2)
    return partners, (last - potential).mean(1)


def _assigned(cost: Tensor) -> Tensor:
    """The optimal assignments, by the processor: all costs travel in one copy."""
    held = torch.empty(cost.shape, dtype=cost.dtype, pin_memory=cost.is_cuda).copy_(cost)
    return torch.from_numpy(np.stack([optimal_partners(each) for each in held.numpy()])).to(cost.device)


def _distance(image: Tensor, y: Tensor, partners: Tensor, spread: Tensor) -> Tensor:
    """The distances of images from their partners, in units of the outputs' spread."""
    apart = image - y.gather(1, partners[:, :, None].expand_as(y))
    return (apart.square().sum((1, 2)) / (2 * y.shape[1] * spread)).sqrt()
