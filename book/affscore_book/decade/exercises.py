"""Checks of the exercises of the chapter on the decade."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from scipy import stats

from affscore_book.decade.collection import Course
from affscore_book.kit.answers import function, one_number, wholes
from affscore_book.kit.checks import case, exercise, report
from affscore_book.kit.sequences import dtw


@exercise("decade-build", distance=function)
def check_build(distance: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Does ``distance`` give the distance of two signatures by dynamic time warping?"""
    generator = np.random.default_rng(0)
    for lengths in ((1, 4), (12, 12), (7, 33), (33, 7)):
        one, other = (generator.uniform(0.5, 1, length) for length in lengths)
        truth = dtw(one, other)
        with case(f"{lengths[0]} and {lengths[1]} calls"):
            mine = one_number(distance(one, other))
            if not abs(mine - truth) < 1e-6:
                found = f"the distance is {truth:.3f} here, and yours is {mine:.3f}."
                more = " Take the root of the cheapest sum." if abs(mine - truth**2) < 1e-6 else ""
                return report("decade-build", False, "", f"for {lengths[0]} and {lengths[1]} calls {found}{more}")
    report("decade-build", True, "it compares signatures of any two networks.", "")


@exercise("decade-trend", rank=one_number)
def check_trend(rank: float, years: Sequence[int], means: Sequence[float], normed: Sequence[bool]) -> None:
    """Is this the rank correlation of year and mean score over the networks with batch norm?"""
    kept = np.array(normed, dtype=bool)
    truth, every = (stats.spearmanr(np.array(years)[rows], np.array(means)[rows]).statistic
                    for rows in (kept, np.ones_like(kept)))  # fmt: skip
    hint = "keep the rows with batch norm in both lists; scipy.stats.spearmanr has the rest."
    if abs(rank - every) < 0.005:
        hint = "that is the correlation over all of them."
    praise = "compare it with the one over all networks: what is left is not batch norm."
    report("decade-trend", abs(rank - truth) < 0.01, praise, hint)


@exercise("decade-split", part=one_number)
def check_split(part: float, normed: Sequence[float], plain: Sequence[float]) -> None:
    """Is this the part of all ways to name three of six networks "with norm" that part the means as far or farther?"""
    every, own = [*normed, *plain], sum(normed)
    sums = [sum(chosen) for chosen in combinations(every, len(normed))]
    truth = float(np.mean([total >= own - 1e-12 for total in sums]))
    hint = "there are 20 ways; count those whose three have at least the sum of the three with norm, our own one too."
    if abs(part - (truth - 1 / len(sums))) < 1e-6:
        hint = "our own naming is one of the 20 ways; count it."
    praise = f"with {len(normed)} against {len(plain)} no result can be rarer than 1 in {len(sums)}."
    report("decade-split", abs(part - truth) < 1e-6, praise, hint)


@exercise("decade-half-way", steps=wholes)
def check_half_way(steps: Sequence[int], course: Course) -> None:
    """Is this, for each call, the first measured step at which it has gone half of its way to its end, or more?

    A call that goes the other way first has not yet gone half of it.
    """
    gone = (course.scores - course.scores[0]).T
    moments = [int(np.argmax(row / row[-1] >= 0.5)) for row in gone]
    truth = course.steps[moments].tolist()
    given = list(steps)
    hint = "for each call: the first row of (scores - scores[0]) / (scores[-1] - scores[0]) that is at least 1/2."
    if len(given) != len(truth):
        hint = f"there are {len(truth)} calls, so there are as many steps."
    elif given == moments:
        hint = "these are the numbers of the moments; course.steps has their steps."
    elif given == [int(course.steps[np.argmax(np.abs(row) >= abs(row[-1]) / 2)]) for row in gone]:
        hint = "a call that moves away from its end first has gone none of its way: keep the signs."
    report("decade-half-way", given == truth, "not all calls learn at the same time.", hint)
