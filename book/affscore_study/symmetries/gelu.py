"""GELU's distance from ReLU's symmetry, in closed form (Figure 17).

ReLU(lambda x) = lambda ReLU(x) for lambda > 0; GELU misses it by a gap that grows with lambda.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, appendix E.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore_book.kit.style import BLUE, INK, VERMILION, panels, styled

__all__ = ["homogeneity_gap", "homogeneity_slope", "plot_gelu", "relative_gap"]


def homogeneity_slope() -> float:
    """The slope of :func:`homogeneity_gap` for large lambda, sqrt(1/12 - (1 - 1/sqrt 3) / (2 pi)).

    The paper gives about 0.127 from a simulation (appendix E.2.1). For large lambda, Phi(lambda x) is 1 for x > 0
    and 0 for x < 0. The formula follows if 2 x^2 (1 - Phi(x))^2 is integrated twice by parts over the positive half of
    the normal distribution.

    >>> round(homogeneity_slope(), 5)
    0.12675
    """
    return math.sqrt(1 / 12 - (1 - 1 / math.sqrt(3)) / (2 * math.pi))


def homogeneity_gap(factors: Any) -> Tensor:
    """The root mean square of GELU(lambda X) - lambda GELU(X) for a standard normal X (equation E.22), in closed form.

    With ``M(a, b) = E[X^2 Phi(aX) Phi(bX)]``, the square is ``lambda^2 (M(lambda, lambda) - 2 M(lambda, 1) +
    M(1, 1))``. Two uses of Stein's identity E[X f(X)] = E[f'(X)] and Sheppard's formula for E[Phi(aX) Phi(bX)] give
    ``M(a, b) = 1/4 + arcsin(r) / (2 pi) + a b (1/(1+a^2) + 1/(1+b^2)) / (2 pi sqrt(1 + a^2 + b^2))`` with
    ``r = a b / sqrt((1 + a^2) (1 + b^2))``. The paper did not find a closed form and sampled.

    Parameters
    ----------
    factors
        The values of lambda > 0, of any shape.

    Returns
    -------
    Float64 tensor of that shape. The error is about 1e-8 near lambda = 1, where the terms cancel.

    >>> homogeneity_gap([1.0, 2.0])
    tensor([0.0000, 0.1767], dtype=torch.float64)
    """
    a = torch.as_tensor(factors, dtype=torch.float64)
    one = torch.ones_like(a)
    return a * (_moment(a, a) - 2 * _moment(a, one) + _moment(one, one)).clamp(min=0).sqrt()


def relative_gap(factors: Any) -> Tensor:
    """The :func:`homogeneity_gap` divided by the root mean square of lambda GELU(X), float64, shaped as ``factors``.

    >>> relative_gap([1.0, 2.0])
    tensor([0.0000, 0.1355], dtype=torch.float64)
    """
    a = torch.as_tensor(factors, dtype=torch.float64)
    one = torch.ones_like(a)
    return homogeneity_gap(a) / (a * _moment(one, one).sqrt())


def _moment(a: Tensor, b: Tensor) -> Tensor:
    """E[X^2 Phi(aX) Phi(bX)] for a standard normal X."""
    p, q = 1 + a**2, 1 + b**2
    angle = torch.atan2(a * b, (1 + a**2 + b**2).sqrt())  # arcsin(r), without its cancellation near r = 1
    return 0.25 + (angle + a * b * (1 / p + 1 / q) / (1 + a**2 + b**2).sqrt()) / (2 * math.pi)


@styled
def plot_gelu(factors: Sequence[float], gaps: Sequence[float], slope: float) -> None:
    """Draw the distance of GELU from homogeneity over lambda, with its asymptote (Figure 17 b)."""
    _, (panel,) = panels(1, 1, height=4)
    panel.plot(factors, gaps, color=BLUE, label="GELU, closed form")
    panel.plot(factors, slope * np.asarray(factors), "--", color=VERMILION, label="asymptotic slope")
    panel.plot(1, 0, "o", color=INK, markersize=9, label="λ = 1: the only symmetry")
    panel.set(xlabel="λ", ylabel="root mean square gap")
    panel.legend()
