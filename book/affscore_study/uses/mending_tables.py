"""Tables that accompany the rules of :mod:`affscore_study.uses.mending`: power, overlap of predictors, and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from affscore_book.kit.statistics import shown, student_interval
from affscore_book.kit.tables import Table
from affscore_book.uses.mended import MENDED, Mended
from affscore_study.uses.mending import (
    FEWEST,
    LEAST_KNOWN,
    PREDICTORS,
    QUARTERS,
    ended_quarters,
    family_means,
    known_losses,
    over_six,
    quarters_of,
    removable,
    shared_quarters,
    spearman_of,
    sums_over,
)
from affscore_study.uses.power import power_of_mean

__all__ = ["loss_table", "mending_power", "other_readings", "overlap_table", "predictor_table"]

#: Standard deviations of a rank correlation: the sampling error with thirty quarters, and the assumed one of families.
SAMPLING, BETWEEN = 1 / math.sqrt(QUARTERS - 1), 0.15


def predictor_table(runs: Mended) -> Table:
    """A table of the rank correlations of each predictor with the loss, by network and over families.

    They are from the quarters that all networks have. All numbers except that of the first rule are exploratory.

    Raises ValueError if there are too few quarters to be judged.
    """
    first = shared_quarters(runs)
    if first < FEWEST:
        raise ValueError(f"runs has {first} quarters of each network; it should have {FEWEST} or more.")
    rows = []
    known = {name: known_losses(runs, of, first) for name, of in PREDICTORS.items()}
    for network, kind in MENDED.items():
        row: dict[str, Any] = {"network": network, "family": kind}
        row["quarters"] = len(ended_quarters(runs[network], first))
        rows.append(row | {name: f"{found[network]:.2f}" for name, found in known.items()})
    over = {name: shown(over_six(found)) for name, found in known.items()}
    rows.append({"network": "mean", "family": "each once", "quarters": "-"} | over)
    return Table.from_rows(rows, digits=2)


def other_readings(runs: Mended) -> Table:
    """A table of variants of the first rule's number, which were chosen after the result and are exploratory.

    They are without one family, over networks instead of families, and with the cross-entropy after training instead of
    the lost accuracy.
    """
    score = PREDICTORS["1 − score"]
    by_network = known_losses(runs, score, QUARTERS)
    means = family_means(by_network)
    rows = [{"reading": f"without {out}", "mean": shown(student_interval([means[k] for k in means if k != out]))}
            for out in means]  # fmt: skip
    rows.append({"reading": "over networks", "mean": shown(student_interval(list(by_network.values())))})
    entropies = {}
    for name in MENDED:
        ended = ended_quarters(runs[name])
        sums = sums_over(runs[name], score, [run["gone"] for run in ended])
        entropies[name] = spearman_of(sums, [run["cross_entropy"] for run in ended])
    rows.append({"reading": "cross-entropy after training", "mean": shown(over_six(entropies))})
    return Table.from_rows(rows)


def loss_table(runs: Mended) -> Table:
    """A table of the accuracy that each network lost against the control, in points, before and after training.

    ``by order`` is the standard deviation of the control's accuracy over orders of the images, which is the chance in
    one training. ``SD`` is the standard deviation of the loss over the quarters. Failed trainings are counted and left
    out.

    Raises ValueError if no network has two controls and two quarters.
    """
    rows = []
    for name in MENDED:
        control = [100 * run["after"] for run in runs[name]["control"] if "failed" not in run]
        ended, total = ended_quarters(runs[name]), len(runs[name]["quarters"])
        if len(control) < 2 or len(ended) < 2:
            continue
        losses = [fmean(control) - 100 * run["after"] for run in ended]
        row: dict[str, Any] = {"network": name, "quarters": len(ended), "failed": total - len(ended)}
        row |= {"control": fmean(control), "by order": float(np.std(control, ddof=1))}
        row |= {"lost before": fmean(control) - fmean(100 * run["before"] for run in ended)}
        rows.append(row | {"lost after": fmean(losses), "SD": float(np.std(losses, ddof=1))})
    if not rows:
        raise ValueError("runs has no network with two controls and two quarters; it should have some.")
    return Table.from_rows(rows, digits=2)


def overlap_table(measures: Mended) -> Table:
    """A table of the rank correlations of each predictor with the sum of 1 − score over the thirty quarters.

    It shows whether the predictors can be distinguished.
    """
    rows = []
    for name in MENDED:
        kept = removable(measures[name]["calls"])
        gone = quarters_of(name, kept)
        score, *others = (sums_over(measures[name], of, gone) for of in PREDICTORS.values())
        row: dict[str, Any] = {"network": name, "calls": len(kept), "go": len(gone[0])}
        rows.append(row | {other: spearman_of(score, values)
                           for other, values in zip(list(PREDICTORS)[1:], others, strict=True)})  # fmt: skip
    return Table.from_rows(rows, digits=2)


def mending_power(truths: Sequence[float] = (0.0, 0.2, 0.3, 0.4, 0.5)) -> Table:
    """A table of the power of the first rule, by the true mean correlation, if each family has one network."""
    families = len(set(MENDED.values()))
    spread = math.hypot(SAMPLING, BETWEEN)
    return Table.from_rows(
        [{"true": truth, "held": power_of_mean(truth, spread, families, LEAST_KNOWN)} for truth in truths], digits=2
    )
