"""Tests of the paper's sentences about random networks (section 3.2, Figure 4).

They concern the effects of scale, shift and activation on an image, and the correlation of the score with the
complexity of the image. ``claims.toml`` has the sentences and the rules.
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
    """The mean frequency of the cosine transform above its minimum, in half periods per image.

    It is :func:`affscore_book.redshift.complexity.dct_frequency` minus 1.

    The origin of the scale determines ratios of frequencies. From 1.1 to 1.4, the factor is 1.3 if frequencies are
    counted from zero, and 4 if they are counted from the minimum of all images. Differences and orders are the same.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = (np.arange(32) + 0.5) / 32
    >>> [round(dct_excess(np.tile(np.cos(np.pi * k * x), (32, 1))), 6) for k in (1, 2, 4)]
    [0.0, 1.0, 3.0]
    """
    # By rounding, an image may lie slightly below the minimum. max() would lose NaN as its second argument.
    return max(dct_frequency(image) - 1, 0.0)


def picture_factors(found: _Measured, readings: Mapping[str, str]) -> dict[str, dict[str, Interval]]:
    """The factors by which images change with scale and shift, for each row and reading, in a median draw.

    One row is a share of draws instead. ``found`` has the values of paired draws (draws,) by panel and measure, and
    ``readings`` has the measure of each reading.
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
    """The effect of the activation relative to that of the weights' scale, for each draw, shape (draws,).

    It is the logarithm of the factor between the images of tanh and ReLU at one scale, divided by the logarithm of the
    factor between a sixfold scale and one. Both are means of absolute values, the first over shifts and the second over
    shifts and activations.
    """
    logs = {panel: np.log(values[measure]) for panel, values in found.items()}
    shifts = sorted({shift for shift, _, _ in logs})
    choice = [logs[shift, scale, "tanh"] - logs[shift, scale, "relu"] for shift in shifts]
    weights = [logs[shift, 6.0, name] - logs[shift, 1.0, name] for shift in shifts for name in ("relu", "tanh")]
    return np.asarray(np.abs(choice).mean(axis=0) / np.abs(weights).mean(axis=0))


def inductive_bias(found: _Measured) -> dict[str, Interval]:
    """The :func:`weight_of_the_choice` at both scales by each measure, in a median draw."""
    return {
        f"at {scale:g}x, {name}": middle_draw(weight_of_the_choice(found, name, scale))
        for scale in (1.0, 6.0)
        for name in next(iter(found.values()))
    }


def score_and_complexity(study: StoredDraws) -> dict[str, Interval]:
    """The rank correlations of score and frequency in ten draws, by the property that differs between networks."""
    return {
        f"{name}, score and frequency, by {along}": student_interval(study.rank_correlations(name, along))
        for name, along in (("relu", "shift"), ("relu", "scale"), ("relu", "depth"), ("tanh", "depth"))
    }


def share_of_draws(holds: Any) -> Interval:
    """The share of draws for which ``holds``, bool (draws,), is true, with Clopper and Pearson's 95 % interval.

    >>> [round(number, 2) for number in share_of_draws([True] * 6 + [False] * 4)]
    [0.6, 0.26, 0.88]
    """
    found = stats.binomtest(int(np.sum(holds)), len(holds))
    interval = found.proportion_ci()
    return Interval(float(found.statistic), float(interval.low), float(interval.high))


def middle_draw(values: Any) -> Interval:
    """The median of independent draws ``values`` (draws,), with its 95 % interval from order statistics.

    The interval does not describe the spread of the draws, so its row is named "median draw".

    >>> middle_draw(np.arange(101.0))
    Interval(mean=50.0, low=40.0, high=60.0)
    """
    middle = float(np.median(values))
    interval = stats.quantile_test(values, q=middle).confidence_interval()
    return Interval(middle, float(interval.low), float(interval.high))
