"""Checks of the exercises of the chapter on the decade."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

import numpy as np
from scipy import stats

from affscore_book.decade.collection import Course
from affscore_book.kit.answers import Unfit, function, one_number, whole, wholes
from affscore_book.kit.checks import case, exercise, report
from affscore_book.kit.sequences import dtw


@exercise("decade-build", walk=function)
def check_build(walk: Callable[[np.ndarray, np.ndarray], Sequence[tuple[int, int]]]) -> None:
    """Does ``walk`` give the pairs of calls on a cheapest walk of dynamic time warping?"""
    generator = np.random.default_rng(0)
    for lengths in ((1, 4), (12, 12), (7, 33), (33, 7)):
        one, other = (generator.uniform(0.5, 1, length) for length in lengths)
        truth, where = dtw(one, other), f"for {lengths[0]} and {lengths[1]} calls"
        with case(f"{lengths[0]} and {lengths[1]} calls"):
            found = walk(one, other)
            try:
                pairs = [(whole(i), whole(j)) for i, j in found]
            except (TypeError, ValueError) as error:
                raise Unfit("your function should return a list of pairs (i, j) of whole numbers.") from error
            steps = {(k - i, m - j) for (i, j), (k, m) in pairwise(pairs)}
            if not pairs or pairs[0] != (0, 0) or pairs[-1] != (lengths[0] - 1, lengths[1] - 1):
                wrong = "the walk should begin with (0, 0) and end with the last call of both, counted from 0."
            elif not steps <= {(0, 1), (1, 0), (1, 1)}:
                wrong = "each step should go on by one call, in one signature or in both."
            elif (mine := sum((one[i] - other[j]) ** 2 for i, j in pairs) ** 0.5) > truth + 1e-6:
                wrong = f"the distance along your walk is {mine:.3f}; a walk with {truth:.3f} exists."
            else:
                continue
            return report("decade-build", False, "", f"{where} {wrong}")
    report("decade-build", True, "it is a cheapest walk, and it says which calls meet.", "")


@exercise("decade-trend", rank=one_number)
def check_trend(rank: float, years: Sequence[int], means: Sequence[float], calls: Sequence[int]) -> None:
    """Is this the partial rank correlation of year and mean score, with the number of calls as the further quantity?"""
    year, score, call = map(stats.rankdata, (years, means, calls))
    line = np.stack([np.ones_like(call), call], axis=1)
    left = [each - line @ np.linalg.lstsq(line, each)[0] for each in (year, score)]
    truth, plain = np.corrcoef(left)[0, 1], stats.spearmanr(year, score).statistic
    hint = "scipy.stats.rankdata gives ranks, np.polyfit(calls, each, 1) a line; correlate the two remainders."
    if abs(rank - plain) < 0.005:
        hint = "that is the correlation before anything was subtracted."
    praise = "compare it with the plain one: what is left of the rise is not the number of calls."
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
