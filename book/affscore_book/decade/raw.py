"""What the source reads off single signatures (section 4 and Appendix D), asked of the decade's; seed by seed.

The rules were set after a look at the first seed, but for :func:`tail_claims`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy import stats

from affscore_book.decade.claims import (
    ABOVE,
    BELOW,
    DISTANCES,
    PLAIN,
    architectures,
    by_family,
    claim_row,
    common_seeds,
    cut,
    seed_by_seed,
    statistic,
)  # fmt: skip
from affscore_book.decade.collection import END, Trained
from affscore_book.kit.claims import HIGHER, LOWER, Claim, side_by_side
from affscore_book.kit.statistics import Interval, student_interval

__all__ = ["likeness_claims", "spread_claims", "tail_claims", "transition_gap"]

Decade = Mapping[str, Mapping[int, Trained]]
#: Before residual networks, says the source: their spread goes with their accuracy.
PRE_RESIDUAL = (*PLAIN, "googlenet", "inception_v3")
#: Two rank correlations that differ by no more are called similar.
ALIKE = 0.25
#: Architectures with residual connections after ResNet.
AFTER = ("mobilenet_v2", "mnasnet", "mobilenet_v3", "efficientnet", "convnext")


def _seen(rows: list[Claim]) -> list[Claim]:
    return [replace(each, seen=True) for each in rows]


def transition_gap(network: Trained) -> float:
    """DenseNet: mean score of the calls between its dense blocks minus that of the calls inside them."""
    found = network.signatures[END, "spatial"]
    between = np.array(["transition" in call.module for call in found.calls])
    inside = np.array(["denselayer" in call.module for call in found.calls])
    return float(found.mean[between].mean() - found.mean[inside].mean())


def spread_claims(decade: Decade) -> list[Claim]:
    """Section 4 and Appendix D on ranges, maxima and single architectures."""
    networks = architectures(decade)
    names = list(networks)

    def widest(of: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in of.items()}
        return max(spread[name] for name in PLAIN) - float(np.median(list(spread.values())))

    def of(name: str, take: object) -> Interval:
        return seed_by_seed([name], decade, lambda n: statistic(take, n[name]))  # type: ignore[arg-type]

    return _seen([
        claim_row("range: the widest of AlexNet and VGG − the median network", "section 4", '"very low spread"',
                  seed_by_seed(names, decade, widest), LOWER),
        *_pre_residual(decade),
        claim_row("largest score after ResNets, the least of five", "section 4, after ResNets", '"rather high"',
                  seed_by_seed(AFTER, decade, lambda n: min(statistic(np.max, each) for each in n.values())),
                  (0.9, 1.0)),
        claim_row("std of AlexNet's scores", "Appendix D, AlexNet", '"remain stable"', of("alexnet", np.std),
                  (0.0, 0.05)),
        claim_row("GoogLeNet's least score", "Appendix D, GoogLeNet", "0.6", of("googlenet", np.min), (0.55, 0.65)),
        claim_row("GoogLeNet's largest score", "Appendix D, GoogLeNet", "0.9", of("googlenet", np.max), (0.85, 0.95)),
        claim_row("largest score, Inception − GoogLeNet", "Appendix D, Inception v3", '"more linear"',
                  seed_by_seed(["inception_v3", "googlenet"], decade, lambda n: statistic(np.max, n["inception_v3"])
                             - statistic(np.max, n["googlenet"])), HIGHER),
        claim_row("mean score, DenseNet40: 2 transitions − 36 dense layers", "Appendix D, DenseNet", '"linearizers"',
                  seed_by_seed(["densenet40"], decade, lambda n: transition_gap(n["densenet40"])), HIGHER),
    ])  # fmt: skip


def _pre_residual(decade: Decade) -> list[Claim]:
    """Section 4: the spread tells the accuracy of stacks and inception networks, and does so "similarly to depth"."""
    table = np.array([
        np.mean([(statistic(np.ptp, each), len(each.signatures[END, "spatial"].calls), each.accuracy)
                 for each in decade[name].values()], axis=0)
        for name in PRE_RESIDUAL
    ])  # fmt: skip

    def told(column: int, kept: np.ndarray) -> float:
        return float(stats.spearmanr(table[kept, column], table[kept, 2]).statistic)

    place = "section 4, pre-residual models"
    spread = by_family(lambda kept: told(0, kept), PRE_RESIDUAL)
    lead = by_family(lambda kept: told(0, kept) - told(1, kept), PRE_RESIDUAL)
    return [
        claim_row("rank correlation of range and accuracy, pre-residual", place, '"explains the accuracy increase"',
                  cut(spread), ABOVE),
        claim_row("rank correlation with accuracy, pre-residual: range − depth", place, '"similarly to depth"', lead,
                  (-ALIKE, ALIKE)),
    ]  # fmt: skip


def tail_claims(decade: Decade) -> list[Claim]:
    """Section 4 on the shapes of the densities: heavier tails are more kurtosis, a rule set before it was computed."""

    def heavier(one: str, other: str) -> Interval:
        return seed_by_seed([one, other], decade, lambda n: statistic(stats.kurtosis, n[one])
                            - statistic(stats.kurtosis, n[other]))  # fmt: skip

    return [
        claim_row("kurtosis of the scores, Swin − AlexNet", "Figure 5 C", '"heavier tails"', heavier("swin", "alexnet"),
                  ABOVE),
        claim_row("kurtosis of the scores, ConvNeXt − VGG16", "Figure 5 C", '"This also holds for VGG16 and Convnext"',
                  heavier("convnext", "vgg16"), ABOVE),
    ]  # fmt: skip


def likeness_claims(decade: Decade) -> list[Claim]:
    """Figure 5 C and section 4: who looks like whom? Distances of signatures, in one seed, of both kinds."""
    networks = architectures(decade)
    seeds = common_seeds(networks, decade)
    later = [name for name, members in networks.items() if next(iter(members.values())).year > 2014]
    pairs = (
        ("distance of AlexNet and Swin − the median of AlexNet and later ones", "Figure 5 C", '"very similar"',
         ("alexnet", "swin", later)),
        ("distance of VGG16 and ConvNeXt − the median of VGG16 and later ones", "Figure 5 C",
         '"This also holds for VGG16 and Convnext"', ("vgg16", "convnext", later)),
        ("distance of VGG16 and ConvNeXt − the median of VGG16 and later ones", "Figure 5 C",
         '"This also holds for VGG16 and Convnext"', ("vgg16_bn", "convnext", later)),
        ("distance of Swin and AlexNet − that of Swin and ResNets", "section 4, Swin and ConvNeXt",
         '"more similar to pure convolutional networks"', ("swin", "alexnet", ["resnet10", "resnet18", "resnet34"])),
    )  # fmt: skip
    readings: dict[str, dict[str, Claim]] = {}
    for what, place, theirs, (one, other, than) in pairs:
        for convention, of in DISTANCES.items():
            gaps = [
                of(decade[one][seed], decade[other][seed])
                - float(np.median([of(decade[one][seed], decade[name][seed]) for name in than]))
                for seed in seeds
            ]
            reading = f"{convention}, with batch norm" if one.endswith("_bn") else convention
            readings.setdefault(what, {})[reading] = claim_row(what, place, theirs, student_interval(gaps), BELOW)
    rows = [
        row
        for of_one in readings.values()
        for row in side_by_side("batch norm" if len(of_one) > len(DISTANCES) else "the distance", of_one)
    ]
    apart = {
        convention: claim_row("mean distance from all others, ViTs − the median network", "Figure 5 B",
                              '"highly dissimilar to all other models"',
                              student_interval([_apart(decade, list(networks), seed, of) for seed in seeds]), ABOVE)
        for convention, of in DISTANCES.items()
    }  # fmt: skip
    return _seen(rows + side_by_side("the distance", apart))


def _apart(decade: Decade, names: list[str], seed: int, of: Callable[[Trained, Trained], float]) -> float:
    """How much farther the ViTs are from the other architectures than those are from each other in the median."""
    mean = {
        one: float(np.mean([of(decade[one][seed], decade[other][seed]) for other in names if other != one]))
        for one in names
    }
    return float(np.mean([mean["vit_8"], mean["vit_4"]]) - np.median(list(mean.values())))
