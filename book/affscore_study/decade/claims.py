"""The source's sentences on trained networks, asked of the decade's; ``claims.toml`` has the sentences and the rules.

A sentence on named architectures has Student's interval over their seeds; one on architectures has the interval that
comes from leaving out one family of them at a time (:func:`kin`), each architecture taken as the mean over its seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.collection import END, START, Decade, Trained, architectures, course, kin
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.sequences import dtw, sequence
from affscore_book.kit.statistics import Interval, leaving_out, student_interval
from affscore_study.decade.modes import modes_power, one_mode
from affscore_study.decade.variance import profile
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "DISTANCES", "PLAIN", "beginning_claims", "beyond_chance", "by_family", "by_seed", "common_seeds", "cut",
    "depth_claims", "modes_claims", "own_residual_claims", "rank_correlation", "residual_claims", "seed_by_seed",
    "skip_modes_claim", "statistic", "turn",
]  # fmt: skip

#: Stacks of convolutions, which the source says have "a very low spread".
PLAIN = ("alexnet", "vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn")
RARE = 0.05  # the part of shuffles that may do as well
#: Two modes of this many deviations between them should be found, with this power, before their absence counts.
APART, ENOUGH = 4.0, 0.8
#: ResNet18 twice; and two of different depths that have a stem of eight channels each (ResNet10 has more).
_SKIPS, _NO_SKIPS = "resnet18", "resnet18_no_skips"
_DEEP, _SHALLOW = "resnet34", "resnet18"


def statistic(of: Callable[[np.ndarray], Any], network: Trained, pool: str = "spatial") -> float:
    """A statistic of the scores of a network's calls, without dead ones."""
    return float(of(sequence(network.signatures[END, pool])))


def common_seeds(names: Iterable[str], decade: Decade) -> list[int]:
    """Seeds that all these networks have."""
    return sorted(set.intersection(*(set(decade[name]) for name in names)))


def by_family(of: Callable[[np.ndarray], float], names: Sequence[str]) -> Interval:
    """A statistic of architectures, from the numbers of those that are kept; a family is left out at a time."""
    return leaving_out(of, len(names), [kin(name) for name in names])


def seed_by_seed(names: Sequence[str], decade: Decade, gap: Callable[[Mapping[str, Trained]], float]) -> Interval:
    """A number of several networks of one seed: mean and Student's interval over the seeds that all have."""
    found = [gap({name: decade[name][seed] for name in names}) for seed in common_seeds(names, decade)]
    return student_interval(found)


def by_seed(of: Callable[[np.ndarray], Any], decade: Decade, one: str, less: str | None = None) -> Interval:
    """A :func:`statistic` of a network, less that of another one with the same seed where one is named; over seeds."""
    if less is None:
        return seed_by_seed([one], decade, lambda networks: statistic(of, networks[one]))
    return seed_by_seed([one, less], decade, lambda n: statistic(of, n[one]) - statistic(of, n[less]))


def beyond_chance(part: float) -> Interval | float:
    """The part of shuffles that do as well, for a rule by which one in twenty may.

    If more do, nothing is decided: so few networks cannot show that there is nothing beyond chance.
    """
    return part if part <= RARE else Interval(part, math.nan, math.nan)


def cut(found: Interval, low: float = -1.0) -> Interval:
    """An interval of a correlation, which lies between -1 and 1, or of a part, which lies between ``low`` and 1."""
    return Interval(found.mean, max(found.low, low), min(found.high, 1.0))


def rank_correlation(one: Sequence[float] | np.ndarray, other: np.ndarray, names: Sequence[str]) -> Interval:
    """Rank correlation over architectures, a family left out at a time, cut to -1 to 1."""
    one, other = np.asarray(one), np.asarray(other)
    return cut(by_family(lambda kept: float(stats.spearmanr(one[kept], other[kept]).statistic), names))


def _at_even_places(one: Trained, other: Trained) -> float:
    return math.sqrt(float(np.mean((profile(one.scores) - profile(other.scores)) ** 2)))


#: Of two trained signatures: dynamic time warping as in the source's Figure 5 B, which grows with the number of calls
#: since it is a sum over them, and the root mean squared difference at even places, which does not.
DISTANCES: Mapping[str, Callable[[Trained, Trained], float]] = {
    "DTW, a sum over the calls": lambda one, other: dtw(one.scores, other.scores), "at even places": _at_even_places,
}  # fmt: skip


def turn(values: np.ndarray) -> float:
    """How far a sequence is from monotone: the largest rise or the largest fall along it, whichever is smaller.

    >>> turn(np.array([0.5, 0.75, 0.25])), turn(np.array([0.5, 0.25, 0.0]))
    (0.25, 0.0)
    """
    after = np.subtract.outer(values, values)[np.tril_indices(len(values))]  # each value less an earlier one
    return float(min(after.max(), -after.min()))


def _with_power(found: Interval, calls: int, samples: int) -> Worded:
    """A part of networks with two modes, without an interval where the test would hardly ever find them."""
    power = modes_power(calls, APART, samples)
    if power < ENOUGH:
        found = Interval(found.mean, math.nan, math.nan)
    return Worded(found, {"power": f"{power:.1f}"})


def modes_claims(decade: Decade, samples: int = 40) -> list[Claim]:
    """Section 4: has a ResNet more than one mode by Silverman's test, and no other network?

    The power of the test is that with the median number of calls of the networks.
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
        found[row] = _with_power(part, calls, samples)
    return judged("decade", "modes", found)


def skip_modes_claim(decade: Decade, samples: int = 40) -> Claim:
    """Figure 7: does ResNet18 have two modes with its skips, and one without? By the test of :func:`modes_claims`."""

    def more(networks: Mapping[str, Trained]) -> float:
        two = [one_mode(networks[name].scores) < 0.05 for name in (_SKIPS, _NO_SKIPS)]
        return float(two[0]) - float(two[1])

    found = seed_by_seed([_SKIPS, _NO_SKIPS], decade, more)
    calls = len(next(iter(decade[_SKIPS].values())).scores)
    (row,) = judged("decade", "skip_modes", {"skips": _with_power(found, calls, samples)})
    return row


def _after(network: Trained, state: str = END) -> float:
    return float(network.signatures[state, "spatial"].mean[places(network.end)["last in its block"]].mean())


def _gap(network: Trained) -> float:
    return _after(network) - float(network.end.mean[places(network.end)["inside its block"]].mean())


def residual_claims(decade: Decade) -> list[Claim]:
    """Appendix D and Figure 15: after the additions and inside the blocks, and deeper networks."""
    found = {
        "gap": seed_by_seed([_SKIPS], decade, lambda n: _gap(n[_SKIPS])),
        "deeper": seed_by_seed([_DEEP, _SHALLOW], decade, lambda n: _after(n[_DEEP]) - _after(n[_SHALLOW])),
    }
    return judged("decade", "residual", found)


def own_residual_claims(decade: Decade) -> list[Claim]:
    """Questions of our own beside them: of Figure 7 the two means, and of Figure 15 what was there before training."""

    def gained(networks: Mapping[str, Trained]) -> float:
        trained, start = (_after(networks[_DEEP], state) - _after(networks[_SHALLOW], state) for state in (END, START))
        return trained - start

    found = {
        "means": seed_by_seed([_SKIPS, _NO_SKIPS], decade, lambda n: _gap(n[_SKIPS]) - _gap(n[_NO_SKIPS])),
        "gained": seed_by_seed([_DEEP, _SHALLOW], decade, gained),
    }
    return judged("decade", "own_residual", found)


def depth_claims(decade: Decade) -> list[Claim]:
    """Appendix D: VGG beside AlexNet and at three depths, DenseNet beside ResNet, a ViT along its layers."""

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
    """Figure 11: a VGG16 without norm before and after training, and whether training bends in a monotone way.

    ``wide`` has the scores of starts with all channels of the original, (seeds, calls).
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
