"""The source's sentences on trained networks, asked of the decade's: each rule was set before the trainings were done.

A sentence on named architectures has Student's interval over their seeds; one on architectures has the interval that
comes from leaving out one family of them at a time (:func:`kin`), each architecture taken as the mean over its seeds. A
verdict needs the whole interval. A difference of scores counts from ``FLOOR`` on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.collection import END, START, Decade, Trained, architectures, by_family, course, kin
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.sequences import dtw, sequence
from affscore_book.kit.statistics import Interval, student_interval
from affscore_study.decade.modes import modes_power, one_mode
from affscore_study.decade.variance import profile
from affscore_study.kit.claims import HIGHER, LOWER, SAME, Claim, side_by_side

__all__ = [
    "ABOVE", "BELOW", "DISTANCES", "PLAIN", "beginning_claims", "beyond_chance", "by_seed", "claim_row",
    "common_seeds", "cut", "depth_claims", "modes_claims", "own_residual_claims", "rank_correlation",
    "residual_claims", "seed_by_seed", "skip_modes_claim", "statistic", "turn",
]  # fmt: skip

#: Stacks of convolutions, which the source says have "a very low spread".
PLAIN = ("alexnet", "vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn")
BELOW, ABOVE = (-math.inf, 0.0), (0.0, math.inf)
RARE = 0.05  # the part of shuffles that may do as well
PAPER = "CVPR 2025, "
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


def seed_by_seed(names: Sequence[str], decade: Decade, gap: Callable[[Mapping[str, Trained]], float]) -> Interval:
    """A number of several networks of one seed: mean and Student's interval over the seeds that all have."""
    found = [gap({name: decade[name][seed] for name in names}) for seed in common_seeds(names, decade)]
    return student_interval(found)


def by_seed(of: Callable[[np.ndarray], Any], decade: Decade, one: str, less: str | None = None) -> Interval:
    """A :func:`statistic` of a network, less that of another one with the same seed where one is named; over seeds."""
    if less is None:
        return seed_by_seed([one], decade, lambda networks: statistic(of, networks[one]))
    return seed_by_seed([one, less], decade, lambda n: statistic(of, n[one]) - statistic(of, n[less]))


def claim_row(
    what: str, place: str, theirs: str, found: Interval | float, accept: tuple[float, float], seen: bool = False
) -> Claim:
    """A claim with its interval, which a plain number has not; ``place`` is in the paper, or begins with slides.

    For a hypothesis of this book it begins with ours.
    """
    source = place if place.startswith(("ours", "slides")) else PAPER + place
    number, interval = (found.mean, found[1:]) if isinstance(found, Interval) else (found, None)
    kind = "own" if place.startswith("ours") else "source"
    return Claim(what, source, theirs, number, accept, interval=interval, kind=kind, seen=seen)


def beyond_chance(what: str, place: str, theirs: str, part: float) -> Claim:
    """A claim that shuffling decides: at most one in twenty shuffles may do as well. ``part`` is how many of them do.

    If more do, nothing is decided: so few networks cannot show that there is nothing beyond chance.
    """
    found = part if part <= RARE else Interval(part, math.nan, math.nan)
    return claim_row(what, place, theirs, found, (0, RARE))


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


def modes_claims(decade: Decade, samples: int = 40) -> list[Claim]:
    """Section 4, by one rule: Silverman's test finds more than one mode, p below .05. By chance it does in 1 of 20.

    A row has no interval unless the test, with the median number of calls of its networks, would find two modes of
    :data:`APART` deviations between them in eight of ten samples.
    """
    networks, rows = architectures(decade), []
    for what, theirs, residual, accept in (
        ("part of the ResNets with two modes", '"distinct bi-modal distribution"', True, (0.95, 1.0)),
        ("part of the other networks with two modes", '"only ResNets"', False, (-1.0, 0.1)),
    ):
        some = {name: list(seeds.values()) for name, seeds in networks.items() if (kin(name) == "resnet") == residual}
        parts = np.array([np.mean([one_mode(each.scores) < 0.05 for each in seeds]) for seeds in some.values()])
        if residual:
            found = student_interval(parts)
        else:
            found = by_family(lambda kept, parts=parts: float(parts[kept].mean()), list(some))  # type: ignore[misc]
        calls = int(np.median([len(seeds[0].scores) for seeds in some.values()]))
        power = modes_power(calls, APART, samples)
        if power < ENOUGH:
            found = Interval(found.mean, math.nan, math.nan)
        rows.append(claim_row(f"{what} (power of the test {power:.1f})", "section 4", theirs, found, accept))
    return rows


def skip_modes_claim(decade: Decade, samples: int = 40) -> Claim:
    """Figure 7: does ResNet18 have two modes with its skips, and without them one? By the rule of :func:`modes_claims`.

    Two hills are asked for, since two means need not be two hills. In most seeds the test should find them with skips
    and not without. Where its power is below :data:`ENOUGH` nothing is shown.
    """

    def more(networks: Mapping[str, Trained]) -> float:
        two = [one_mode(networks[name].scores) < 0.05 for name in (_SKIPS, _NO_SKIPS)]
        return float(two[0]) - float(two[1])

    found = seed_by_seed([_SKIPS, _NO_SKIPS], decade, more)
    power = modes_power(len(next(iter(decade[_SKIPS].values())).scores), APART, samples)
    if power < ENOUGH:
        found = Interval(found.mean, math.nan, math.nan)
    what = f"part of the ResNet18s with two modes: with skips − without (power of the test {power:.1f})"
    return claim_row(what, "Figure 7", '"bimodal"', found, (0.5, 1.0), seen=True)


def _after(network: Trained, state: str = END) -> float:
    return float(network.signatures[state, "spatial"].mean[places(network.end)["last in its block"]].mean())


def _gap(network: Trained) -> float:
    return _after(network) - float(network.end.mean[places(network.end)["inside its block"]].mean())


def residual_claims(decade: Decade) -> list[Claim]:
    """Appendix D and Figure 15: after the additions and inside the blocks, and deeper networks."""
    return [
        claim_row("mean score after the addition − inside the block, ResNet18", "Appendix D", '"much lower" inside',
                  seed_by_seed([_SKIPS], decade, lambda n: _gap(n[_SKIPS])), HIGHER),
        claim_row("score after the addition, ResNet34 − ResNet18", "Figure 15", '"approaches 1 for deeper networks"',
                  seed_by_seed([_DEEP, _SHALLOW], decade, lambda n: _after(n[_DEEP]) - _after(n[_SHALLOW])),
                  HIGHER),
    ]  # fmt: skip


def own_residual_claims(decade: Decade) -> list[Claim]:
    """Questions of our own beside them: of Figure 7 the two means, and of Figure 15 what was there before training."""

    def gained(networks: Mapping[str, Trained]) -> float:
        trained, start = (_after(networks[_DEEP], state) - _after(networks[_SHALLOW], state) for state in (END, START))
        return trained - start

    return [
        claim_row("mean score after the addition − inside the block: ResNet18 with skips − without",
                  "ours, of Figure 7", "two means, which need not be two hills",
                  seed_by_seed([_SKIPS, _NO_SKIPS], decade, lambda n: _gap(n[_SKIPS]) - _gap(n[_NO_SKIPS])),
                  HIGHER),
        claim_row("score after the addition, ResNet34 − ResNet18: trained − before training", "ours, of Figure 15",
                  "it comes with training", seed_by_seed([_DEEP, _SHALLOW], decade, gained), HIGHER, seen=True),
    ]  # fmt: skip


def depth_claims(decade: Decade) -> list[Claim]:
    """Appendix D: VGG beside AlexNet and at three depths, DenseNet beside ResNet, a ViT along its layers."""

    def level(of: str, to: str) -> Interval:
        return by_seed(np.mean, decade, of, to)

    def steep(pool: str) -> Claim:
        def lead(networks: Mapping[str, Trained]) -> float:
            steps = np.diff(networks["vit_8"].signatures[END, pool].mean)
            return float(steps[-1] - np.abs(steps[:-1]).max())

        what = "ViT of twelve layers: last step of the scores − the largest before it"
        return claim_row(what, "Figure 13", '"a plateau", then "a steep change toward linearity"',
                         seed_by_seed(["vit_8"], decade, lead), HIGHER)  # fmt: skip

    fine = "ViT with fine patches: rank correlation of depth and score"
    return [
        claim_row("mean score, VGG11 − AlexNet", "Appendix D, VGG", '"slightly lower overall non-linearity values"',
                  level("vgg11", "alexnet"), HIGHER),
        *side_by_side("the depth", {
            depth: claim_row(f"mean score, {shown}", "Appendix D, DenseNet", '"slightly more non-linear"',
                             level(*names), LOWER, seen=depth == "shallow")
            for depth, shown, names in (("deep", "DenseNet40 − ResNet34", ("densenet40", "resnet34")),
                                        ("shallow", "DenseNet28 − ResNet18", ("densenet28", "resnet18")))
        }),
        claim_row("mean score, VGG16 − VGG11", "Figure 14", '"do not change"', level("vgg16", "vgg11"), SAME),
        Claim(fine, PAPER + "Figure 13", '"gradually becoming more and more linear"', None, None,
              "a trained ViT with fine patches and more than four layers"),
        *side_by_side("the pool", {f"{pool} pool": steep(pool) for pool in ("trailing", "spatial")}),
    ]  # fmt: skip


def beginning_claims(decade: Decade, wide: np.ndarray) -> list[Claim]:
    """Figure 11: a VGG16 without norm before and after training, and whether training bends in a monotone way.

    ``wide`` has the scores of starts with all channels of the original, (seeds, calls). The two readings of
    "non-monotone" were set before they were computed: along the training, of VGG11, which was followed, and
    along the calls of VGG16, of which the source shows the start and the end.
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

    def by_width(
        what: str, theirs: str, of: Callable[[list[np.ndarray]], Interval], accept: tuple[float, float]
    ) -> list[Claim]:
        # The released code enlarges small pictures to 224 x 224 before they enter a network: this is another setting.
        what = f"{what}, VGG16 before training, pictures of 32 × 32"
        rows = {width: claim_row(what, "ours, of Figure 11", theirs, of(scores), accept)
                for width, scores in starts.items()}  # fmt: skip
        return side_by_side("the width", rows)

    def rising(starts: list[np.ndarray]) -> Interval:
        found = [float(stats.spearmanr(np.arange(len(scores)), scores).statistic) for scores in starts]
        return cut(student_interval(found))

    place = "Appendix C, training"
    turned = {"along the training of VGG11": ("vgg11", along), "along the calls of VGG16": ("vgg16", change)}
    return [
        *by_width("rank correlation of call and score", '"increasing"', rising, (0.8, 1.0)),
        *by_width("last score", '"almost a perfectly linear pattern"',
                  lambda starts: student_interval([scores[-1] for scores in starts]), (0.95, 1.0)),
        claim_row("mean score, VGG16 trained − before training", place, '"enhances the non-linearity"',
                  seed_by_seed(["vgg16"], decade, bent), LOWER),
        *side_by_side("the reading", {
            reading: claim_row("largest step against the trend", place, '"in a non-monotone way"',
                               seed_by_seed([name], decade, of), HIGHER)
            for reading, (name, of) in turned.items()
        }),
    ]  # fmt: skip
