"""What the source reads off single signatures (section 4 and Appendix D), asked of the decade's; seed by seed.

The rules were set after a look at the first seed, except for those of :mod:`affscore_book.decade.claims`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from affscore_book.decade.claims import (
    ABOVE,
    BELOW,
    PLAIN,
    architectures,
    claim_row,
    common_seeds,
    distance,
    rank_correlation,
    seed_by_seed,
    statistic,
)  # fmt: skip
from affscore_book.decade.collection import END, Trained
from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, student_interval

__all__ = ["likeness_claims", "spread_claims", "transition_gap"]

Decade = Mapping[str, Mapping[int, Trained]]
#: Before residual networks, says the source: their spread goes with their accuracy.
PRE_RESIDUAL = (*PLAIN, "googlenet", "inception_v3")
#: Architectures with residual connections after ResNet.
AFTER = ("mobilenet_v2", "mnasnet", "mobilenet_v3", "efficientnet", "convnext")


def _seen(rows: list[Claim]) -> list[Claim]:
    return [replace(each, seen=True) for each in rows]


def transition_gap(network: Trained) -> float:
    """DenseNet: mean score of the calls between its dense blocks, less that of the calls inside them."""
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

    def over_years(name: str) -> tuple[int, float]:
        seeds = networks[name].values()
        return next(iter(seeds)).year, float(np.mean([statistic(np.max, each) for each in seeds]))

    def with_accuracy(name: str) -> np.ndarray:
        return np.mean([(statistic(np.ptp, each), each.accuracy) for each in networks[name].values()], axis=0)

    highest = np.array([pair for pair in map(over_years, names) if pair[0] < 2020])
    pairs = np.array([with_accuracy(name) for name in PRE_RESIDUAL])

    def of(name: str, take: object) -> Interval:
        return seed_by_seed([name], decade, lambda n: statistic(take, n[name]))  # type: ignore[arg-type]

    return _seen([
        claim_row("largest range of AlexNet and VGG less the median one", "section 4", "below 0: very low",
                  seed_by_seed(names, decade, widest), BELOW),
        claim_row("rank correlation of year and largest score, to 2019", "section 4, maximum and average", "rising",
                  rank_correlation(highest), ABOVE),
        claim_row("rank correlation of range and accuracy, pre-residual", "section 4, pre-residual models", "rising",
                  rank_correlation(pairs), ABOVE),
        claim_row("largest score after ResNets, the least of five", "section 4, after ResNets", "rather high",
                  seed_by_seed(AFTER, decade, lambda n: min(statistic(np.max, each) for each in n.values())),
                  (0.9, 1.0)),
        claim_row("std of AlexNet's scores", "Appendix D, AlexNet", "stable", of("alexnet", np.std), (0.0, 0.05)),
        claim_row("GoogLeNet's least score", "Appendix D, GoogLeNet", "0.6", of("googlenet", np.min), (0.55, 0.65)),
        claim_row("GoogLeNet's largest score", "Appendix D, GoogLeNet", "0.9", of("googlenet", np.max), (0.85, 0.95)),
        claim_row("largest score, Inception less GoogLeNet", "Appendix D, Inception v3", "above 0",
                  seed_by_seed(["inception_v3", "googlenet"], decade, lambda n: statistic(np.max, n["inception_v3"])
                             - statistic(np.max, n["googlenet"])), ABOVE),
        claim_row("DenseNet40, transitions less dense layers", "Appendix D, DenseNet", "above 0: linearizers",
                  seed_by_seed(["densenet40"], decade, lambda n: transition_gap(n["densenet40"])), ABOVE),
    ])  # fmt: skip


def likeness_claims(decade: Decade) -> list[Claim]:
    """Figure 5 C and section 4: who looks like whom? Distances of signatures, in one seed."""
    networks = architectures(decade)
    seeds = common_seeds(networks, decade)

    def nearer(one: str, other: str, than: list[str]) -> Interval:
        """Distance of a pair less the median distance of ``one`` to some others."""
        return student_interval([
            distance(decade[one][seed], decade[other][seed])
            - float(np.median([distance(decade[one][seed], decade[name][seed]) for name in than]))
            for seed in seeds
        ])  # fmt: skip

    later = [name for name, members in networks.items() if next(iter(members.values())).year > 2014]
    return _seen([
        claim_row("distance of AlexNet and Swin less the median of AlexNet and later ones", "Figure 5 C",
                  "below 0: very similar", nearer("alexnet", "swin", later), BELOW),
        claim_row("distance of VGG16 and ConvNeXt less the median of VGG16 and later ones", "Figure 5 C",
                  "below 0: similar", nearer("vgg16", "convnext", later), BELOW),
        claim_row("distance of Swin and AlexNet less that of Swin and ResNets", "section 4, Swin and ConvNeXt",
                  "below 0", nearer("swin", "alexnet", ["resnet10", "resnet18", "resnet34"]), BELOW),
        claim_row("mean distance of ViTs from all others less the median one", "Figure 5 B",
                  "above 0: highly dissimilar",
                  student_interval([_apart(decade, list(networks), seed) for seed in seeds]), ABOVE),
    ])  # fmt: skip


def _apart(decade: Decade, names: list[str], seed: int) -> float:
    """How much farther the ViTs are from the other architectures than those are from each other in the median."""
    mean = {
        one: float(np.mean([distance(decade[one][seed], decade[other][seed]) for other in names if other != one]))
        for one in names
    }
    return float(np.mean([mean["vit_8"], mean["vit_4"]]) - np.median(list(mean.values())))
