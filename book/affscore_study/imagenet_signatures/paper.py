"""The numbers of Bouniot et al., CVPR 2025, and its slides for ImageNet models, and tests of their consistency.

Numbers quoted from them have names in capitals; our numbers never do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from affscore_book.imagenet_signatures.printed import HEADINGS, TABLE_2
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.greatest import least
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "AVERAGES", "BEGINNINGS", "FAMILY_MEASURES", "SLIDE_STDS", "printed_claims", "table_1_claim",
    "table_1_claims", "the_paper_against_itself",
]  # fmt: skip

#: The five measures here. The R2 of a regression is measured on held-out pictures.
MEASURES = ("CKA", "norm", "sparsity", "entropy", "R2 held out")
#: The last row of Table 2: mean and standard deviation of each column.
AVERAGES = {
    "CKA": (0.31, 0.45),
    "norm": (-0.44, 0.35),
    "sparsity": (-0.31, 0.43),
    "entropy": (-0.29, 0.39),
    "R2": (0.13, 0.50),
}
#: Table 1 (section 4): the measure that correlates most with the score in each family, and the correlation.
FAMILY_MEASURES = {
    "VGGs": ("entropy", -0.90),
    "ResNets": ("sparsity", -0.68),
    "DenseNets": ("sparsity", -0.89),
    "MNASNets": ("CKA", 0.67),
    "EffNets": ("CKA", 0.42),
    "ViTs": ("norm", -0.67),
    "Swins": ("norm", -0.53),
    "Convnexts": ("R2", 0.79),
}
#: The beginning of the names of each family's networks.
BEGINNINGS = {
    "VGGs": "vgg", "ResNets": "resnet", "DenseNets": "densenet", "MNASNets": "mnasnet", "EffNets": "efficientnet_b",
    "ViTs": "vit", "Swins": "swin", "Convnexts": "convnext",
}  # fmt: skip
#: The number of networks that the paper reports to have measured.
CLAIMED = {"section 4": 36, "Appendix F": 33}
#: The slides' standard deviation of the scores over batches of 512, averaged over the calls of a pretrained network.
SLIDE_STDS = {
    "alexnet": 0.005,
    "vgg16": 0.008,
    "resnet152": 0.005,
    "densenet161": 0.020,
    "efficientnet_b4": 0.018,
    "vit_h_14": 0.013,
    "swin_b": 0.016,
    "convnext": 0.017,
}


def table_1_claim(family: str, found: Interval | str, where: str = "") -> Claim:
    """The row of a family in Table 1, with our number, or with the words for what the number needs."""
    measure, value = FAMILY_MEASURES[family]
    words = {"family": family, "measure": measure, "printed": f"{measure}, {value:.2f}", "where": where}
    (row,) = judged("imagenet_signatures", "table_1", {"lead": found}, **words)
    return row


def table_1_claims(correlations: Table, families: Mapping[str, str], where: str) -> list[Claim]:
    """Tests whether the paper's strongest measure for a family (Table 1) is also the strongest in our networks of it.

    Our number is the lead of that measure: its mean correlation, with the paper's sign, minus the largest mean of the
    other measures in absolute value. The interval is over the architectures, or over the seeds if there is only one
    architecture; a single network has no interval. It combines Student's intervals for the leads over each other
    measure (:func:`affscore_study.imagenet_signatures.greatest.least`), because the strongest rival is chosen by the
    same numbers.

    Parameters
    ----------
    correlations
        The result of :func:`affscore_study.suite.compare.companion_correlations`. In a name such as "resnet20, seed 2"
        the architecture comes before the comma.
    families
        The paper's name of a family, and the beginning of the names of our networks that stand for it.
    where
        The words for our networks in the table.

    A family without a finite correlation gets a claim that names the missing data, because in-sample R2 is 1 in every
    call with more channels than images.
    """
    claims = []
    for theirs, start in families.items():
        measure, value = FAMILY_MEASURES[theirs]
        members = [row for row in correlations.rows() if row["model"].startswith(start)]
        members = [row for row in members if math.isfinite(row[measure])]
        if not members:
            claims.append(table_1_claim(theirs, "batches with more images than channels", f" ({where})"))
            continue
        found, unit = _lead(members, measure, math.copysign(1, value))
        claims.append(table_1_claim(theirs, found, f" ({where}{unit})"))
    return claims


def _lead(members: Sequence[Mapping[str, Any]], own: str, sign: float) -> tuple[Interval, str]:
    """The lead of a measure over the strongest other one, and the unit over which its interval is taken."""
    by_architecture: dict[str, list[Mapping[str, Any]]] = {}
    for row in members:
        by_architecture.setdefault(row["model"].partition(",")[0], []).append(row)
    groups, unit = list(by_architecture.values()), ", by architectures"
    if len(groups) == 1:
        groups, unit = [[row] for row in members], ", by seeds" if len(members) > 1 else ", one network"
    means = {name: np.array([np.mean([row[name] for row in rows]) for rows in groups]) for name in {own, *MEASURES}}
    leads = {
        name: sign * means[own] - math.copysign(1, means[name].mean()) * means[name] for name in MEASURES if name != own
    }
    return least({name: partial(_interval, values) for name, values in leads.items()})[1], unit


def _interval(values: np.ndarray, level: float) -> Interval:
    """Student's interval; the ends are NaN for a single number."""
    if len(values) < 2:
        return Interval(float(values[0]), math.nan, math.nan)
    return student_interval(values, level)


def _family_mean(family: str) -> float:
    """The mean over a family's rows of Table 2 of the measure that Table 1 names for it; NaN without such rows."""
    column = HEADINGS.index(FAMILY_MEASURES[family][0])
    found = [row[column] for name, row in TABLE_2.items() if name.startswith(BEGINNINGS[family])]
    return float(np.mean(found)) if found else math.nan


def _copies() -> list[tuple[str, ...]]:
    """Groups of networks whose rows in Table 2 are the same in all columns."""
    by_row: dict[tuple[float, ...], list[str]] = {}
    for name, row in TABLE_2.items():
        by_row.setdefault(row, []).append(name)
    return [tuple(names) for names in by_row.values() if len(names) > 1]


def _strongest_in() -> dict[str, int]:
    """The number of rows of Table 2 in which each measure has the largest correlation in absolute value."""
    first = [HEADINGS[int(np.argmax(np.abs(row)))] for row in TABLE_2.values()]
    return {measure: first.count(measure) for measure in HEADINGS}


def _with_mnasnets(count: int) -> float:
    """The average of CKA over Table 2's rows and ``count`` MNASNets, which have the correlation that Table 1 prints."""
    rows = [row[0] for row in TABLE_2.values()] + [FAMILY_MEASURES["MNASNets"][1]] * count
    return float(np.mean(rows))


def the_paper_against_itself() -> Table:
    """A table that checks the paper's tables against each other: printed numbers, and numbers from its own rows."""
    rows = [{"what": "models", "printed": f"{CLAIMED['section 4']} (section 4), {CLAIMED['Appendix F']} (Appendix F)",
             "own rows": f"{len(TABLE_2)} in Table 2"}]  # fmt: skip
    for names in _copies():
        row = {"what": f"{' and '.join(names)}, five numbers each", "printed": "two networks"}
        rows.append(row | {"own rows": "the same in all five"})
    for column, (measure, (mean, _)) in enumerate(AVERAGES.items()):
        text = f"{np.mean([row[column] for row in TABLE_2.values()]):.3f}"
        rows.append({"what": f"average of {measure}", "printed": f"{mean:.2f}", "own rows": text})
    for count in (CLAIMED["Appendix F"] - len(TABLE_2), CLAIMED["section 4"] - len(TABLE_2)):
        what = f"average of CKA, with {count} MNASNet{'s' * (count > 1)} as in Table 1"
        rows.append({"what": what, "printed": f"{AVERAGES['CKA'][0]:.2f}", "own rows": f"{_with_mnasnets(count):.3f}"})
    for family, (measure, value) in FAMILY_MEASURES.items():
        found = _family_mean(family)
        text = f"{found:.3f}" if math.isfinite(found) else "no rows"
        rows.append({"what": f"{family}, {measure}", "printed": f"{value:.2f}", "own rows": text})
    for measure, count in _strongest_in().items():
        rows.append({"what": f"rows in which {measure} is the strongest", "printed": "-", "own rows": str(count)})
    return Table.from_rows(rows)


def printed_claims() -> list[Claim]:
    """Tests of the paper's averages, families and strongest measure, and of copies, against its own printed rows."""
    counts = {"the 32 of the table": 0, "33, with one MNASNet": 1, "36, with four MNASNets": 4}
    means = {family: (measure, _family_mean(family)) for family, (measure, _) in FAMILY_MEASURES.items()}
    found = {
        "copies": float(len(_copies())),
        "average": {name: _with_mnasnets(count) for name, count in counts.items()},
        "strongest": max(_strongest_in().values()) / len(TABLE_2),
        "families": {
            family: Worded(mean, {"measure": measure})
            for family, (measure, mean) in means.items()
            if math.isfinite(mean)
        },
    }
    return judged("imagenet_signatures", "printed", found)
