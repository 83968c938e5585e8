"""A test of whether a measure predicts the loss that remains after training, with random quarters of calls (P2).

The rules below were committed before the first training. ``book/data/uses/mend.py`` makes the runs.

*Why*: the fine-tuning of E2 could not answer. Score and paired R² took out the same calls, so that a rule compared a
run with itself. Here the calls that go are drawn by chance.

*Networks*: :data:`MENDED`, stored by the decade, first seed; none was trained towards lines. Six architectures count
as families; those of one family are averaged. Which ones, by time and by calls: of AlexNet's seven calls two go, which
makes 21 pairs and not thirty; GoogLeNet and Inception call functions, which cannot be made to learn a slope;
DenseNet40, ResNet34, the other mobile networks and ConvNeXt take four to seven minutes a run, twice as long as there
is time for. The three VGGs are quick. *Calls*: all but gates, and but DenseNet's last, which is a function.

*Removal*: :data:`QUARTERS` different random quarters of these calls (:func:`quarters_of`), each made affine as in
:mod:`affscore_book.uses.removal`: lines fitted one after another on 256 training images. *Training*: as in
:mod:`affscore_study.uses.finetuning`: two epochs, the decade's recipe at a quarter of its rate; slopes and offsets
learn too. All thirty see the images in the same order. *Control*: no call goes, :data:`CONTROL_RUNS` trainings: the
first sees that order too, the others see other ones. *Outcome*: the control's accuracy, mean over its trainings, minus
that of the quarter, on the 9,500 test images that no measure has seen, in points: the loss that training leaves. The
control moves all thirty losses of a network alike, and no correlation; its trainings tell how much chance is in one
accuracy.

*Predictors*, measured and committed before the first training: sums over the calls that go of :data:`PREDICTORS`, by
:func:`affscore_study.uses.costs.measure_costs` (lines and score on 256 training images, R² and divergence on 500 test
images), with the library as commit 1f9a82e left it, which each file names. *Unit*: a family. Within each network the
rank correlation of a predictor with the loss; mean over the networks of a family; Student's interval at 95 % over the
six families.

1.  *Primary:* the correlation of the sum of 1 − score. Its interval lies above 0 and its mean is at least
    :data:`LEAST_KNOWN`: "the score knows the loss that training does not mend". The whole interval lies below
    :data:`LEAST_KNOWN`: "it does not". Otherwise: "undecided".
2.  *Second:* the correlation of the score minus that of paired R². Its interval lies above 0: the score knows more;
    below 0: R² does. Otherwise undecided.

There is one primary rule, so Holm's correction has nothing to correct; the second is asked only where the first is
held, as H2 of E1, so that none is due for it. The other predictors, other outcomes (accuracy before training,
cross-entropy) and what a network shows by itself are exploratory.

*Failed runs*: a training whose loss is not finite is stored, counted and left out, and never repeated. *Too few*: the
networks take turns, so that all have as many quarters. Nothing is judged before all have :data:`QUARTERS`; should the
time run out, what is judged are the quarters that all have, if they are :data:`FEWEST` or more, and the row says so.
No outcome decides when the runs stop.

*Power* (:mod:`affscore_study.uses.mending_tables`), before the run: a rank correlation of thirty has a sampling error
of .186; with .15 assumed between families, which nothing stored can tell, a true .3 is found in two thirds of all cases
and .4 in nine of ten; the plan said .86 for .3, as if there were eight families. Chance in one training makes every
correlation smaller than that with the loss on average. *Can the predictors be told apart?* Before the run, by their
sums over the thirty quarters: score and R² hardly, their rank correlation is .83 to .97, so that the second rule's
difference is small whatever is true, and only its interval tells something; no two are the same, as they were in E2.
The score and the single divergence share little (-.4 to .6), and so the first rule can tell these apart.

*Seen before*: E2 fine-tuned ResNet18 and VGG16 with norm, first seed among three, and its results are known; no
quarter here was chosen by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.uses.foreknowledge import RIVALS, Measure
from affscore_book.uses.mended import MENDED, Mended
from affscore_book.uses.removal import removed_at
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "CONTROL_RUNS", "FEWEST", "LEAST_KNOWN", "PREDICTORS", "QUARTERS", "ended_quarters", "family_means",
    "known_losses", "mending_claims", "mending_verdict", "over_six", "quarters_of", "removable", "shared_quarters",
    "spearman_of", "sums_over",
]  # fmt: skip

#: The number of random quarters of each network.
QUARTERS = 30
FEWEST, CONTROL_RUNS = 20, 3
#: The measures, by name, that are summed over the removed calls; a larger sum should mean a larger loss.
PREDICTORS: dict[str, Measure] = {
    "1 − score": RIVALS["1 − score"],
    "1 − paired R²": RIVALS["1 − paired R²"],
    "single divergence": lambda call: call["kl"],
    "early position": RIVALS["early position"],
}
FIRST, SECOND = "1 − score", "1 − paired R²"
#: The least mean correlation that would be of use.
LEAST_KNOWN = 0.2
#: The seed of the quarters, together with the network's place in :data:`MENDED`.
SEED = 20261128


def removable(calls: Sequence[Mapping[str, Any]]) -> list[int]:
    """The numbers of the calls that may be removed, without gates and without functions of the network itself.

    Gates have no record.

    ``calls`` are those of :func:`affscore_study.uses.costs.measure_costs`.

    >>> removable([{"name": "relu:relu[0]", "position": 0}, {"name": ":relu[0]", "position": 1}])
    [0]
    """
    return [call["position"] for call in calls if not call["name"].startswith(":")]


def quarters_of(name: str, positions: Sequence[int]) -> list[list[int]]:
    """Thirty different random quarters of some calls, each in order, which are fixed for a network of :data:`MENDED`.

    Raises
    ------
    ValueError
        If there are too few calls for thirty different quarters.

    >>> quarters_of("vgg11", range(10)) == quarters_of("vgg11", range(10))
    True
    """
    count = removed_at(len(positions))[1]
    if math.comb(len(positions), count) < QUARTERS:
        raise ValueError(f"positions has {len(positions)} calls; they have no {QUARTERS} different quarters.")
    generator = np.random.default_rng((SEED, list(MENDED).index(name)))
    found: list[list[int]] = []
    while len(found) < QUARTERS:
        some = sorted(generator.permutation(np.array(positions))[:count].tolist())
        if some not in found:
            found.append(some)
    return found


def sums_over(network: Mapping[str, Any], of: Measure, gone: Sequence[Sequence[int]]) -> list[float]:
    """A predictor of each removal: the sum of a measure over the removed calls, which ``gone`` gives by number."""
    values = {call["position"]: of(call) for call in network["calls"]}
    return [math.fsum(values[at] for at in some) for some in gone]


def spearman_of(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation of ``x`` and ``y``, both (n,); NaN if one is constant."""
    return float(stats.spearmanr(x, y).statistic) if np.ptp(x) > 0 and np.ptp(y) > 0 else math.nan


def shared_quarters(runs: Mended) -> int:
    """The number of quarters that all networks have; failed ones count."""
    return min((len(runs[name]["quarters"]) if name in runs else 0) for name in MENDED)


def known_losses(runs: Mended, of: Measure, first: int) -> dict[str, float]:
    """For each network, the rank correlation of a predictor's sums with the loss, over the first quarters that ended.

    The control's accuracy is one number for each network and changes no rank, so it is not used.
    """
    found = {}
    for name in MENDED:
        ended = ended_quarters(runs[name], first)
        sums = sums_over(runs[name], of, [run["gone"] for run in ended])
        found[name] = spearman_of(sums, [-run["after"] for run in ended])
    return found


def family_means(values: Mapping[str, float]) -> dict[str, float]:
    """For each family, the mean of ``values`` over its networks."""
    kinds = dict.fromkeys(MENDED.values())
    return {kind: fmean(values[name] for name in MENDED if MENDED[name] == kind) for kind in kinds}


def over_six(values: Mapping[str, float]) -> Interval:
    """The mean over families with Student's interval, whose ends are NaN if a family has no value."""
    means = list(family_means(values).values())
    if not np.isfinite(means).all():
        return Interval(float(np.mean(means)), math.nan, math.nan)
    return student_interval(means)


def mending_claims(runs: Mended) -> list[Claim]:
    """Tests of both rules; the second is tested only if the first is held."""
    first = shared_quarters(runs)
    if first < FEWEST:
        needs = f"{QUARTERS} quarters of each network; all have {first}"
        return judged("uses", "mending", {"score": needs, "beyond": needs}, part="")
    part = "" if first == QUARTERS else f" (first {first} quarters)"
    score, other = (known_losses(runs, PREDICTORS[name], first) for name in (FIRST, SECOND))
    needs = "the first to be held; it is not asked otherwise"
    found: dict[str, Any] = {"score": over_six(score), "beyond": Worded(needs, {"part": ""})}
    rows = judged("uses", "mending", found, part=part)
    if rows[0].verdict == "held":
        found["beyond"] = over_six({name: score[name] - other[name] for name in MENDED})
        rows = judged("uses", "mending", found, part=part)
    return rows


def mending_verdict(runs: Mended) -> str:
    """The primary rule's verdict in words."""
    verdict = mending_claims(runs)[0].verdict
    words = {
        "held": "the score knows the loss that training does not mend",
        "failed": f"it does not (a mean below {LEAST_KNOWN:g} is shown)",
        "not run here": "not run yet",
    }
    return words.get(verdict, verdict)


def ended_quarters(network: Mapping[str, Any], first: int = QUARTERS) -> list[Mapping[str, Any]]:
    """A network's first quarters without those whose training failed."""
    return [run for run in network["quarters"][:first] if "failed" not in run]
