"""The source's sentences on trained networks, asked of the decade's: each rule was set before the trainings were done.

A sentence on one architecture has Student's interval over its seeds; one on architectures has the interval that comes
from leaving out one architecture at a time, each taken as the mean over its seeds. A verdict needs the whole interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from scipy import stats

from affscore.signature import Signature
from affscore.suite.comparable import sequence
from affscore.suite.distances import dtw
from affscore_book.decade.collection import END, START, Trained
from affscore_book.decade.modes import one_mode
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, leaving_out, student_interval

__all__ = [
    "ABOVE",
    "BELOW",
    "PLAIN",
    "STABLE",
    "VITS",
    "after_additions",
    "architectures",
    "beginning_claims",
    "claim_row",
    "common_seeds",
    "depth_claims",
    "distance",
    "history_claims",
    "modes_claims",
    "residual_claims",
    "seed_by_seed",
    "statistic",
    "trend_claims",
    "vit_claims",
]  # fmt: skip

Decade = Mapping[str, Mapping[int, Trained]]

#: Stacks of convolutions, which the source says have "a very low spread".
PLAIN = ("alexnet", "vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn")
WITHOUT_NORM = ("alexnet", "vgg11", "vgg13", "vgg16")
VITS = ("vit_8", "vit_4")
#: The networks that return to early shapes, says the source.
RETURNING = ("swin", "convnext")
#: Scores of two batches differ by this much on the slides: less is called no change here.
STABLE = 0.02
BELOW, ABOVE = (-math.inf, 0.0), (0.0, math.inf)
PAPER = "CVPR 2025, "


def statistic(of: Callable[[np.ndarray], float], network: Trained, pool: str = "spatial", state: str = END) -> float:
    """A statistic of the scores of a network's calls, without dead ones."""
    return float(of(sequence(network.signatures[state, pool])))


def architectures(decade: Decade) -> dict[str, Mapping[int, Trained]]:
    """The decade's own: neither the twin without skips nor the networks taught without labels."""
    return {name: seeds for name, seeds in decade.items() if " " not in name and not name.endswith("no_skips")}


def _means(decade: Decade, of: Callable[[np.ndarray], float], pool: str = "spatial") -> dict[str, float]:
    """The statistic by architecture, mean over its seeds."""
    return {
        name: float(np.mean([statistic(of, network, pool) for network in seeds.values()]))
        for name, seeds in architectures(decade).items()
    }


def common_seeds(names: Iterable[str], decade: Decade) -> list[int]:
    """Seeds that all these networks have."""
    return sorted(set.intersection(*(set(decade[name]) for name in names)))


def seed_by_seed(names: Sequence[str], decade: Decade, gap: Callable[[Mapping[str, Trained]], float]) -> Interval:
    """A number of several networks of one seed: mean and Student's interval over the seeds that all have."""
    found = [gap({name: decade[name][seed] for name in names}) for seed in common_seeds(names, decade)]
    return student_interval(found)


def claim_row(
    what: str, place: str, theirs: str, found: Interval, accept: tuple[float, float], kind: str = "source"
) -> Claim:
    """A claim with its interval; ``place`` begins with ours for a hypothesis of this book."""
    source = place if place.startswith(("ours", "slides")) else PAPER + place
    return Claim.over(what, source, theirs, found, accept, kind=kind)


def cut(found: Interval) -> Interval:
    """An interval of a correlation, which lies between -1 and 1."""
    return Interval(found.mean, max(found.low, -1.0), min(found.high, 1.0))


def rank_correlation(pairs: np.ndarray, groups: Sequence[str] | np.ndarray | None = None) -> Interval:
    """Rank correlation of two columns, a row or a group of rows left out at a time, cut to -1 to 1."""
    names, group = np.unique(np.arange(len(pairs)) if groups is None else groups, return_inverse=True)

    def correlation(kept: np.ndarray) -> float:
        return float(stats.spearmanr(*pairs[np.isin(group, kept)].T).statistic)

    return cut(leaving_out(correlation, len(names)))


def distance(one: Trained, other: Trained) -> float:
    """Dynamic time warping of two trained signatures, as in the source's Figure 5 B."""
    return dtw(*(sequence(each.signatures[END, "spatial"]) for each in (one, other)))


def _from_alexnet(decade: Decade, name: str, seed: int) -> float:
    return distance(decade["alexnet"][seed], decade[name][seed])


def history_claims(decade: Decade) -> list[Claim]:
    """Figure 5, A and B: a decade of rising linearity, GoogLeNet's range, EfficientNet's skewness, the U-turn."""
    years = {name: next(iter(seeds.values())).year for name, seeds in decade.items()}
    level = _means(decade, np.mean)
    far = {name: float(np.mean([_from_alexnet(decade, name, seed) for seed in common_seeds(("alexnet", name), decade)]))
           for name in level}  # fmt: skip
    early = [name for name in level if years[name] < 2020]
    later = [name for name in far if name != "alexnet" and years[name] <= 2020]
    everyone = [*PLAIN, "googlenet"]

    def wider(networks: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in networks.items()}
        return spread["googlenet"] - max(spread[name] for name in PLAIN)

    turn = student_interval([
        np.mean([_from_alexnet(decade, name, seed) for name in RETURNING])
        - np.mean([_from_alexnet(decade, name, seed) for name in far if 2016 <= years[name] <= 2020])
        for seed in common_seeds(architectures(decade), decade)
    ])  # fmt: skip
    return [
        claim_row("rank correlation of year and mean score, to 2019", "Figure 5 A", "rising",
             rank_correlation(np.array([(years[name], level[name]) for name in early])), ABOVE),
        claim_row("GoogLeNet's range less the widest of AlexNet and VGG", "Figure 5 A", "above 0",
             seed_by_seed(everyone, decade, wider), ABOVE),
        claim_row("skewness of EfficientNet's scores", "section 4", "strong negative",
             seed_by_seed(["efficientnet"], decade, lambda n: statistic(stats.skew, n["efficientnet"])),
             (-math.inf, -0.5)),
        claim_row("rank correlation of year and distance from AlexNet, to 2020", "Figure 5 B", "rising",
             rank_correlation(np.array([(years[name], far[name]) for name in later])), ABOVE),
        claim_row("distance from AlexNet: Swin and ConvNeXt less those of 2016 to 2020", "Figure 5 B", "below 0", turn,
             BELOW),
    ]  # fmt: skip


def trend_claims(decade: Decade) -> list[Claim]:
    """What makes the rise to 2019: training, or the start? Gates, norm, or neither? Rules set after a look.

    Architectures of a family are not independent: two rows leave out a family at a time.
    """
    early = {name: seeds for name, seeds in architectures(decade).items() if next(iter(seeds.values())).year < 2020}

    def level(network: Trained, state: str, gates: bool) -> float:
        found = network.signatures[state, "spatial"]
        kept = ~np.isnan(found.mean) & (gates | ~np.array([call.gate for call in found.calls]))
        return float(found.mean[kept].mean())

    def columns(state: str = END, gates: bool = True) -> np.ndarray:
        levels = [np.mean([level(each, state, gates) for each in seeds.values()]) for seeds in early.values()]
        return np.array(
            [(next(iter(seeds.values())).year, mean) for seeds, mean in zip(early.values(), levels, strict=True)]
        )

    trained, start, plain = columns(), columns(START), columns(gates=False)
    families = np.array([re.split("[^a-z]", name)[0] for name in early])  # whose names begin alike
    normed = np.array([name not in WITHOUT_NORM for name in early])

    def gain(kept: np.ndarray) -> float:
        return float(stats.spearmanr(*trained[kept].T).statistic - stats.spearmanr(*start[kept].T).statistic)

    found = {
        "trained less before training": leaving_out(gain, len(trained)),
        "a family left out at a time": rank_correlation(trained, families),
        "without gates": rank_correlation(plain),
        "with norm, without gates": rank_correlation(plain[normed]),
        "the same, a family left out at a time": rank_correlation(plain[normed], families[normed]),
    }
    return [
        Claim.over(f"rank correlation of year and mean score, to 2019: {what}", "ours, of Figure 5 A", "above 0", each,
                   ABOVE, kind="own", seen=True)
        for what, each in found.items()
    ]  # fmt: skip


def vit_claims(decade: Decade) -> list[Claim]:
    """Section 1: are both ViTs below every other architecture? With the pool of the source's code, and over space."""
    names = list(architectures(decade))
    rows = []
    for pool in ("trailing", "spatial"):

        def below(networks: Mapping[str, Trained], pool: str = pool) -> float:
            level = {name: statistic(np.mean, network, pool) for name, network in networks.items()}
            return max(level[name] for name in VITS) - min(v for name, v in level.items() if name not in VITS)

        what = f"mean score: the higher ViT less the lowest other network, {pool} pool"
        rows.append(claim_row(what, "section 1", "below 0", seed_by_seed(names, decade, below), BELOW))
    return rows


def modes_claims(decade: Decade) -> list[Claim]:
    """Section 4, by one rule: Silverman's test finds more than one mode, p below .05. By chance it does in 1 of 20."""
    parts: dict[bool, list[float]] = {True: [], False: []}
    for name, seeds in architectures(decade).items():
        found = [one_mode(sequence(each.signatures[END, "spatial"])) < 0.05 for each in seeds.values()]
        parts[name.startswith("resnet")].append(float(np.mean(found)))
    return [
        claim_row("part of the ResNets with two modes", "section 4", "all", student_interval(parts[True]), (0.95, 1)),
        claim_row(
            "part of the other networks with two modes", "section 4", "none", student_interval(parts[False]), (-1, 0.1)
        ),
    ]


def after_additions(signature: Signature) -> tuple[float, float]:
    """Mean scores inside the blocks of a ResNet, and of their last calls, which follow the additions."""
    inside, last = places(signature).values()
    return float(signature.mean[inside].mean()), float(signature.mean[last].mean())


def residual_claims(decade: Decade) -> list[Claim]:
    """Figures 7 and 15: the same network with and without its skips, and deeper ones."""

    def gap(networks: Mapping[str, Trained], name: str = "resnet18") -> float:
        inside, last = after_additions(networks[name].signatures[END, "spatial"])
        return last - inside

    both = ["resnet18", "resnet18_no_skips"]
    depths = ["resnet10", "resnet18", "resnet34"]

    def last(network: Trained) -> float:
        return after_additions(network.signatures[END, "spatial"])[1]

    return [
        claim_row("score after the addition, ResNet18", "Figure 7", "close to 1",
             seed_by_seed(["resnet18"], decade, lambda n: last(n["resnet18"])), (0.95, 1.0)),
        claim_row("after the addition less inside the block, ResNet18", "Figure 7", "above 0",
             seed_by_seed(["resnet18"], decade, gap), ABOVE),
        claim_row("that gap, with skips less without", "Figure 7", "above 0",
             seed_by_seed(both, decade, lambda n: gap(n) - gap(n, both[1])), ABOVE),
        claim_row("score after the addition, ResNet34 less ResNet10", "Figure 15", "above 0: it approaches 1",
             seed_by_seed(depths, decade, lambda n: last(n["resnet34"]) - last(n["resnet10"])), ABOVE),
    ]  # fmt: skip


def depth_claims(decade: Decade) -> list[Claim]:
    """Appendix D: VGG beside AlexNet and at three depths, DenseNet beside ResNet, ViT's two sizes of patches."""

    def level(of: str, to: str) -> Interval:
        return seed_by_seed([of, to], decade, lambda n: statistic(np.mean, n[of]) - statistic(np.mean, n[to]))

    def slope(name: str) -> Interval:
        def rank(networks: Mapping[str, Trained]) -> float:
            scores = networks[name].signatures[END, "trailing"].mean
            return float(stats.spearmanr(np.arange(len(scores)), scores).statistic)

        return seed_by_seed([name], decade, rank)

    deep = level("vgg16", "vgg11")
    return [
        claim_row("mean score, VGG11 less AlexNet", "Figure 12", "slightly below 0", level("vgg11", "alexnet"), BELOW),
        claim_row("mean score, DenseNet40 less ResNet34", "Figure 12", "slightly below 0",
                  level("densenet40", "resnet34"), BELOW),
        claim_row("mean score, VGG16 less VGG11", "Figure 14", "no change", deep, (-STABLE, STABLE)),
        claim_row("rank correlation of depth and score, ViT with small patches", "Figure 13", "rising",
                  cut(slope("vit_4")), ABOVE),
    ]  # fmt: skip


def beginning_claims(decade: Decade) -> list[Claim]:
    """Figure 11: a VGG16 without norm before and after training."""

    def raw(network: Trained) -> np.ndarray:
        return network.signatures[START, "spatial"].mean

    def rising(networks: Mapping[str, Trained]) -> float:
        scores = raw(networks["vgg16"])
        return float(stats.spearmanr(np.arange(len(scores)), scores).statistic)

    one = ["vgg16"]
    return [
        claim_row("rank correlation of call and score, VGG16 before training", "Figure 11", "increasing",
             cut(seed_by_seed(one, decade, rising)), (0.8, 1.0)),
        claim_row("last score, VGG16 before training", "Figure 11", "almost perfectly linear",
             seed_by_seed(one, decade, lambda n: float(raw(n["vgg16"])[-1])), (0.95, 1.0)),
        claim_row("mean score, trained VGG16 less its start", "Appendix C, training", "below 0",
             seed_by_seed(one, decade, lambda n: statistic(np.mean, n["vgg16"]) - float(np.nanmean(raw(n["vgg16"])))),
             BELOW),
    ]  # fmt: skip
