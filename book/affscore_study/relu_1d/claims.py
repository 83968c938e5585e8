"""What the paper reads off its Figure 3, as numbers that may fail; ``claims.toml`` has the rules."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from affscore_book.relu_1d.exact import uniform_input
from affscore_study.kit.claims import ClaimTable
from affscore_study.kit.rules import judged

__all__ = ["denominator_share", "figure_3", "notebook_distance", "numerator_ratio"]

RANGE_WIDTH = 5.0  # inputs are uniform on [-a, -a + 5]
# What the released notebook stores for 1000 points on five of its twenty ranges, each of width 4, to 4 decimals.
NOTEBOOK_SCORES = (0.1339, 0.5263, 0.7921, 0.9401, 0.9999)


def _starts() -> NDArray[np.float64]:
    """The a of the ranges [-a, 5 - a]: below half the width, so that the mirror image is another range."""
    return np.linspace(0.01, 2.49, 249)


def _logs() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of numerator and denominator for a range over those of its mirror image."""
    a = _starts()
    here, mirrored = uniform_input(-a, RANGE_WIDTH - a), uniform_input(a - RANGE_WIDTH, a)
    return np.log(here.w2 / mirrored.w2), np.log(here.bound / mirrored.bound)


def numerator_ratio(share: float = 0.0) -> float:
    """The largest factor between the numerators of a range and of its mirror image; below the root of 2.

    Only ranges with at least this ``share`` of their inputs on either side of the kink count.
    """
    counted = _starts() >= share * RANGE_WIDTH
    return math.exp(abs(_logs()[0][counted]).max())


def denominator_share() -> float:
    """The smallest share of the denominator in the asymmetry of ``1 - score``, on a logarithmic scale."""
    numerator, denominator = _logs()
    return (-denominator / (numerator - denominator)).min().item()


def notebook_distance() -> float:
    """The largest distance of the exact scores on the five ranges of the released notebook from those it stores."""
    centres = np.linspace(-4, 4, 20)[[5, 8, 11, 13, 17]]
    exact = uniform_input(centres - 2, centres + 2).score
    return abs(exact - np.array(NOTEBOOK_SCORES)).max().item()


def figure_3() -> ClaimTable:
    """The reading of Figure 3 that has a rule, and the five ranges of the released notebook."""
    found = {"asymmetry": denominator_share(), "notebook": notebook_distance()}
    return ClaimTable(judged("relu_1d", "figure_3", found))
