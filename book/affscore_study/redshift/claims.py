"""Sentences of the paper about random networks, as numbers that may fail: how much scale and shift change an image,
what the choice of activation decides, and whether the score goes with the complexity of the image.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, sections 3.2 and 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.kit.statistics import student_interval
from affscore_book.redshift.study import StoredDraws
from affscore_study.kit.claims import Claim, side_by_side

__all__ = [
    "inductive_bias",
    "middle_draw",
    "picture_claims",
    "score_and_complexity",
    "share_of_draws",
    "weight_of_the_choice",
]

_Measured = Mapping[tuple[float, float, str], Mapping[str, np.ndarray]]


def picture_claims(found: _Measured, readings: Mapping[str, str]) -> list[Claim]:
    """Five readings of what the paper says of its pictures: by which factor they change with scale and shift.

    ``found`` has by panel and measure the values of paired draws, (draws,). ``readings`` has the measures by what is
    put behind a row; if two of them decide differently, it depends on "where the scale begins".
    """
    unaffected, more, often = (1 / 1.5, 1.5), (1.5, math.inf), (0.95, math.inf)
    source, by_reading = "ours, after section 3.2", []
    for measure in readings.values():
        values = {panel: each[measure] for panel, each in found.items()}
        relu, tanh = (values[0, 6, name] / values[0, 1, name] for name in ("relu", "tanh"))
        shifted = values[-0.05, 6, "relu"]
        # The rules were written for this measure; the others took them over after a look.
        rule: dict[str, Any] = {"kind": "own", "seen": measure != "cosine"}
        by_reading.append([
            share_of_draws("ReLU changes less than tanh", source, '"when compared, for instance, to tanh"',
                           relu < tanh, often, **rule),
            # The word by itself, whatever happens to tanh: the source's own, beside the gentler reading.
            middle_draw("ReLU, 1x to 6x", "CVPR 2025, section 3.2", '"unaffected"', relu, unaffected,
                        **rule | {"kind": "source"}),
            middle_draw("tanh, 1x to 6x", source, "-", tanh, more, **rule),
            middle_draw("ReLU 6x, raw to shifted", source, '"much more complex"', shifted / values[0, 6, "relu"], more,
                        **rule),
            middle_draw("6x shifted, ReLU / tanh", source, '"almost indistinguishable"',
                        shifted / values[-0.05, 6, "tanh"], unaffected, **rule),
        ])  # fmt: skip
    rows = []
    for same in zip(*by_reading, strict=True):
        rows += side_by_side("where the scale begins", dict(zip(readings, same, strict=True)))
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


def inductive_bias(found: _Measured) -> list[Claim]:
    """Does the choice of ReLU or tanh change an image less than a sixfold scale of its weights does?

    The choice is made at small weights, or at large ones; the source does not say at which.
    """
    source = "CVPR 2025, section 3.3, inductive bias"
    theirs = '"by itself doesn\'t have a determining effect on the inductive bias"'
    what, below = "choice of ReLU or tanh / sixfold scale", (-math.inf, 1.0)
    rows = {
        f"at {scale:g}x, {name}":
            middle_draw(what, source, theirs, weight_of_the_choice(found, name, scale), below, seen=True)
        for scale in (1.0, 6.0) for name in next(iter(found.values()))
    }  # fmt: skip
    return side_by_side("the size of the weights and the measure", rows)


def score_and_complexity(study: StoredDraws) -> list[Claim]:
    """Is the score lower where the image is faster? By what changes from network to network, in ten draws."""
    paper, ours, theirs = "CVPR 2025, section 3.2", "ours, after section 3.2", '"captures this change of complexity"'
    rows = [("relu", "shift", paper), ("relu", "scale", ours), ("relu", "depth", ours), ("tanh", "depth", ours)]
    return [
        Claim.over(
            f"{name}, score and frequency, by {along}: rank correlation", source, theirs,
            student_interval(study.rank_correlations(name, along)), (-math.inf, 0.0),
            kind="source" if source == paper else "own", seen=True,
        )
        for name, along, source in rows
    ]  # fmt: skip


def share_of_draws(
    what: str, source: str, theirs: str | float, holds: Any, accept: tuple[float, float], **rule: Any
) -> Claim:
    """A claim on the share of draws in which something holds, bool (draws,), with Clopper and Pearson's 95 % interval.

    ``rule``: ``kind`` and ``seen`` of :class:`Claim`.

    >>> claim = share_of_draws("heads", "ours, coin", "half", [True] * 6 + [False] * 4, (0.45, 0.55))
    >>> claim.verdict, [round(end, 2) for end in claim.interval]
    ('undecided', [0.26, 0.88])
    """
    found = stats.binomtest(int(np.sum(holds)), len(holds))
    interval = found.proportion_ci()
    return Claim(what, source, theirs, found.statistic, accept, interval=(interval.low, interval.high), **rule)


def middle_draw(
    what: str, source: str, theirs: str | float, values: Any, accept: tuple[float, float], **rule: Any
) -> Claim:
    """A claim on the median of independent draws (draws,), with its 95 % interval from the order of the values.

    It says nothing of how far the draws lie apart, so its row says "median draw". ``rule``: ``kind`` and ``seen`` of
    :class:`Claim`.

    >>> claim = middle_draw("middle", "ours, order", "50", np.arange(101.0), (0, 100))
    >>> claim.ours, claim.interval
    (50.0, (40.0, 60.0))
    """
    middle = float(np.median(values))
    interval = stats.quantile_test(values, q=middle).confidence_interval()
    ends = float(interval.low), float(interval.high)
    return Claim(f"{what}, median draw", source, theirs, middle, accept, interval=ends, **rule)
