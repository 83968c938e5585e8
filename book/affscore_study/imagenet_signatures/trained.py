"""Tests of the paper's sentences on skips and measures with the trained networks of the book.

If several seeds of an architecture are trained, means have Student's interval over the seeds. That interval concerns
further seeds of the same architecture. For a sentence about architectures, the architectures are counted; see
:data:`affscore_book.imagenet_signatures.calls.TRAINED`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.calls import places
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.greatest import greatest, turned

__all__ = [
    "Pairs", "climb", "ends", "gap", "skip_gap", "skip_table", "strongest_measure", "widening", "widening_table",
    "zeros_of",
]  # fmt: skip


def ends(signature: Signature) -> tuple[float, float]:
    """The mean scores inside the blocks and after the additions."""
    inside, last = (float(signature.mean[at].mean()) for at in places(signature).values())
    return inside, last


def gap(signature: Signature) -> float:
    """The mean score after the additions minus the mean score inside the blocks."""
    inside, last = ends(signature)
    return last - inside


def climb(scores: Sequence[float] | np.ndarray) -> float:
    """The rank correlation of scores with their position.

    >>> climb([0.5, 0.6, 0.9])
    1.0
    """
    return float(stats.spearmanr(np.arange(len(scores)), scores).statistic)


def zeros_of(signature: Signature) -> np.ndarray:
    """The fraction of each call's output that is zero, a mean over batches of shape (calls,).

    For ReLU, it is the fraction of negative inputs.
    """
    return signature.companions["sparsity_after"].mean(axis=0)


def skip_table(by_network: Mapping[str, Mapping[int, Signature]]) -> Table:
    """A table of the effect of a skip on the call after the addition, with a row for each network and place in a block.

    ``by_network`` holds the seeds of networks as
    :func:`affscore_book.imagenet_signatures.calls.places` knows them. Columns: network; call;
    negative, the mean part of its inputs that is; score, the mean over calls and seeds.
    """
    rows = []
    for name, signatures in by_network.items():
        for label in ("inside its block", "last in its block"):
            found = [(zeros_of(each)[at].mean(), each.mean[at].mean())
                     for each in signatures.values() for at in [places(each)[label]]]  # fmt: skip
            zeros, score = np.mean(found, axis=0)
            rows.append({"network": name, "call": label, "negative": float(zeros), "score": float(score)})
    return Table.from_rows(rows)


def skip_gap(signatures: Mapping[Any, Signature]) -> Interval:
    """The mean :func:`gap` of networks (after the additions minus inside the blocks), with its interval over them."""
    return student_interval([gap(each) for each in signatures.values()])


def widening(starts: Mapping[Any, Signature], trained: Mapping[Any, Signature]) -> Interval:
    """The :func:`gap` after training minus that at the start of the same seed, with Student's interval over the seeds.

    ``starts`` and ``trained`` have the same seeds as keys.
    """
    return student_interval([gap(trained[seed]) - gap(starts[seed]) for seed in trained])


#: For each network and each state of its start, the signatures of the starts and of the trained networks by seed.
Pairs = Mapping[str, Mapping[str, tuple[Mapping[Any, Signature], Mapping[Any, Signature]]]]


def widening_table(networks: Pairs) -> Table:
    """A table with a row for each start: the mean gap before and after training, and their difference."""
    rows = []
    for name, by_start in networks.items():
        for state, (starts, trained) in by_start.items():
            more = widening(starts, trained)
            row = {"network": name, "seeds": len(trained), "before training": state}
            row |= {"there": skip_gap(starts).mean, "trained": skip_gap(trained).mean}
            rows.append(row | {"wider by": more.mean, "low": more.low, "high": more.high})
    return Table.from_rows(rows)


def _grouped(correlations: Table, measure: str, group: Callable[[str], str]) -> list[float]:
    """The mean correlation of each group with a finite correlation."""
    members: dict[str, list[float]] = {}
    for row in correlations.rows():
        if row["model"] not in ("mean", "std") and math.isfinite(row[measure]):
            members.setdefault(group(row["model"]), []).append(row[measure])
    return [float(np.mean(values)) for values in members.values()]


def strongest_measure(
    correlations: Table, measures: Iterable[str], group: Callable[[str], str]
) -> tuple[str, Interval]:
    """The measure whose mean correlation with the score is largest in absolute value, and that mean.

    ``group`` maps a name to the group that counts as one result, as in
    :data:`affscore_book.imagenet_signatures.calls.TRAINED`. The interval combines Student's intervals, because the
    greatest of several means is chosen (:func:`affscore_study.imagenet_signatures.greatest.greatest`).
    """
    means = {name: _grouped(correlations, name, group) for name in measures}
    signs = {name: math.copysign(1, np.mean(values)) for name, values in means.items()}
    strongest, found = greatest({
        name: partial(student_interval, np.multiply(signs[name], values)) for name, values in means.items()
    })  # fmt: skip
    return strongest, found if signs[strongest] > 0 else turned(found)
