"""What the paper reads off its Figure 3, as numbers that may fail.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2 and Figure 3; the slides.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from affscore_book.kit.claims import Claim, ClaimTable
from affscore_book.relu_1d.exact import uniform_input

__all__ = ["denominator_share", "figure_3", "numerator_ratio"]

RANGE_WIDTH = 5.0  # inputs are uniform on [-a, -a + 5]


def _starts() -> Tensor:
    """The a of the ranges [-a, 5 - a]: below half the width, so that the mirror image is another range."""
    return torch.linspace(0.01, 2.49, 249, dtype=torch.float64)


def _logs() -> tuple[Tensor, Tensor]:
    """Logarithms of numerator and denominator for a range over those of its mirror image."""
    a = _starts()
    here, mirrored = uniform_input(-a, RANGE_WIDTH - a), uniform_input(a - RANGE_WIDTH, a)
    return (here.w2 / mirrored.w2).log(), (here.bound / mirrored.bound).log()


def numerator_ratio(share: float = 0.0) -> float:
    """The largest factor between the numerators of a range and of its mirror image; below the root of 2.

    Only ranges with at least this ``share`` of their inputs on either side of the kink count.
    """
    counted = _starts() >= share * RANGE_WIDTH
    return math.exp(_logs()[0][counted].abs().max())


def denominator_share() -> float:
    """The smallest share of the denominator in the asymmetry of ``1 - score``, on a logarithmic scale."""
    numerator, denominator = _logs()
    return (-denominator / (numerator - denominator)).min().item()


def figure_3() -> ClaimTable:
    """The reading of Figure 3 that has a rule, and what the slides do not tell."""
    paper, talk = "CVPR 2025, section 3.2", "slides, Displacement of mass with ReLU"
    return ClaimTable(
        [
            Claim("denominator's part of the asymmetry", paper, "main source", denominator_share(), (0.5, math.inf)),
            Claim("ReLU on five inputs", talk, "0.13 to 1", None, None, "the inputs"),
        ]
    )
