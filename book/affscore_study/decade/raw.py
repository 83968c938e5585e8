"""What the source reads off single signatures (section 4 and Appendix D), asked of the decade's; seed by seed.

The rules were set after a look at the first seed, but for :func:`tail_claims`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy import stats

from affscore_book.decade.collection import Decade, Trained, architectures, by_family
from affscore_book.decade.networks import SETTINGS
from affscore_book.kit.statistics import student_interval
from affscore_study.decade.claims import (
    ABOVE,
    BELOW,
    DISTANCES,
    PLAIN,
    by_seed,
    claim_row,
    common_seeds,
    cut,
    seed_by_seed,
    statistic,
)
from affscore_study.kit.claims import HIGHER, LOWER, Claim, side_by_side

__all__ = ["likeness_claims", "spread_claims", "tail_claims"]

#: Before residual networks, says the source: their spread goes with their accuracy.
PRE_RESIDUAL = (*PLAIN, "googlenet", "inception_v3")
#: Two rank correlations that differ by no more are called similar.
ALIKE = 0.25
#: Architectures with residual connections after ResNet.
AFTER = ("mobilenet_v2", "mnasnet", "mobilenet_v3", "efficientnet", "convnext")
RESNETS = ["resnet10", "resnet18", "resnet34"]


def _seen(rows: list[Claim]) -> list[Claim]:
    return [replace(each, seen=True) for each in rows]


def spread_claims(decade: Decade) -> list[Claim]:
    """Section 4 and Appendix D on ranges, maxima and single architectures."""
    names = list(architectures(decade))

    def widest(of: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in of.items()}
        return max(spread[name] for name in PLAIN) - float(np.median(list(spread.values())))

    def linearizers(networks: Mapping[str, Trained]) -> float:
        """Mean score of the calls between dense blocks minus that of the calls inside them."""
        found = networks["densenet40"].end
        between, inside = (
            found.mean[[part in call.module for call in found.calls]].mean() for part in ("transition", "denselayer")
        )
        return float(between - inside)

    return _seen([
        claim_row("range: the widest of AlexNet and VGG − the median network", "section 4", '"very low spread"',
                  seed_by_seed(names, decade, widest), LOWER),
        *_pre_residual(decade),
        claim_row("largest score after ResNets, the least of five", "section 4, after ResNets", '"rather high"',
                  seed_by_seed(AFTER, decade, lambda n: min(statistic(np.max, each) for each in n.values())),
                  (0.9, 1.0)),
        claim_row("std of AlexNet's scores", "Appendix D, AlexNet", '"remain stable"',
                  by_seed(np.std, decade, "alexnet"), (0.0, 0.05)),
        claim_row("GoogLeNet's least score", "Appendix D, GoogLeNet", "0.6", by_seed(np.min, decade, "googlenet"),
                  (0.55, 0.65)),
        claim_row("GoogLeNet's largest score", "Appendix D, GoogLeNet", "0.9", by_seed(np.max, decade, "googlenet"),
                  (0.85, 0.95)),
        claim_row("largest score, Inception − GoogLeNet", "Appendix D, Inception v3", '"more linear"',
                  by_seed(np.max, decade, "inception_v3", "googlenet"), HIGHER),
        claim_row("mean score, DenseNet40: 2 transitions − 36 dense layers", "Appendix D, DenseNet", '"linearizers"',
                  seed_by_seed(["densenet40"], decade, linearizers), HIGHER),
    ])  # fmt: skip


def _pre_residual(decade: Decade) -> list[Claim]:
    """Section 4: the spread tells the accuracy of stacks and inception networks, and does so "similarly to depth"."""
    table = np.array([
        np.mean([(np.ptp(each.scores), len(each.end.calls), each.accuracy) for each in decade[name].values()], axis=0)
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
    return [
        claim_row(f"kurtosis of the scores, {names}", "Figure 5 C", theirs,
                  by_seed(stats.kurtosis, decade, one, other), ABOVE)
        for names, theirs, one, other in (
            ("Swin − AlexNet", '"heavier tails"', "swin", "alexnet"),
            ("ConvNeXt − VGG16", '"This also holds for VGG16 and Convnext"', "convnext", "vgg16"),
        )
    ]  # fmt: skip


def likeness_claims(decade: Decade) -> list[Claim]:
    """Figure 5 C and section 4: who looks like whom? Distances of signatures, in one seed, of both kinds."""
    networks = architectures(decade)
    seeds = common_seeds(networks, decade)
    later = [name for name in networks if SETTINGS[name].year > 2014]

    def nearness(
        of: Callable[[Trained, Trained], float], one: str, other: str, than: list[str], part: float, seed: int
    ) -> float:
        """Distance of two networks minus that which a part of the others (``than`` without the second) falls below."""
        own = decade[one][seed]
        others = [of(own, decade[name][seed]) for name in than if name != other]
        return of(own, decade[other][seed]) - float(np.quantile(others, part))

    def foreign(of: Callable[[Trained, Trained], float], seed: int) -> float:
        """How much farther the ViTs are from the other architectures than those are from each other in the median."""
        mean = {
            one: float(np.mean([of(decade[one][seed], decade[other][seed]) for other in networks if other != one]))
            for one in networks
        }
        return float(np.mean([mean["vit_8"], mean["vit_4"]]) - np.median(list(mean.values())))

    rows = []
    # "Very similar" asks for one of the nearest quarter of the networks after 2014, the other one left out.
    for what, place, theirs, depends_on, ones, other, than, part in (
        ("distance of AlexNet and Swin − the lower quartile of AlexNet and those after 2014", "Figure 5 C",
         '"very similar"', "the distance", ("alexnet",), "swin", later, 0.25),
        ("distance of VGG16 and ConvNeXt − the lower quartile of VGG16 and those after 2014", "Figure 5 C",
         '"This also holds for VGG16 and Convnext"', "batch norm", ("vgg16", "vgg16_bn"), "convnext", later, 0.25),
        ("distance of Swin and AlexNet − that of Swin and ResNets", "section 4, Swin and ConvNeXt",
         '"more similar to pure convolutional networks"', "the distance", ("swin",), "alexnet", RESNETS, 0.5),
    ):  # fmt: skip
        rows += side_by_side(depends_on, {
            convention + ", with batch norm" * one.endswith("_bn"): claim_row(
                what, place, theirs, student_interval([nearness(of, one, other, than, part, seed) for seed in seeds]),
                BELOW)
            for one in ones for convention, of in DISTANCES.items()
        })  # fmt: skip
    return _seen(rows + side_by_side("the distance", {
        convention: claim_row("mean distance from all others, ViTs − the median network", "Figure 5 B",
                              '"highly dissimilar to all other models"',
                              student_interval([foreign(of, seed) for seed in seeds]), ABOVE)
        for convention, of in DISTANCES.items()
    }))  # fmt: skip
