"""Companion measures: simpler statistics of the input and the output of an activation.

The affinity-score paper compares its score with five simpler measures (its Table 2). They are computed here on the same
pooled samples ``before`` and ``after`` of shape (n, d) as the score; row ``i`` of both belongs to sample ``i``.

================  =====================================================================================
cka               linear centred kernel alignment, the biased estimator (Kornblith et al. 2019)
entropy_before    mean over samples of ``H + log d``, in nats: ``H`` is the entropy of the histogram of a
                  sample's d values in d equal bins from its smallest to its largest value
entropy_after     the same for the output
entropy_change    entropy_after - entropy_before
norm              Frobenius norm of ``before - after``; it grows like the root of n
norm_per_sample   the same divided by the root of n
r2                coefficient of determination of the linear regression of ``after`` on ``before`` with an
                  intercept, on the samples it was fitted to; generically 1 whenever n <= d + 1
r2_held_out       the same when each sample is predicted by the regression fitted to all the others
sparsity_before   fraction of the entries of the activation's input, before pooling, with ``|x| <= 1e-3``
sparsity_after    the same for the output
twin              the affinity score of ``before`` with its linear twin (:func:`linear_twin`), under the covariance
                  estimate of the run; takes as long as the score
================  =====================================================================================

An undefined measure is NaN, never 0 or 1: ``cka`` if a cloud does not vary, both ``r2`` if ``after`` does not vary,
``twin`` if no channel varies in both or if rounding can have moved it by more than 0.005, entropies if d = 1 (one value
has no histogram). "Does not vary" means, as for the score, that the samples vary only by rounding in their dtype.

References
----------
Bouniot et al., CVPR 2025, Table 2 and Appendix C, as their public code computes the measures.
Kornblith et al., "Similarity of neural network representations revisited", ICML 2019, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from affscore.affine import COVARIANCES
from affscore.arguments import check_choice
from affscore.arrays import constant_of, double, namespace, on_one_thread, sum_of_squares, to_numpy
from affscore.samples import centre, check_pair, exponent, largest_magnitude, rounding_of
from affscore.score import TOLERANCE, score_and_error

__all__ = ["MEASURES", "UNPOOLED", "check_names", "linear_twin", "measure"]

#: All measures, in the order of the columns.
MEASURES = (
    "cka", "entropy_change", "entropy_before", "entropy_after", "norm", "norm_per_sample", "r2", "r2_held_out",
    "sparsity_before", "sparsity_after", "twin",
)  # fmt: skip
#: Measures of the activations before pooling; :func:`affscore.signature` computes them while the network runs.
UNPOOLED = ("sparsity_before", "sparsity_after")

# Regressions ignore directions in which the inputs vary by less than this fraction of the largest variation. Its square
# is still far above the rounding of a Gram matrix.
_LEAST = 1e-6


def check_names(names: bool | Sequence[str], argument: str = "companions") -> tuple[str, ...]:
    """The names of the requested measures, in the order of MEASURES; True requests all of them, False none.

    >>> check_names(["r2", "cka"]), check_names(False)
    (('cka', 'r2'), ())
    """
    if isinstance(names, bool):
        return MEASURES if names else ()
    if isinstance(names, str) or not isinstance(names, Sequence | set | frozenset):
        raise ValueError(f"{argument} is {names!r}; it should be True, False or a list of names of measures.")
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        raise ValueError(
            f"{argument} names {', '.join(map(repr, unknown))}; the measures are {', '.join(map(repr, MEASURES))}."
        )
    return tuple(name for name in MEASURES if name in names)


@on_one_thread
def measure(
    before: Any, after: Any, names: bool | Sequence[str] = True, *, covariance: str = "ledoit_wolf"
) -> dict[str, float]:
    """The companion measures of one activation, from its pooled input and output.

    Parameters
    ----------
    before, after
        Arrays or tensors of the same shape (n, d) or (n,), n >= 2, of any real dtype. All arithmetic is in float64.
    names
        Names from :data:`MEASURES`, or True for all. Sparsities are skipped, because pooling hides zeros.
    covariance
        The covariance estimate for ``twin``, as in :func:`affscore.affinity_score`.

    Returns
    -------
    dict
        A float for each name that is not skipped, in the order of :data:`MEASURES`; NaN if the measure is undefined.

    Raises
    ------
    ValueError, TypeError
        If the samples are invalid, as in :func:`affscore.affinity_score`, or a name is unknown.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 8))                         # (200, 8)
    >>> found = measure(x, np.maximum(x, 0), ["cka", "r2", "r2_held_out"])
    >>> {name: round(value, 2) for name, value in found.items()}
    {'cka': 0.73, 'r2': 0.74, 'r2_held_out': 0.71}
    >>> round(measure(x, 3 * x + 1)["r2_held_out"], 6)
    1.0
    """
    chosen = [name for name in check_names(names, "names") if name not in UNPOOLED]
    check_choice("covariance", covariance, COVARIANCES)
    x, y = map(constant_of, check_pair(before, after, ("before", "after")))
    found: dict[str, float] = {}
    centred = [centre(value)[0] for value in (x, y)]
    if "cka" in chosen:
        found["cka"] = _cka(*centred)
    if any(name.startswith("entropy") for name in chosen):
        found["entropy_before"], found["entropy_after"] = _entropy(x), _entropy(y)
        found["entropy_change"] = found["entropy_after"] - found["entropy_before"]
    if any(name.startswith("norm") for name in chosen):
        found["norm"], found["norm_per_sample"] = _norm(x, y)
    if any(name.startswith("r2") for name in chosen):
        found["r2"], found["r2_held_out"] = _r2(*centred)
    if "twin" in chosen:
        twin = linear_twin(x, y)
        score, error = score_and_error(x, twin, covariance, (rounding_of(x), rounding_of(twin)))
        found["twin"] = float(score) if error <= TOLERANCE else math.nan
    return {name: found[name] for name in chosen}


def linear_twin(before: Any, after: Any) -> Any:
    """The inputs, with each channel shifted and scaled to the mean and variance of the same channel of the outputs.

    A layer that applies a non-decreasing affine function to each channel would have these outputs. With few samples and
    shrinkage they score below 1. A call that scores below its twin by more than chance bends, or it falls: ``-x`` is
    affine, and scores far below its twin in many channels. The book's chapter ``theory`` explains it.
    Arguments and errors are those of :func:`affscore.affinity_score`; the result is float64 of shape (n, d), a tensor
    for tensors.

    >>> x = np.array([[0.0, -1.0], [2.0, 1.0]])
    >>> linear_twin(x, np.maximum(x, 0))
    array([[0., 0.],
           [2., 1.]])
    """
    x, y = check_pair(before, after, ("before", "after"))
    (x, _, _), (y, mean, power) = centre(x), centre(y)
    xp = namespace(x)
    spread = xp.sqrt(xp.mean(xp.square(x), axis=0))
    slopes = xp.sqrt(xp.mean(xp.square(y), axis=0)) / xp.where(spread > 0, spread, 1.0)
    return xp.ldexp(x * slopes, power) + mean


def _squares(x: Any, axis: int) -> Any:
    """The sums of the squares along an axis."""
    return namespace(x).square(x).sum(axis=axis)


def _cka(x: Any, y: Any) -> float:
    """|Y^T X|^2 / (|X^T X| |Y^T Y|) in Frobenius norms, for centred samples, from the smaller products."""
    if not bool(x.any()) or not bool(y.any()):
        return math.nan
    n, d = x.shape
    if d <= n:
        cross, product_x, product_y = sum_of_squares(y.T @ x), x.T @ x, y.T @ y
    else:
        product_x, product_y = x @ x.T, y @ y.T
        cross = (product_x * product_y).sum()
    return float(cross / (sum_of_squares(product_x) * sum_of_squares(product_y)) ** 0.5)


def _entropy(value: Any) -> float:
    """Mean over the rows of H + log d. If all values of a row are equal they share one bin, and H = 0."""
    n, d = value.shape
    if d == 1:
        return math.nan
    value = to_numpy(double(value))
    low, high = value.min(axis=1, keepdims=True), value.max(axis=1, keepdims=True)
    # The values are halved first, because the difference of two large values may overflow.
    width = high / 2 - low / 2
    position = (value / 2 - low / 2) / np.where(width > 0, width, 1.0)
    bins = np.minimum((position * d).astype(np.int64), d - 1) + np.arange(n)[:, None] * d
    counts = np.bincount(bins.ravel(), minlength=n * d)
    h = math.log(d) - float((counts * np.log(np.maximum(counts, 1))).sum()) / (n * d)
    return h + math.log(d)


def _norm(x: Any, y: Any) -> tuple[float, float]:
    x, y = double(x), double(y)
    scale = max(int(exponent(largest_magnitude(value))) for value in (x, y))
    norm = float(sum_of_squares(x * 2.0**-scale - y * 2.0**-scale)) ** 0.5
    return math.ldexp(norm, scale), math.ldexp(norm / x.shape[0] ** 0.5, scale)


def _r2(x: Any, y: Any) -> tuple[float, float]:
    """In-sample and leave-one-out R2 for centred samples, averaged over the channels of y that vary.

    The regression of y on x with an intercept has the residuals ``B y``. The regression fitted without sample i has the
    residual ``(B y)_i / B_ii`` there, so no second fit is needed.
    """
    x, y = x[:, x.any(axis=0)], y[:, y.any(axis=0)]
    if not y.shape[1]:
        return math.nan, math.nan
    residual, diagonal = _residuals(x, y)
    total = _squares(y, 0)
    inside = 1 - _squares(residual, 0) / total
    outside = 1 - _squares(residual / diagonal[:, None], 0) / total
    return float(inside.mean()), float(outside.mean())


def _residuals(x: Any, y: Any) -> tuple[Any, Any]:
    """``B y`` and the diagonal of B, shape (n,).

    If x has full rank and fewer channels than n - 1, ``B = 1 - 1/n - Q Q^T`` with an orthonormal basis Q of the
    channels. In general B comes from the eigenvalues ``e`` and eigenvectors ``U`` of the centred Gram matrix and a tiny
    ridge ``r``, ``B = U diag(r / (e + r)) U^T`` without the constant eigenvector. Directions that vary by less than
    1e-6 of the largest are ignored. This is least squares, with the solution of least norm if there are several.
    """
    (n, d), xp = x.shape, namespace(x)
    if not d:
        return y, xp.full_like(y[:, 0], 1 - 1 / n)
    if d < n - 1:
        # The scales of the channels do not change this fit, only its rounding.
        x = x / _squares(x, 0) ** 0.5
        q, r = xp.linalg.qr(x)
        lengths = xp.linalg.svd(r, full_matrices=False)[1]
        diagonal = 1 - 1 / n - _squares(q, 1)
        # A sample that alone determines a direction has the diagonal entry 0 here; the ridge below resolves that.
        if lengths[-1] > _LEAST * lengths[0] and diagonal.min() > 1e-8:
            return y - q @ (q.T @ y), diagonal
    gram = x @ x.T
    # The constant vector has eigenvalue 0. Shifted to the largest, it comes last and is dropped.
    values, vectors = xp.linalg.eigh(gram + 2 * sum_of_squares(gram) ** 0.5 / n)
    values, vectors = values[:-1], vectors[:, :-1]
    cut = _LEAST**2 * values[-1]
    absent = values <= cut
    # If no direction is absent, the common factor r cancels, and a smaller r is more accurate.
    ridge = cut * (0.1 if bool(absent.any()) else 1e-8)
    shrunk = ridge / (xp.where(absent, 0.0, values) + ridge)
    return vectors @ (shrunk[:, None] * (vectors.T @ y)), xp.square(vectors) @ shrunk
