"""The affinity score of an activation for the law of its input: exact, without any sample.

In one dimension ``score = 1 - sqrt(1 - r)``, where ``r`` correlates the sorted input with the sorted output. For a
non-decreasing activation the pairs ``(x, activation(x))`` are sorted already. The integrals are done by Gauss-Legendre
quadrature between the kinks of the activation.

With ``coupling="paired"`` the plain correlation of ``x`` and ``activation(x)`` is taken instead. That is what the score
of ``d`` independent coordinates tends to when ``d`` is large: two clouds in many dimensions are so sparse that the
cheapest partner of ``T(x_i)`` is its own output ``y_i``. The two differ where the activation falls.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 2, Appendix B. That the two
couplings are the two ends of the paper's experiment is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore.arguments import check_choice
from affscore_book.activations.catalogue import CATALOGUE, ActivationFunction, AnyActivation, lookup
from affscore_book.kit.checking import positive

__all__ = ["Summary", "output_variance", "score_curve", "summarise", "summarise_all"]

# Gauss-Legendre nodes for one panel, on [-1, 1].
_NODES, _WEIGHTS = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(16))
_REACH = 38.0  # beyond so many standard deviations the normal density is 0 in float64
_SORTED_REACH, _SORTED_STEP = 8.0, 1 / 256  # the grid for sorting, in standard deviations


def score_curve(activation: AnyActivation, means: Any, std: float = 1.0, *, coupling: str = "sorted") -> Tensor:
    """The affinity score of an activation for normal inputs of given means and one standard deviation: no sample.

    Parameters
    ----------
    activation
        A name in :data:`CATALOGUE`, an :class:`ActivationFunction`, or a function of a float64 tensor.
    means
        Means of the input, a number or an array or tensor of any shape, finite.
    std
        Standard deviation of the input, a positive number.
    coupling
        ``"sorted"``: the score in one dimension. ``"paired"``: with the correlation of x and activation(x), which is
        what the score of many independent coordinates tends to (it is the same for a monotone activation).

    Returns
    -------
    Tensor
        Float64, the shape of ``means``. NaN where the output is constant. For a monotone activation and for
        ``"paired"`` the error is below 1e-9; for monotone piecewise linear ones it is relative, down to 1e-140 (scores
        below 1e-160 come out as 0). For a non-monotone activation with ``"sorted"`` the error is below 1e-5, from a
        fine grid that is sorted.

    Raises
    ------
    ValueError
        If a mean is not finite, ``std`` is not positive and finite, or a name is unknown.

    >>> score_curve("relu", [-30.0, 0.0, 30.0])                                  # (3,)
    tensor([2.3560e-98, 6.2109e-01, 1.0000e+00], dtype=torch.float64)
    >>> [round(score_curve("silu", -3.0, coupling=c).item(), 3) for c in ("sorted", "paired")]
    [0.852, -0.38]
    """
    row = lookup(activation)
    check_choice("coupling", coupling, ("sorted", "paired"))
    positive("std", std)
    means = torch.as_tensor(means, dtype=torch.float64)
    if not bool(means.isfinite().all()):
        raise ValueError(f"means holds {means[~means.isfinite()][0].item()}; all should be finite.")
    law = _sorted_law if coupling == "sorted" and not row.monotone else _paired_law
    with torch.no_grad():
        parts = [law(row, part, float(std)) for part in means.reshape(-1, 1).split(64)]
    return torch.cat(parts).reshape(means.shape)


def output_variance(activation: AnyActivation, means: Any, std: float) -> Tensor:
    """The variance of the activation's output for normal inputs of given means and one standard deviation.

    Float64, the shape of ``means``; a sum over a fine grid of the input, in float64. Raises as :func:`score_curve`.

    >>> output_variance("identity", [0.0, 5.0], std=2.0)
    tensor([4.0000, 4.0000], dtype=torch.float64)
    """
    row = lookup(activation)
    positive("std", std)
    means = torch.as_tensor(means, dtype=torch.float64)
    z, mass = _grid(float(std))
    with torch.no_grad():
        y = _values(row, means.reshape(-1, 1), float(std), z)
        y = y - (mass * y).sum(dim=1, keepdim=True)
        return (mass * y**2).sum(dim=1).reshape(means.shape)


def _paired_law(row: ActivationFunction, means: Tensor, std: float, falls: bool = False) -> Tensor:
    """1 - sqrt(1 - r), r the correlation of x and activation(x), by quadrature between kinks; means (m, 1).

    ``falls`` takes the magnitude of r.
    """
    # Panels half a standard deviation wide, but no wider than the activations' own scale, about 1.
    count = math.ceil(2 * _REACH / min(0.5, 1 / std))
    edges = torch.linspace(-_REACH, _REACH, count + 1, dtype=torch.float64).expand(len(means), -1)
    if row.kinks:
        kinks = (torch.tensor(row.kinks, dtype=torch.float64) - means) / std
        edges = torch.cat([edges, kinks.clamp(-_REACH, _REACH)], dim=1).sort(dim=1).values
    half = edges.diff(dim=1)[..., None] / 2
    z = ((edges[:, :-1, None] + half) + half * _NODES).flatten(1)
    weight = (half * _WEIGHTS).flatten(1)
    weight = weight * torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    y = _unit(_values(row, means, std, z), _values(row, means, std, torch.zeros_like(means))[:, 0])
    y = y - (weight * y).sum(dim=1, keepdim=True)
    cov = (weight * z * y).sum(dim=1)
    var = (weight * y**2).sum(dim=1)
    rest = (weight * (y - cov[:, None] * z) ** 2).sum(dim=1)
    score = _score(cov.abs() if falls else cov, var, rest)
    if row.kinks:
        # Mathematically an output with kinks is never constant on the whole line, so the score is just too small.
        score = score.masked_fill(var == 0, 0.0)
    return score


def _sorted_law(row: ActivationFunction, means: Tensor, std: float) -> Tensor:
    """1 - sqrt(1 - r), r the correlation of sorted x and sorted activation(x), on a fine grid; means (m, 1)."""
    z, weight = _grid(std)
    y = _values(row, means, std, z)
    # Where the activation never turns within reach, sorting keeps the pairs, or reverses all of them.
    change = y.diff(dim=1)
    turns = (change > 0).any(dim=1) & (change < 0).any(dim=1)
    score = torch.empty_like(y[:, 0])
    score[~turns] = _paired_law(row, means[~turns], std, falls=True)
    y, order = _unit(y[turns], y[turns, len(z) // 2]).sort(dim=1)
    mass = weight[order]
    y = y - (mass * y).sum(dim=1, keepdim=True)
    # The k-th smallest output takes the inputs between the quantiles ends[k - 1] and ends[k]. Both laws have the same
    # atoms in a different order, so the integral of the quantile function of x is linear between the ends of its own.
    ends, ends_x = mass.cumsum(dim=1), weight.cumsum(0)
    integral = (weight * z).cumsum(0)
    piece = torch.searchsorted(ends_x, ends.contiguous()).clamp(max=len(z) - 1)
    upto = integral[piece] + z[piece] * (ends - ends_x[piece])
    cov = (y * torch.diff(upto, dim=1, prepend=torch.zeros_like(upto[:, :1]))).sum(dim=1)
    var, var_z = (mass * y**2).sum(dim=1), (weight * z**2).sum()
    score[turns] = _score(cov / var_z.sqrt(), var, (var - cov**2 / var_z).clamp(min=0))
    return score


def _grid(std: float) -> tuple[Tensor, Tensor]:
    """Points of a standard normal input and their masses, symmetric about 0, for the sorted coupling."""
    step = _SORTED_STEP / max(1.0, std)
    half = math.ceil(_SORTED_REACH / step)
    z = torch.arange(-half, half + 1, dtype=torch.float64) * step
    weight = torch.exp(-(z**2) / 2)
    return z, weight / weight.sum()


def _unit(y: Tensor, centre: Tensor) -> Tensor:
    """y - centre in each row, over the power of two just above its largest magnitude.

    Where the output is flat but for a rare event, only differences from the flat value keep their digits.
    """
    y = y - centre[:, None]
    return torch.ldexp(y, -torch.frexp(y.abs().amax(dim=1, keepdim=True)).exponent)


def _values(row: ActivationFunction, means: Tensor, std: float, z: Tensor) -> Tensor:
    """activation(mean + std z) up to a constant: measured from the limit on the mean's side, where that is known."""
    x = means + std * z
    left, right = (tail or row.function for tail in row.tails)
    if left is right:
        return left(x)
    return torch.where(means < 0, left(x), right(x))


def _score(cov: Tensor, var: Tensor, rest: Tensor) -> Tensor:
    """1 - sqrt(1 - r) from Cov(z, y), Var y and the variance of y that a regression on z leaves; NaN if Var y = 0."""
    r = cov / var.sqrt()
    # 1 - r = (1 - r^2) / (1 + r) without cancellation near r = 1, and 1 - sqrt(1 - r) without it near r = 0.
    return torch.where(r < 0.5, r / (1 + (1 - r).sqrt()), 1 - (rest / var / (1 + r.clamp(min=0))).sqrt())


@dataclass(frozen=True)
class Summary:
    """What is left of a score curve in two numbers (Appendix B of the paper), for one activation.

    Attributes
    ----------
    lowest, lowest_at
        Smallest score, and the mean nearest to 0 whose score is within 0.001 of it.
    width
        Total length of the means whose score is below the threshold.
    dead
        Total length of the means that are left out because the central 99.9 % of the input has one output only: a
        sample of 1000 points is then constant with a probability of about 0.4 or more.
    """

    lowest: float
    lowest_at: float
    width: float
    dead: float


def summarise(activation: AnyActivation, std: float = 1.0, threshold: float = 0.9) -> Summary:
    """The lowest score and the width of the non-linear range, for normal inputs with means from -20 to 20.

    Parameters
    ----------
    activation, std
        As in :func:`score_curve`.
    threshold
        Inputs with a score below it count as non-linear. There are 201 means, so widths are multiples of 0.2.

    Raises ValueError as :func:`score_curve`.

    >>> summary = summarise("relu")
    >>> round(summary.lowest, 2), round(summary.width, 1), round(summary.dead, 1)
    (0.04, 4.8, 16.8)
    """
    row = lookup(activation)
    means, spacing = torch.linspace(-20, 20, 201, dtype=torch.float64), 0.2
    central = torch.linspace(-1, 1, 65, dtype=torch.float64) * 3.2905
    values = _values(row, means[:, None], std, central)
    dead = (values == values[:, :1]).all(dim=1)
    scores = score_curve(row, means, std).masked_fill(dead, math.inf).nan_to_num(nan=math.inf, posinf=math.inf)
    lowest = scores.min()
    at = torch.where(scores <= lowest + 1e-3, means.abs(), math.inf).argmin()
    width, length = (spacing * int(which.sum()) for which in (scores < threshold, dead))
    return Summary(lowest.item(), means[at].item(), width, length)


def summarise_all(**options: Any) -> dict[str, Summary]:
    """:func:`summarise` for the whole catalogue, with its options."""
    return {name: summarise(name, **options) for name in CATALOGUE}
