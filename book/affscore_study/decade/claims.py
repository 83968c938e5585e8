"""Tests of the source's sentences on trained networks with the networks of the decade.

``claims.toml`` has the sentences and the rules. A sentence on named architectures has Student's interval over their
seeds. For a sentence on architectures in general, each architecture is the mean over its seeds, and the interval comes
from leaving out one family (:func:`kin`) at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.collection import END, START, Decade, Trained, architectures, course, kin
from affscore_book.kit.sequences import dtw, sequence
from affscore_book.kit.statistics import Interval, leaving_out, student_interval
from affscore_study.decade.modes import modes_power, one_mode
from affscore_study.decade.variance import profile
from affscore_study.imagenet_signatures.trained import ends, gap
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "DISTANCES", "PLAIN", "beginning_claims", "beyond_chance", "by_family", "by_seed", "common_seeds", "cut",
    "depth_claims", "modes_claims", "own_residual_claims", "rank_correlation", "residual_claims", "seed_by_seed",
    "skip_modes_claim", "statistic", "turn",
]  # fmt: skip

#: Stacks of convolutions, which have "a very low spread" according to the source.
PLAIN = ("alexnet", "vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn")
RARE = 0.05  # the fraction of shuffles that may do as well
#: The absence of two modes counts only if the test would find modes so many standard deviations apart with this power.
APART, ENOUGH = 4.0, 0.8
#: ResNet18 with and without skips, and two ResNets of different depths with a stem of eight channels each (ResNet10 has
#: more).
_SKIPS, _NO_SKIPS = "resnet18", "resnet18_no_skips"
_DEEP, _SHALLOW = "resnet34", "resnet18"


def statistic(of: Callable[[np.ndarray], Any], network: Trained, pool: str = "spatial") -> float:
    """A statistic of the scores of a trained network's calls, without dead calls."""
    return float(of(sequence(network.signatures[END, pool])))


def common_seeds(names: Iterable[str], decade: Decade) -> list[int]:
    """The seeds that all these networks have, in increasing order."""
    return sorted(set.intersection(*(set(decade[name]) for name in names)))


def by_family(of: Callable[[np.ndarray], float], names: Sequence[str]) -> Interval:
    """A statistic of architectures, with the interval from leaving out one family at a time.

    ``of`` returns the statistic, given the indices of the architectures that are kept.
    """
    return leaving_out(of, len(names), [kin(name) for name in names])


def seed_by_seed(names: Sequence[str], decade: Decade, gap: Callable[[Mapping[str, Trained]], float]) -> Interval:
    """The mean of a number of several networks of one seed, with Student's interval over the seeds that all have."""
    found = [gap({name: decade[name][seed] for name in names}) for seed in common_seeds(names, decade)]
    return student_interval(found)


def by_seed(of: Callable[[np.ndarray], Any], decade: Decade, one: str, less: str | None = None) -> Interval:
    """A :func:`statistic` of a network, minus that of the network ``less`` with the same seed, if one is named.

    Returns the mean with Student's interval over the seeds.
    """
    if less is None:
        return seed_by_seed([one], decade, lambda networks: statistic(of, networks[one]))
    return seed_by_seed([one, less], decade, lambda n: statistic(of, n[one]) - statistic(of, n[less]))


def beyond_chance(part: float) -> Interval | float:
    """The fraction of shuffles that do as well, for a rule that allows one in twenty.

    If more do as well, the interval has ends of NaN and nothing is decided, because so few networks cannot show that
    there is nothing beyond chance.
    """
    return part if part <= RARE else Interval(part, math.nan, math.nan)


def cut(found: Interval, low: float = -1.0) -> Interval:
    """The interval of a correlation, cut to -1 to 1, or of a fraction, cut to ``low`` to 1."""
    return Interval(found.mean, max(found.low, low), min(found.high, 1.0))


def rank_correlation(one: Sequence[float] | np.ndarray, other: np.ndarray, names: Sequence[str]) -> Interval:
    """The rank correlation over architectures; the interval leaves out one family at a time and is cut to -1 to 1."""
    one, other = np.asarray(one), np.asarray(other)
    return cut(by_family(lambda kept: float(stats.spearmanr(one[kept], other[kept]).statistic), names))


def _at_even_places(one: Trained, other: Trained) -> float:
    return math.sqrt(float(np.mean((profile(one.scores) - profile(other.scores)) ** 2)))


#: Two distances of trained signatures. Dynamic time warping, as in the source's Figure 5 B, is a sum over calls and
#: grows with their number. The root mean squared difference at evenly spaced places does not.
DISTANCES: Mapping[str, Callable[[Trained, Trained], float]] = {
    "DTW, a sum over the calls": lambda one, other: dtw(one.scores, other.scores), "at even places": _at_even_places,
}  # fmt: skip


def turn(values: np.ndarray) -> float:
    """The distance of a sequence from monotone: the largest rise or the largest fall along it, whichever is smaller.

    >>> turn(np.array([0.5, 0.75, 0.25])), turn(np.array([0.5, 0.25, 0.0]))
    (0.25, 0.0)
    """
    after = np.subtract.outer(values, values)[np.tril_indices(len(values))]  # each value minus an earlier one
    return float(min(after.max(), -after.min()))


def _with_power(found: Interval, calls: int) -> Worded:
    """The fraction of networks with two modes. It has no interval if the test would hardly ever find two modes."""
    power = modes_power(calls, APART, 40)
    if power < ENOUGH:
        found = Interval(found.mean, math.nan, math.nan)
    return Worded(found, {"power": f"{power:.1f}"})


def modes_claims(decade: Decade) -> list[Claim]:
    """Tests whether ResNets have more than one mode by Silverman's test, and other networks one (section 4).

    The power of the test is computed for the median number of calls of the networks.
    """
    networks, found = architectures(decade), {}
    for row, residual in (("resnets", True), ("others", False)):
        some = {name: list(seeds.values()) for name, seeds in networks.items() if (kin(name) == "resnet") == residual}
        parts = np.array([np.mean([one_mode(each.scores) < 0.05 for each in seeds]) for seeds in some.values()])
        if residual:
            part = student_interval(parts)
        else:
            part = by_family(lambda kept, parts=parts: float(parts[kept].mean()), list(some))  # type: ignore[misc]
        calls = int(np.median([len(seeds[0].scores) for seeds in some.values()]))
        found[row] = _with_power(part, calls)
    return judged("decade", "modes", found)


def skip_modes_claim(decade: Decade) -> Claim:
    """Tests, as :func:`modes_claims`, whether ResNet18 has two modes with its skips and one without (Figure 7)."""

    def more(networks: Mapping[str, Trained]) -> float:
        two = [one_mode(networks[name].scores) < 0.05 for name in (_SKIPS, _NO_SKIPS)]
        return float(two[0]) - float(two[1])

    found = seed_by_seed([_SKIPS, _NO_SKIPS], decade, more)
    calls = len(next(iter(decade[_SKIPS].values())).scores)
    (row,) = judged("decade", "skip_modes", {"skips": _with_power(found, calls)})
    return row


def _after(network: Trained, state: str = END) -> float:
    return ends(network.signatures[state, "spatial"])[1]


def residual_claims(decade: Decade) -> list[Claim]:
    """Tests of Appendix D and Figure 15: scores after the additions and inside the blocks, and in deeper networks."""
    found = {
        "gap": seed_by_seed([_SKIPS], decade, lambda n: gap(n[_SKIPS].end)),
        "deeper": seed_by_seed([_DEEP, _SHALLOW], decade, lambda n: _after(n[_DEEP]) - _after(n[_SHALLOW])),
    }
    return judged("decade", "residual", found)


def own_residual_claims(decade: Decade) -> list[Claim]:
    """Tests of two questions of our own on Figures 7 and 15.

    The first is the gap of ResNet18 with skips minus that without. The second is the part of the difference between a
    deeper and a shallower ResNet that training adds to that before training.
    """

    def gained(networks: Mapping[str, Trained]) -> float:
        trained, start = (_after(networks[_DEEP], state) - _after(networks[_SHALLOW], state) for state in (END, START))
        return trained - start

    found = {
        "means": seed_by_seed([_SKIPS, _NO_SKIPS], decade, lambda n: gap(n[_SKIPS].end) - gap(n[_NO_SKIPS].end)),
        "gained": seed_by_seed([_DEEP, _SHALLOW], decade, gained),
    }
    return judged("decade", "own_residual", found)


def depth_claims(decade: Decade) -> list[Claim]:
    """Tests of Appendix D: VGG and AlexNet, VGGs of two depths, DenseNet and ResNet, and a ViT along its layers."""

    def level(of: str, to: str) -> Interval:
        return by_seed(np.mean, decade, of, to)

    def steep(pool: str) -> Interval:
        def lead(networks: Mapping[str, Trained]) -> float:
            steps = np.diff(networks["vit_8"].signatures[END, pool].mean)
            return float(steps[-1] - np.abs(steps[:-1]).max())

        return seed_by_seed(["vit_8"], decade, lead)

    found = {
        "vgg11": level("vgg11", "alexnet"),
        "densenet": {"deep": level("densenet40", "resnet34"), "shallow": level("densenet28", "resnet18")},
        "vgg16": level("vgg16", "vgg11"),
        "steep": {f"{pool} pool": steep(pool) for pool in ("trailing", "spatial")},
    }
    return judged("decade", "depth", found)


def beginning_claims(decade: Decade, wide: np.ndarray) -> list[Claim]:
    """Tests of Figure 11: a VGG16 without norm before and after training, and whether scores change monotonically.

    ``wide`` has the scores of starts with all channels of the original, shape (seeds, calls).
    """

    def raw(network: Trained) -> np.ndarray:
        return network.signatures[START, "spatial"].mean

    def change(networks: Mapping[str, Trained]) -> float:
        moved = networks["vgg16"].end.mean - raw(networks["vgg16"])
        return turn(moved[~np.isnan(moved)])

    def along(networks: Mapping[str, Trained]) -> float:
        return turn(np.nanmean(course(networks["vgg11"]).scores, axis=1))

    def bent(networks: Mapping[str, Trained]) -> float:
        return statistic(np.mean, networks["vgg16"]) - float(np.nanmean(raw(networks["vgg16"])))

    starts = {"an eighth of the channels": [raw(each) for each in decade["vgg16"].values()], "all channels": list(wide)}

    def rising(starts: list[np.ndarray]) -> Interval:
        found = [float(stats.spearmanr(np.arange(len(scores)), scores).statistic) for scores in starts]
        return cut(student_interval(found))

    found = {
        "rank": {width: rising(scores) for width, scores in starts.items()},
        "last": {width: student_interval([each[-1] for each in scores]) for width, scores in starts.items()},
        "bent": seed_by_seed(["vgg16"], decade, bent),
        "turned": {
            "along the training of VGG11": seed_by_seed(["vgg11"], decade, along),
            "along the calls of VGG16": seed_by_seed(["vgg16"], decade, change),
        },
    }
    return judged("decade", "beginning", found)
