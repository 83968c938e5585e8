"""Sources of the differences between signatures, and the times in a training at which calls change.

Signatures of one architecture are compared call by call. Those of two architectures have different numbers of calls and
are compared at the same fractions of the way from the first call to the last (:func:`profile`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from affscore_book.decade.collection import END, START, Course, Decade, Trained
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.explained import shares

__all__ = ["PLACES", "known_at_start", "moved_half", "movers", "profile"]

#: The number of places at which the signatures of two architectures are compared.
PLACES = 20
#: The least change of a score that counts as a move; between two batches scores differ by about 0.005.
MOVED = 0.02


def profile(scores: np.ndarray) -> np.ndarray:
    """The ``scores`` (calls,), interpolated linearly at :data:`PLACES` evenly spaced places from first call to last.

    >>> profile(np.array([0.0, 1.9])).round(1)[:4].tolist()
    [0.0, 0.1, 0.2, 0.3]
    """
    return np.interp(np.linspace(0, 1, PLACES), np.linspace(0, 1, len(scores)), scores)


def _scores(seeds: Mapping[int, Trained], state: str) -> list[np.ndarray]:
    return [network.signatures[state, "spatial"].mean for network in seeds.values()]


def known_at_start(decade: Decade) -> Table:
    """A table of the part of a trained signature that untrained networks, and other trained seeds, account for.

    Columns: network; seeds; start and ceiling, the mean squared correlations over the calls of a trained signature with
    the starts (batch norm set) of the *other* seeds, and with the other trained seeds. Networks with one seed, or with
    fewer than 3 calls that are never dead, are left out.
    """
    rows = []
    for name, seeds in decade.items():
        if len(seeds) < 2:
            continue
        trained, starts = np.array(_scores(seeds, END)), np.array(_scores(seeds, START))
        alive = ~np.isnan(trained).any(axis=0) & ~np.isnan(starts).any(axis=0)
        if alive.sum() < 3:
            continue
        told = shares(trained[:, alive], starts[:, alive])
        np.fill_diagonal(told, np.nan)
        ceiling = shares(trained[:, alive])
        rows.append({"network": name, "seeds": len(seeds)}
                    | {"start": float(np.nanmean(told)), "ceiling": float(np.nanmean(ceiling))})  # fmt: skip
    return Table.from_rows(rows)


def moved_half(found: Course) -> np.ndarray:
    """The first step at which the score of each call is halfway from its start to its end, float64 of shape (calls,).

    Between two measured moments, the score is interpolated linearly in the logarithm of step + 1. The step is NaN for a
    call whose score at the end is within :data:`MOVED` of that at the start, or that is dead at some moment.

    >>> scores = np.array([[1.0, 0.5], [0.8, 0.5], [0.2, 0.5]])
    >>> moved_half(Course(np.array([0, 9, 99]), scores, np.zeros(3))).round(1).tolist()
    [20.5, nan]
    """
    moments = np.log(found.steps + 1.0)
    way = found.scores[-1] - found.scores[0]
    steps = np.full(way.shape, np.nan)
    for call in np.flatnonzero(np.abs(way) > MOVED):
        part = (found.scores[:, call] - found.scores[0, call]) / way[call]
        if np.isnan(part).any():
            continue
        after = int(np.argmax(part >= 0.5))
        share = (0.5 - part[after - 1]) / (part[after] - part[after - 1])
        steps[call] = np.exp(moments[after - 1] + share * (moments[after] - moments[after - 1])) - 1
    return steps


def movers(courses: Mapping[str, Course]) -> Table:
    """A table of the steps at which the calls of each network change.

    Columns: network; rise, that of the mean score from the start to its highest moment; calls; moved, the number of
    calls that change; first, median and last, the steps at which a call is halfway (:func:`moved_half`); place and
    step, the rank correlation of that step with the place of the call; p, the p-value of this correlation. The last two
    are NaN if fewer than 4 calls change.
    """
    rows = []
    for name, found in courses.items():
        steps = moved_half(found)
        at = np.flatnonzero(~np.isnan(steps))
        known = steps[at]
        means = np.nanmean(found.scores, axis=1)
        row = {"network": name, "rise": float(means.max() - means[0]), "calls": len(steps), "moved": len(known)}
        for what, share in (("first", 0.0), ("median", 0.5), ("last", 1.0)):
            row[what] = round(np.quantile(known, share)) if len(known) else math.nan
        order = stats.spearmanr(at, known) if len(at) >= 4 else (math.nan, math.nan)
        rows.append(row | dict(zip(("place and step", "p"), map(float, order), strict=True)))
    return Table.from_rows(rows)
