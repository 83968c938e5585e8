"""What stands beside the rules of :mod:`affscore_study.uses.mending`: power, overlap, and losses."""

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

#: Of a rank correlation over thirty, and between families.
SAMPLING, BETWEEN = 1 / math.sqrt(QUARTERS - 1), 0.15


def predictor_table(runs: Mended) -> Table:
    """Rank correlation of each predictor with the loss, by network and over families.

    All but the first rule's number is exploratory. From the quarters that all networks have.

    Raises ValueError if these are too few to be judged.
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
    """The first rule's number read in other ways, after the result (exploratory): without a family, over networks
    instead of families, and with the cross-entropy after training in place of the accuracy lost."""
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
    """What was lost, by network, in points: before training and after it, beside the control.

    ``by order`` is the standard deviation of the control's accuracy over orders of the images: chance in one training.
    ``SD`` is that of the loss over the quarters. Failed trainings are counted and left out.

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
    """Can the predictors be told apart? Rank correlation of each with the sum of 1 − score over the thirty quarters."""
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
    """How often the first rule is held, by the true mean correlation; each family is taken to have one network."""
    families = len(set(MENDED.values()))
    spread = math.hypot(SAMPLING, BETWEEN)
    return Table.from_rows(
        [{"true": truth, "held": power_of_mean(truth, spread, families, LEAST_KNOWN)} for truth in truths], digits=2
    )
