"""The part of a trained signature that the architecture alone accounts for, and differences between families."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.finding import find, seeds
from affscore_book.kit.architectures import facts
from affscore_book.kit.statistics import Interval, over_pairs
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.greatest import greatest

__all__ = ["Comparison", "comparisons", "family_gap", "group_gap", "medians", "scores", "share_table", "shares"]

Rows = Sequence[Sequence[float]] | np.ndarray


def shares(ones: Rows, others: Rows | None = None) -> np.ndarray:
    """Squared correlations between signatures, each of ``ones`` with each of ``others``.

    The square of the correlation over the calls is the part of the variance along one signature that the best
    straight line in the other accounts for. It does not change if a signature is shifted or scaled.

    Parameters
    ----------
    ones, others
        Scores of shape (networks, calls) without NaN, with at least 3 calls. If ``others`` is None, ``ones`` are
        compared among themselves.

    Returns
    -------
    Array of shape (networks of ones, networks of others), with NaN on the diagonal if ``others`` is None.

    Raises
    ------
    ValueError
        If the two do not have the same 3 calls or more.

    Examples
    --------
    >>> shares([[1, 2, 3], [1, 2, 4]], [[3, 1, 2]]).round(2).tolist()
    [[0.25], [0.11]]
    """
    rows, columns = (np.asarray(each, dtype=np.float64) for each in (ones, ones if others is None else others))
    if rows.ndim != 2 or rows.shape[1] < 3 or rows.shape[1:] != columns.shape[1:]:
        raise ValueError(f"ones and others have shapes {rows.shape} and {columns.shape}; they should be (networks, "
                         "calls) with the same 3 calls or more.")  # fmt: skip
    found = np.corrcoef(rows, columns)[: len(rows), len(rows) :] ** 2
    if others is None:
        np.fill_diagonal(found, np.nan)
    return found


def scores(signatures: Mapping[Any, Signature], first: int = 1) -> np.ndarray:
    """Mean scores of signatures with the same calls, shape (networks, calls), from call number ``first`` on."""
    return np.array([each.mean[first - 1 :] for each in signatures.values()])


class Comparison(NamedTuple):
    """A comparison of a network's trained signatures with others, from call number ``first`` on.

    ``pairs`` holds the share for each pair of a trained network and another one, and NaN for a pair that is left out.
    """

    network: str
    compared: str
    first: int
    pairs: np.ndarray


def comparisons(folder: str | os.PathLike[str]) -> list[Comparison]:
    """The shares of each trained signature that an untrained network, and another trained one, account for.

    For ResNet20 and plain20, each trained seed is compared with the starts of the *other* seeds and with the other
    trained seeds, so that both shares are over pairs that have nothing but the architecture in common.
    The Lites have one set of trained weights each. They are compared with themselves before training, from the first
    call and from the second. Lite1 and Lite2 have the same calls, so that these two trained Lites can be compared.
    """
    lites, starts = find(folder, "imagenet"), find(folder, "calibrated")
    result = []
    for first in (1, 2):
        for name in lites:
            pair = [scores({name: each[name]}, first) for each in (lites, starts)]
            result.append(Comparison(name, "a random start", first, shares(*pair)))
    pair = [scores({name: lites[name]}, 2) for name in ("efficientnet_lite1", "efficientnet_lite2")]
    result.append(Comparison("efficientnet_lite1", "trained lite2", 2, shares(*pair)))
    for name in ("resnet20", "plain20"):
        trained, untrained = (scores(seeds(folder, name, kind)) for kind in ("fashion-mnist", "calibrated"))
        start = shares(trained, untrained)
        np.fill_diagonal(start, np.nan)
        result.append(Comparison(name, "starts of other seeds", 1, start))
        result.append(Comparison(name, "other trained seeds", 1, shares(trained)))
    return result


def share_table(compared: Sequence[Comparison]) -> Table:
    """A table of the comparisons, with the mean share and, if there are several seeds, its interval.

    The interval leaves out one network at a time. A share lies between 0 and 1, and so do the ends of its interval.
    """
    rows = []
    for each in compared:
        row = {"network": each.network, "beside": each.compared, "from call": each.first}
        many = len(each.pairs) > 1
        low, high = np.clip(over_pairs(each.pairs)[1:], 0, 1).tolist() if many else (math.nan, math.nan)
        rows.append(row | {"share": float(np.nanmean(each.pairs)), "low": low, "high": high})
    return Table.from_rows(rows)


def medians(signatures: Mapping[str, Signature]) -> dict[str, list[float]]:
    """The median scores over the calls of the networks, a list for each family."""
    members: dict[str, list[float]] = {}
    for name, each in signatures.items():
        members.setdefault(facts(name).family, []).append(float(np.nanmedian(each.mean)))
    return members


def family_gap(
    signatures: Mapping[str, Signature], family: str, others: Collection[str] | None = None
) -> tuple[str, Interval]:
    """The mean of the median scores of a family minus that of the lowest other family that has several networks.

    ``others`` are the names of the families to compare with, by default all. Returns the name of the lowest family and
    the difference, which is negative if ``family`` is the more non-linear one. The interval combines Welch's intervals
    over the networks, because the greatest of several differences is chosen
    (:func:`affscore_study.imagenet_signatures.greatest.greatest`).
    """
    every = medians(signatures)
    own = every.pop(family)
    several = [name for name in every if len(every[name]) > 1 and (others is None or name in others)]
    return greatest({name: partial(group_gap, own, every[name]) for name in several})


def group_gap(ones: Sequence[float], others: Sequence[float], level: float = 0.95) -> Interval:
    """The mean of ``ones`` minus that of ``others``, one number for each network, with Welch's interval."""
    found = stats.ttest_ind(ones, others, equal_var=False).confidence_interval(level)
    return Interval(float(np.mean(ones) - np.mean(others)), float(found.low), float(found.high))
