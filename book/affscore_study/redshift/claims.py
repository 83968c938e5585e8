"""Sentences of the paper about random networks, as numbers that may fail: how much scale and shift change an image,
what the choice of activation decides, and whether the score goes with the complexity of the image.

``claims.toml`` has the sentences and the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.redshift.complexity import dct_frequency
from affscore_book.redshift.study import StoredDraws

__all__ = [
    "dct_excess",
    "inductive_bias",
    "middle_draw",
    "picture_factors",
    "score_and_complexity",
    "share_of_draws",
    "weight_of_the_choice",
]

_Measured = Mapping[tuple[float, float, str], Mapping[str, np.ndarray]]


def dct_excess(image: Any) -> float:
    """How far the cosine transform's mean frequency lies above its floor, in half periods an image.

    That is :func:`affscore_book.redshift.complexity.dct_frequency` less 1.

    Where the scale begins decides what "a little faster" means: from 1.1 to 1.4 is a factor of 1.3 counted from zero,
    and of 4 counted from the floor, below which no image is. Differences are the same by both, and so is any order.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = (np.arange(32) + 0.5) / 32
    >>> [round(dct_excess(np.tile(np.cos(np.pi * k * x), (32, 1))), 6) for k in (1, 2, 4)]
    [0.0, 1.0, 3.0]
    """
    # Rounding may put an image at the floor a little below it; max() would lose NaN in its second place.
    return max(dct_frequency(image) - 1, 0.0)


def picture_factors(found: _Measured, readings: Mapping[str, str]) -> dict[str, dict[str, Interval]]:
    """By which factor images change with scale and shift, a row each, by reading; median draws, and a share of draws.

    ``found`` has by panel and measure the values of paired draws, (draws,), and ``readings`` the measure of each.
    """
    rows: dict[str, dict[str, Interval]] = {}
    for reading, measure in readings.items():
        values = {panel: each[measure] for panel, each in found.items()}
        relu, tanh = (values[0, 6, name] / values[0, 1, name] for name in ("relu", "tanh"))
        shifted = values[-0.05, 6, "relu"]
        for row, interval in {
            "less_than_tanh": share_of_draws(relu < tanh),
            "relu_scale": middle_draw(relu),
            "tanh_scale": middle_draw(tanh),
            "relu_shift": middle_draw(shifted / values[0, 6, "relu"]),
            "relu_tanh": middle_draw(shifted / values[-0.05, 6, "tanh"]),
        }.items():
            rows.setdefault(row, {})[reading] = interval
    return rows


def weight_of_the_choice(found: _Measured, measure: str, scale: float) -> np.ndarray:
    """Draw by draw, the factor between tanh's image and ReLU's at one scale of the weights over that of a sixfold
    scale, as logarithms; (draws,).

    Both are means of magnitudes: the first over shifts, the second over shifts and activations.
    """
    logs = {panel: np.log(values[measure]) for panel, values in found.items()}
    shifts = sorted({shift for shift, _, _ in logs})
    choice = [logs[shift, scale, "tanh"] - logs[shift, scale, "relu"] for shift in shifts]
    weights = [logs[shift, 6.0, name] - logs[shift, 1.0, name] for shift in shifts for name in ("relu", "tanh")]
    return np.asarray(np.abs(choice).mean(axis=0) / np.abs(weights).mean(axis=0))


def inductive_bias(found: _Measured) -> dict[str, Interval]:
    """The :func:`weight_of_the_choice` at both scales, by each measure; a median draw."""
    return {
        f"at {scale:g}x, {name}": middle_draw(weight_of_the_choice(found, name, scale))
        for scale in (1.0, 6.0)
        for name in next(iter(found.values()))
    }


def score_and_complexity(study: StoredDraws) -> dict[str, Interval]:
    """Is the score lower where the image is faster? By what changes from network to network, in ten draws."""
    return {
        f"{name}, score and frequency, by {along}": student_interval(study.rank_correlations(name, along))
        for name, along in (("relu", "shift"), ("relu", "scale"), ("relu", "depth"), ("tanh", "depth"))
    }


def share_of_draws(holds: Any) -> Interval:
    """The share of draws in which something holds, bool (draws,), with Clopper and Pearson's 95 % interval.

    >>> [round(number, 2) for number in share_of_draws([True] * 6 + [False] * 4)]
    [0.6, 0.26, 0.88]
    """
    found = stats.binomtest(int(np.sum(holds)), len(holds))
    interval = found.proportion_ci()
    return Interval(float(found.statistic), float(interval.low), float(interval.high))


def middle_draw(values: Any) -> Interval:
    """The median of independent draws (draws,), with its 95 % interval from the order of the values.

    It says nothing of how far the draws lie apart, so its row says "median draw".

    >>> middle_draw(np.arange(101.0))
    Interval(mean=50.0, low=40.0, high=60.0)
    """
    middle = float(np.median(values))
    interval = stats.quantile_test(values, q=middle).confidence_interval()
    return Interval(middle, float(interval.low), float(interval.high))
