"""Tests of the paper's sentences on its Figure 3; ``claims.toml`` has the rules."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from affscore_book.relu_1d.exact import uniform_input
from affscore_study.kit.claims import ClaimTable
from affscore_study.kit.rules import judged

__all__ = ["denominator_share", "figure_3", "notebook_distance", "numerator_ratio"]

RANGE_WIDTH = 5.0  # inputs are uniform on [-a, -a + 5]
# The scores that the released notebook stores for 1000 points on five of its twenty ranges of width 4, to 4 decimals.
NOTEBOOK_SCORES = (0.1339, 0.5263, 0.7921, 0.9401, 0.9999)


def _starts() -> NDArray[np.float64]:
    """The values a of the ranges [-a, 5 - a], which are below half the width so that mirror images are other ranges."""
    return np.linspace(0.01, 2.49, 249)


def _logs() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithms of the ratios of numerators and of denominators for each range and its mirror image."""
    a = _starts()
    here, mirrored = uniform_input(-a, RANGE_WIDTH - a), uniform_input(a - RANGE_WIDTH, a)
    return np.log(here.w2 / mirrored.w2), np.log(here.bound / mirrored.bound)


def numerator_ratio(share: float = 0.0) -> float:
    """The largest factor between the numerators of a range and of its mirror image, which is below sqrt(2).

    Only ranges with at least the share ``share`` of their inputs on either side of the kink count.
    """
    counted = _starts() >= share * RANGE_WIDTH
    return math.exp(abs(_logs()[0][counted]).max())


def denominator_share() -> float:
    """The smallest share of the denominator in the asymmetry of ``1 - score``, on a logarithmic scale."""
    numerator, denominator = _logs()
    return (-denominator / (numerator - denominator)).min().item()


def notebook_distance() -> float:
    """The largest difference between the exact scores on five ranges of the released notebook and its stored scores."""
    centres = np.linspace(-4, 4, 20)[[5, 8, 11, 13, 17]]
    exact = uniform_input(centres - 2, centres + 2).score
    return abs(exact - np.array(NOTEBOOK_SCORES)).max().item()


def figure_3() -> ClaimTable:
    """The table of claims on Figure 3 and on the five ranges of the released notebook."""
    found = {"asymmetry": denominator_share(), "notebook": notebook_distance()}
    return ClaimTable(judged("relu_1d", "figure_3", found))
