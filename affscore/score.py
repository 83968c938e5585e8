"""The affinity score: how close is ``y`` to an affine image of ``x``?

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

from affscore.affine import COVARIANCES, PRECISE, SMALL, Cloud, coordinates, map_factor, normal
from affscore.arguments import check_choice
from affscore.arrays import constant_of, double, namespace, needs_gradient, of_kind, on_one_thread, sum_of_squares
from affscore.coupling import partners
from affscore.errors import warn
from affscore.samples import (
    STILL,
    centre,
    check_pair,
    exponent,
    largest_magnitude,
    power_of_two,
    rounding_of,
)
from affscore.wide import distance_from_products

__all__ = ["TOLERANCE", "affinity_score", "paired_affinity_score", "score_and_error", "wasserstein2"]

#: The largest error by rounding that a score may have. Beyond it a signature omits the score, and a function warns.
TOLERANCE = 0.005


def score_and_error(
    x: Any, y: Any, covariance: str, rounding: tuple[Any, Any], paired: bool = False, entries: float = 1.0
) -> tuple[Any, float]:
    """The score of checked samples, and a bound of its error by rounding.

    ``rounding`` holds the size of the rounding errors in each channel of x and of y, both of shape (d,), as returned
    by :func:`affscore.samples.rounding_of`. Channels that vary by no more than that are left out. Without shrinkage,
    such directions of x are left out too, if they matter. If the true score is 1, the square of the measured distance
    is the sum over the channels of the variance of y's rounding errors and of x's, stretched by the affine map. A
    larger distance changes less, since squares add up. A smaller distance may be one of a map fitted to the errors.

    ``entries`` is the number of entries averaged in a value of x. The rounding errors of many entries mostly cancel,
    and ``rounding`` assumes this; those of equal entries, such as a picture's background, do not. Without shrinkage,
    the rounding error of a single entry is therefore the limit below which a direction is left out. The difference
    between the scores with this limit and with ``rounding`` counts as a change by rounding.
    """
    (x, _, power_x), (y, _, power_y) = centre(x, rounding[0]), centre(y, rounding[1])
    powers = zip(rounding, (power_x, power_y), strict=True)
    limits = [double(constant_of(limit)) * power_of_two(-power) for limit, power in powers]
    spread = sum_of_squares(y) / len(y)
    if not bool(spread > 0):
        # Undefined: 0 / 0. The sums keep the result attached to the graph, with zero gradients.
        return (x.sum() + y.sum()) * 0 + float("nan"), 0.0
    if covariance == "ledoit_wolf":
        distance, error = _distance(x, y, spread, covariance, limits, paired)
        return 1 - distance, error
    of_average = limits[0]
    limits[0] = of_single = of_average * entries**0.5
    distance, error = _distance(x, y, spread, covariance, limits, paired)
    if error > TOLERANCE:
        # Without shrinkage the map stretches directions that hold only rounding errors of x to the spread of y.
        distance, error = _distance(_without_rounding(x, of_single), y, spread, covariance, limits, paired)
        if entries > 1:
            other, _ = _distance(_without_rounding(x, of_average), y, spread, covariance, limits, paired)
            error = max(error, abs(float(other - distance)))
    return 1 - distance, error


def _distance(x: Any, y: Any, spread: Any, covariance: str, limits: list[Any], paired: bool) -> tuple[Any, float]:
    """The distance of centred samples from the best affine image, and the most that rounding can have added to it."""
    found = distance_from_products(x, y, covariance, paired)
    if found:
        distance, stretch = found
        squares = [namespace(limit).square(limit) for limit in limits]
        error = _part(distance, (squares[1].sum() + squares[0].max() * stretch) / constant_of(spread))
        if error <= TOLERANCE:
            return of_kind(distance, x), error
    inside_x, inside_y, _ = coordinates(x, y)
    cloud_x, cloud_y = (normal(inside, x.shape[1], covariance) for inside in (inside_x, inside_y))
    fixed_x, fixed_y = (Cloud(*map(constant_of, cloud)) for cloud in (cloud_x, cloud_y))
    for precise in (False, True):  # again with more digits if the distance turns out to be small
        z, sigma = map_factor(fixed_x, fixed_y, precise)
        image = _image(cloud_x, cloud_y, z, sigma)
        distance = _apart(image, inside_y, spread, paired)
        # Nothing is gained by a second pass if the first squared no covariance that lost digits (sigma ascends) or
        # squared none (sigma descends).
        if distance > SMALL or sigma[0] ** 2 > PRECISE * sigma[-1] ** 2:
            break
    return distance, _error(constant_of(distance), constant_of(spread), z, *limits)


def _image(x: Cloud, y: Cloud, z: Any, sigma: Any) -> Any:
    """The images of the samples of x under the affine map ``A = Z Z^T``, in the coordinates of Z."""
    if needs_gradient(x.samples, y.samples):
        from affscore.gradients import affine_image

        return affine_image(x, y, z, sigma)
    return x.samples @ (z @ z.T) if len(z) < len(x.samples) else (x.samples @ z) @ z.T


def _apart(image: Any, y: Any, spread: Any, paired: bool) -> Any:
    """The distance of images from outputs in units of the outputs' spread."""
    rows = slice(None) if paired else partners(image, y)
    square = sum_of_squares(image - y[rows])
    return _root(square / (2 * len(image) * spread))


def _without_rounding(x: Any, limit: Any) -> Any:
    """Centred samples without the directions in which they vary by no more than rounding.

    A layer with more channels than inputs has many such directions. They are found after dividing each channel by its
    rounding.
    """
    xp = namespace(x)
    unit = xp.where(limit > 0, limit, 1.0)
    scaled = x / unit
    _, sizes, directions = xp.linalg.svd(constant_of(scaled), full_matrices=False)
    kept = directions[sizes > STILL * len(x) ** 0.5].T
    return (scaled @ kept) @ kept.T * unit


def _error(distance: Any, spread: Any, z: Any, limit_x: Any, limit_y: Any) -> float:
    """The most that rounding can have added to the distance, for the map ``A = Z Z^T`` and tr S_Y = ``spread``."""
    xp = namespace(z)
    own, squares = xp.square(limit_y).sum(), xp.square(limit_x)
    # The trace of A bounds the factor by which A stretches a vector, and is cheap.
    error = _part(distance, (own + squares.sum() * xp.square(z).sum() ** 2) / spread)
    if error > TOLERANCE:
        stretched = (z @ (z.T @ z) * z).sum(axis=1)  # the diagonal of A^2
        # The coordinates of the joint span are not channels, so each of them gets the mean over all channels.
        through = squares @ stretched if len(z) == len(squares) else squares.mean() * stretched.sum()
        error = _part(distance, (own + through) / spread)
    return error


def _part(distance: Any, square: Any) -> float:
    """The most by which rounding can have changed a distance, from the squared distance that rounding alone causes.

    Rounding mostly adds to a distance. Where it is larger than the distance, the map may have been fitted to it.
    """
    whole, square = float(distance), float(square)
    return max(whole, square**0.5) - max(whole**2 - square, 0.0) ** 0.5


def _score(x: Any, y: Any, covariance: str, paired: bool) -> Any:
    check_choice("covariance", covariance, COVARIANCES)
    x, y = check_pair(x, y)
    score, error = score_and_error(x, y, covariance, (rounding_of(x), rounding_of(y)), paired)
    if error > TOLERANCE:
        kinds = " and ".join(sorted({str(value.dtype).removeprefix("torch.") for value in (x, y)}))
        narrow = "float16" in kinds or "float32" in kinds
        advice = "compute them in float64" if narrow else "subtract their means where they are made"
        warn(
            f"x and y vary so little relative to their size that rounding in {kinds} can have changed the score by "
            f"{error:.2g}; {advice}."
        )
    return score


def _root(value: Any) -> Any:
    """The square root of a non-negative number, with derivative 0 at 0, where the true derivative is infinite."""
    xp = namespace(value)
    return xp.where(value > 0, xp.sqrt(xp.where(value > 0, value, 1.0)), 0.0)[()]


@on_one_thread
def affinity_score(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> Any:
    """The affinity score of ``y`` with respect to ``x`` (equation 5 of the paper).

    The book's chapter ``theory`` explains the score, and ``blind_spots`` shows its limits.

    Parameters
    ----------
    x, y
        Inputs and outputs of an activation: arrays or lists, or torch tensors on the same device, of shape (n, d) or
        (n,), n >= 2, of any real dtype. Row ``i`` of ``y`` belongs to row ``i`` of ``x``.
    covariance
        ``"ledoit_wolf"`` shrinks both covariances towards a multiple of the identity (the paper's protocol);
        ``"empirical"`` uses the covariances of the samples, normalised by 1/n.

    Returns
    -------
    numpy.float64 or Tensor
        A NumPy scalar for arrays; for tensors, a float64 tensor of shape () on their device, differentiable in ``x``
        and ``y``. The score is NaN if ``y`` does not vary. With ``"empirical"`` it lies in [0, 1], and is 1 if a
        positive semi-definite affine map takes one cloud to the other. With shrinkage such clouds score below 1, and
        lower with fewer samples, unless the map scales all directions alike. The score can then be negative, as for
        heavy tails or for outputs that have little to do with the inputs, and is not clipped.

    Raises
    ------
    ValueError
        If a shape is wrong, n < 2, a value is NaN or infinite, or ``covariance`` is unknown.
    TypeError
        If ``x`` or ``y`` does not hold real numbers.

    Warns
    -----
    AffscoreWarning
        (a UserWarning) If rounding in the dtype of the samples can have changed the score by more than 0.005, because
        the samples vary little relative to their size.

    Notes
    -----
    The score depends only on the two clouds, not on which output belongs to which input: permuting the rows of ``y``
    does not change it. :func:`paired_affinity_score` uses the pairing. Exact transport solves an assignment problem,
    which takes memory n^2 and at worst time n^3 (for d = 1 a sort is enough).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(500, 3))                      # (500, 3)
    >>> round(affinity_score(x, 2 * x + 1, covariance="empirical").item(), 6)   # affine, so 1
    1.0
    >>> bool(affinity_score(x, np.maximum(x, 0)) < affinity_score(x, np.maximum(x + 2, 0)))
    True

    With shrinkage and few samples, even an exactly affine map scores below 1. Compare a score with the score of the
    linear twin, an affine map with the same means and variances:

    >>> from affscore.companions import linear_twin
    >>> x = np.random.default_rng(0).normal(size=(60, 40))                      # (60, 40)
    >>> y = x * np.linspace(0.05, 2, 40)                                        # affine
    >>> round(affinity_score(x, y).item(), 2), round(affinity_score(x, linear_twin(x, y)).item(), 2)
    (0.78, 0.78)
    """
    return _score(x, y, covariance, paired=False)


@on_one_thread
def paired_affinity_score(x: Any, y: Any, *, covariance: str = "ledoit_wolf") -> Any:
    """The affinity score with each ``T(x_i)`` compared to its own output ``y_i`` instead of its best partner.

    It is ``1 - sqrt(mean |T(x_i) - y_i|^2 / (2 tr S_Y))``, which lies in [1 - sqrt(2), 1] without shrinkage. It depends
    on the pairing and never exceeds :func:`affinity_score`. The paper does not define this score. The book's chapter
    ``blind_spots`` explains it. Arguments, return type and errors are those of :func:`affinity_score`.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=500)                           # (500,)
    >>> round(paired_affinity_score(x, 3 * x).item(), 6), round(affinity_score(x, -x).item(), 1)
    (1.0, 0.9)
    >>> bool(paired_affinity_score(x, -x) < 0)
    True
    """
    return _score(x, y, covariance, paired=True)


@on_one_thread
def wasserstein2(x: Any, y: Any) -> Any:
    """The 2-Wasserstein distance between the empirical measures of ``x`` and ``y``, with uniform weights.

    The book's chapter ``theory`` explains it. The result is in the units of ``x``; for tensors it is differentiable
    where the coupling is unique. Arguments, return type and errors are those of :func:`affinity_score`.

    >>> round(wasserstein2([0.0, 1.0], [3.0, 2.0]).item(), 12)       # sorted: 0 -> 2, 1 -> 3
    2.0
    """
    x, y = map(double, check_pair(x, y))
    xp = namespace(x)
    scale = xp.maximum(exponent(largest_magnitude(x)), exponent(largest_magnitude(y)))
    # A common translation changes no distance, and removing a large offset saves digits of the costs.
    x, y = xp.ldexp(x, -scale), xp.ldexp(y, -scale)
    middle = (constant_of(x).mean(axis=0) + constant_of(y).mean(axis=0)) / 2
    x, y = x - middle, y - middle
    square = sum_of_squares(x - y[partners(x, y)]) / len(x)
    return xp.ldexp(_root(square), scale)[()]
