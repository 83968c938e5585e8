"""A test of whether a lower score causes robustness to noise, with fresh seeds, a placebo and shifts (experiment P1).

The rules below were committed before the first training, and what the pilots decide is decided by a rule.
``book/data/uses/dose.py`` makes the runs.

*Why*: read as a dose, the stored trainings of E4 (:mod:`affscore_book.uses.targets`) lose 7 points under noise of .1
for each .1 of score in ResNet18, and VGG11 3 under noise of .3. That was chosen after a look, from five seeds, and
confirms nothing.

*Networks*: the decade's ResNet18 and VGG11 (:data:`DOSED`), trained as there, from :data:`DOSE_SEEDS`, which nothing
in this book has used before. *Arms*, in each seed from the same start and with the same order of images:

-   *none*: no penalty.
-   *placebo*: the penalty of E4, ``30 * (mean score - target)^2`` at every second step, felt by all weights, towards
    the mean score that *none* of this seed ended with: a penalty that asks for no other score.
-   *low*: towards .6 in ResNet18; in VGG11, whose own score is .63, towards what its pilots reach (:func:`low_target`).
-   *high*: towards .9.
-   *shift*, in :data:`SHIFT_SEEDS`: no penalty on the score. After each step the shift before each call (bias or norm
    shift, the same for all channels) moves so that the share of the call's inputs that are negative is that of *low*
    of this seed.

*Pilots*: VGG11 towards each of :data:`PILOTS`, from :data:`PILOT_SEED`. The low target is the smallest that its pilot
meets, or else .6.

A training *meets its aim* if its accuracy reaches the decade's floor and, with a target, its mean score ends within
:data:`LIMIT` of it; in *shift*, if the shares differ from the wanted ones by at most :data:`SHARE_LIMIT`, mean over
calls. A training that does not is stored, counted and not repeated, and stays in the comparison as assigned; one whose
loss is not finite has no outcome, and its pair is left out. A network is judged if :data:`PAIRS` of its eight pairs
have both trainings and both meet their aims; otherwise the row says how many did not.

*Primary*, one a network, unit a seed, paired: accuracy on test images under noise, in points (:data:`PRIMARY`):
ResNet18, noise .1, low − placebo; VGG11, noise .3, low − high. Two-sided t-tests with Holm's correction over the two
networks at .05; each interval is Student's at the level of its network in that correction (97.5 % for the smaller
p-value, 95 % for the other if the first is passed), so that interval and test say the same.

*Verdict*, of each network (:func:`dose_verdict`): the interval does not hold 0: "a handle on robustness"; it lies
within :data:`MATTERS` points of 0: "no handle of 8 points or more"; otherwise "undecided". An interval below 0 says
"the other way round".

*Secondary*, without correction and labelled so: the slope over the three arms with a penalty, points per +.1 of the
mean score that was reached; the same comparison for other strengths of noise, two corruptions that are no noise
(contrast and blur, of strengths that leave the decade's first seed between a half and three quarters of its images),
calibration, and what stays after straightening in random order; *none* − *placebo*. *shift* has four seeds, so points
and no interval: if its mean score is within :data:`LIMIT` of that of *low*, share and score cannot be told apart, and
that is the result.

*Power* (:func:`dose_power`), before the run: differences paired by seed had standard deviations of 5.3 and 5.5 points
in E4. With eight seeds 8 points are found with .89 and .86 at the level of .025, and 10 with .98 and .97. *Cost*, by
the seconds that E4 stored: eight to nine hours of one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.training import FLOORS
from affscore_book.kit.statistics import Interval, shown, student_interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_book.uses.doses import ARMS, DOSE_SCRIPT, Doses
from affscore_book.uses.targets import LIMIT, OUTCOMES
from affscore_study.kit.claims import Claim
from affscore_study.uses.power import power_of_pairs

__all__ = [
    "DOSED", "DOSE_SEEDS", "HIGH_TARGET", "PILOTS", "PILOT_SEED", "SHIFT_SEEDS", "aim_met", "arms_of", "dose_claims",
    "dose_power", "dose_power_found", "dose_table", "dose_verdict", "load_pilots", "low_target",
    "shift_reading", "shift_table", "slope_table",
]  # fmt: skip

#: The networks with their low targets; None if the pilots decide it.
DOSED: dict[str, float | None] = {"resnet18": 0.6, "vgg11": None}
DOSE_SEEDS, SHIFT_SEEDS, PILOT_SEED = tuple(range(40, 48)), tuple(range(40, 44)), 39
HIGH_TARGET, PILOTS, FALLBACK = 0.9, (0.4, 0.5), 0.6
SHARE_LIMIT = 0.03
#: The least number of pairs, of eight, with which a network is judged.
PAIRS = 6
#: For each network, an outcome of :data:`OUTCOMES_OF_DOSES` and the arms whose difference is judged.
PRIMARY = {"resnet18": ("with noise of .1", "low", "placebo"), "vgg11": ("with noise of .3", "low", "high")}
#: The difference that matters, in percentage points; and, for each network, the stored standard deviation of paired
#: differences.
MATTERS = 8.0
SPREADS = {"resnet18": 5.3, "vgg11": 5.5}
OUTCOMES_OF_DOSES: dict[str, Callable[[Mapping[str, Any]], float]] = {
    **{name: of for name, of in OUTCOMES.items() if name != "straightened, latest first"},
    "contrast": lambda run: 100 * run["corrupted"]["contrast"],
    "blur": lambda run: 100 * run["corrupted"]["blur"],
}


def arms_of(seed: int) -> list[str]:
    """The arms of a seed, in the order in which they are trained; no arm needs a later one.

    >>> arms_of(47)
    ['none', 'placebo', 'low', 'high']
    """
    return [arm for arm in ARMS if arm != "shift" or seed in SHIFT_SEEDS]


def load_pilots(folder: str | Path) -> dict[str, dict[str, Any]]:
    """The pilots of VGG11 by their target as text; ``folder`` is ``book/data/uses``.

    Raises FileNotFoundError if there are none, and ValueError if the file is damaged.
    """
    file = Path(folder) / "dose" / "pilots" / f"vgg11-{PILOT_SEED}.json"
    return read_results(file, lambda content: dict(content["arms"]), DOSE_SCRIPT)


def aim_met(run: Mapping[str, Any]) -> bool:
    """Whether a training ended, reached the floor of its accuracy, and met its target or its shares.

    >>> aim_met({"accuracy": 0.9, "target": 0.6, "mean": 0.61}), aim_met({"accuracy": 0.9, "target": 0.6, "mean": 0.65})
    (True, False)
    """
    if "failed" in run or run["accuracy"] < FLOORS["convolutional"]:
        return False
    if run.get("wanted") is not None:
        away = fmean(abs(a - b) for a, b in zip(run["shares"], run["wanted"], strict=True))
        return away <= SHARE_LIMIT
    return run["target"] is None or abs(run["mean"] - run["target"]) <= LIMIT


def low_target(network: str, pilots: Mapping[str, Mapping[str, Any]]) -> float:
    """The target of the low arm.

    Parameters
    ----------
    network
        One of :data:`DOSED`.
    pilots
        The result of :func:`load_pilots`, which ResNet18 does not use.

    Raises
    ------
    ValueError
        If VGG11 lacks a pilot.

    >>> low_target("resnet18", {})
    0.6
    """
    if (fixed := DOSED[network]) is not None:
        return fixed
    if missing := [target for target in PILOTS if str(target) not in pilots]:
        raise ValueError(f"pilots lacks {' and '.join(map(str, missing))}; {DOSE_SCRIPT} --pilots makes them.")
    return min([target for target in PILOTS if aim_met(pilots[str(target)])], default=FALLBACK)


def _both(runs: Doses, network: str, one: str, other: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The pairs of trainings of the same seed that both have outcomes."""
    seeds = runs.get(network, {}).values()
    pairs = [(arms[one], arms[other]) for arms in seeds if one in arms and other in arms]
    return [(a, b) for a, b in pairs if "failed" not in a and "failed" not in b]


def _gaps(runs: Doses, network: str, outcome: str, one: str, other: str) -> list[float]:
    of = OUTCOMES_OF_DOSES[outcome]
    return [of(a) - of(b) for a, b in _both(runs, network, one, other)]


def _judged(runs: Doses) -> dict[str, tuple[Interval, float]]:
    """For each judged network, the primary difference with its interval, and its level by Holm's correction."""
    found: dict[str, list[float]] = {}
    for network, (outcome, one, other) in PRIMARY.items():
        ended = all(set(arms_of(seed)) <= set(runs.get(network, {}).get(seed, {})) for seed in DOSE_SEEDS)
        met = sum(aim_met(a) and aim_met(b) for a, b in _both(runs, network, one, other))
        if ended and met >= PAIRS:
            found[network] = _gaps(runs, network, outcome, one, other)
    p = {network: float(stats.ttest_1samp(gaps, 0.0).pvalue) for network, gaps in found.items()}
    intervals = {}
    for network, gaps in found.items():
        # The smaller of two p-values is tested at .025, and the other at .05 if the first passed. A single p-value is
        # tested at .025.
        last = any(p[other] < p[network] and p[other] <= 0.025 for other in p)
        level = 0.95 if last else 0.975
        intervals[network] = student_interval(gaps, level), level
    return intervals


def dose_claims(runs: Doses) -> list[Claim]:
    """Tests for each network of whether the primary difference is above 0, and whether it is smaller than 8 points."""
    rows, judged = [], _judged(runs)
    for network, (outcome, one, other) in PRIMARY.items():
        what = f"{network}, {outcome}, {one} − {other}, points"
        for theirs, accept in (("P1: not 0", (0.0, math.inf)), (f"P1: within {MATTERS:g}", (-MATTERS, MATTERS))):
            if network in judged:
                found, level = judged[network]
                bracket = f"{100 * level:g} %"
                rows.append(Claim.over(what, "ours, P1", theirs, found, accept, bracket=bracket, kind="own"))
                continue
            pairs = _both(runs, network, one, other)
            missed = sum(not (aim_met(a) and aim_met(b)) for a, b in pairs)
            needs = f"eight pairs of which {PAIRS} meet their aims; of {len(pairs)} there, {missed} do not"
            rows.append(Claim(what, "ours, P1", theirs, None, None, needs=needs, kind="own"))
    return rows


def dose_verdict(runs: Doses, network: str) -> str:
    """The verdict on a network in words."""
    judged = _judged(runs)
    if network not in judged:
        return "not judged"
    found, _ = judged[network]
    if found.low > 0 or found.high < 0:
        return "a handle on robustness" + (", the other way round" if found.high < 0 else "")
    within = found.low > -MATTERS and found.high < MATTERS
    return f"no handle of {MATTERS:g} points or more" if within else "undecided"


def dose_table(runs: Doses, network: str) -> Table:
    """A table of each outcome: its mean in each arm, the primary comparison, and each arm with the placebo.

    The differences have 95 % intervals. All outcomes except the primary one are secondary, without correction.
    """
    _, one, other = PRIMARY[network]
    rows = []
    for outcome, of in OUTCOMES_OF_DOSES.items():
        row: dict[str, Any] = {"outcome": outcome}
        for arm in ARMS[:4]:
            ended = [arms[arm] for arms in runs[network].values() if arm in arms and "failed" not in arms[arm]]
            row[arm] = f"{fmean(map(of, ended)):.1f}" if ended else "-"
        for a, b in dict.fromkeys([(one, other), *((arm, "placebo") for arm in ("low", "high", "none"))]):
            gaps = _gaps(runs, network, outcome, a, b)
            row[f"{a} − {b}"] = shown(student_interval(gaps), 1) if len(gaps) >= 5 else "-"
        rows.append(row)
    return Table.from_rows(rows, digits=1)


def slope_table(runs: Doses, network: str) -> Table:
    """A secondary table: points per +.1 of the reached mean score, over the arms with a penalty, within a seed."""
    rows, arms = [], ARMS[1:4]
    whole = [each for each in runs[network].values() if all(a in each and "failed" not in each[a] for a in arms)]
    for outcome, of in OUTCOMES_OF_DOSES.items():
        slopes = [np.polyfit([s[a]["mean"] for a in arms], [of(s[a]) for a in arms], 1)[0] / 10 for s in whole]
        rows.append({"outcome": outcome, "seeds": len(slopes)} | {
            "points per +.1": shown(student_interval(slopes), 1) if len(slopes) >= 5 else "-"})  # fmt: skip
    return Table.from_rows(rows, digits=1)


def _shifted(runs: Doses, network: str) -> list[dict[str, dict[str, Any]]]:
    """The runs of the seeds in which shift, low and placebo have outcomes."""
    three = ("shift", "low", "placebo")
    seeds = runs.get(network, {}).values()
    return [each for each in seeds if all(arm in each and "failed" not in each[arm] for arm in three)]


def shift_table(runs: Doses, network: str) -> Table:
    """A table of the arm *shift*, which has the shares of the arm *low* and no penalty: means over its seeds.

    Raises ValueError if no seed has shift, low and placebo.
    """
    some, outcome = _shifted(runs, network), PRIMARY[network][0]
    if not some:
        raise ValueError(f"runs has no seed of {network} with shift, low and placebo; {DOSE_SCRIPT} makes them.")
    rows = []
    for arm in ("shift", "low", "placebo"):
        found = [each[arm] for each in some]
        row: dict[str, Any] = {"arm": arm, "met": f"{sum(map(aim_met, found))} of {len(found)}"}
        row |= {"mean score": fmean(run["mean"] for run in found)}
        row |= {"negative inputs": fmean(fmean(run["shares"]) for run in found)}
        rows.append(row | {outcome: fmean(map(OUTCOMES_OF_DOSES[outcome], found))})
    return Table.from_rows(rows, digits=2)


def shift_reading(runs: Doses, network: str) -> str:
    """A sentence that says whether the score changed together with the share of negative inputs."""
    some = _shifted(runs, network)
    if not some:
        return "not run yet"
    away = fmean(each["shift"]["mean"] for each in some) - fmean(each["low"]["mean"] for each in some)
    if abs(away) <= LIMIT:
        return "the score came along with the share of negative inputs: the two cannot be told apart"
    return f"the share came without the score, which is {away:+.2f} from the low arm's"


def dose_power(alphas: tuple[float, ...] = (0.0125, 0.025, 0.05)) -> Table:
    """A table of the power with eight seeds, for true differences in points and levels of the test."""
    return Table.from_rows([
        {"network": network, "points": points}
        | {f"at {alpha:g}": power_of_pairs(points, spread, len(DOSE_SEEDS), alpha) for alpha in alphas}
        for network, spread in SPREADS.items() for points in (4.0, 6.0, 8.0, 10.0)
    ], digits=2)  # fmt: skip


def dose_power_found(runs: Doses) -> Table:
    """A table of the power for :data:`MATTERS` points with the standard deviation of the paired differences found."""
    rows = []
    for network, (outcome, one, other) in PRIMARY.items():
        spread = float(np.std(_gaps(runs, network, outcome, one, other), ddof=1))
        power = {f"at {alpha:g}": power_of_pairs(MATTERS, spread, len(DOSE_SEEDS), alpha) for alpha in (0.025, 0.05)}
        rows.append({"network": network, "points": MATTERS, "spread found": spread} | power)
    return Table.from_rows(rows, digits=2)
