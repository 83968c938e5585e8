"""Tests of the source's sentences on single signatures (section 4 and Appendix D) with the decade's, seed by seed.

``claims.toml`` has the sentences and the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from affscore_book.decade.collection import Decade, Trained, architectures
from affscore_book.decade.networks import SETTINGS
from affscore_book.kit.statistics import Interval, student_interval
from affscore_study.decade.claims import (
    DISTANCES,
    PLAIN,
    by_family,
    by_seed,
    common_seeds,
    cut,
    seed_by_seed,
    statistic,
)
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = ["likeness_claims", "spread_claims", "tail_claims"]

#: The architectures before residual networks, whose spread is related to their accuracy according to the source.
PRE_RESIDUAL = (*PLAIN, "googlenet", "inception_v3")
#: Architectures with residual connections after ResNet.
AFTER = ("mobilenet_v2", "mnasnet", "mobilenet_v3", "efficientnet", "convnext")
RESNETS = ["resnet10", "resnet18", "resnet34"]


def spread_claims(decade: Decade) -> list[Claim]:
    """Tests of section 4 and Appendix D on ranges, maxima and single architectures."""
    names = list(architectures(decade))

    def widest(of: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in of.items()}
        return max(spread[name] for name in PLAIN) - float(np.median(list(spread.values())))

    def linearizers(networks: Mapping[str, Trained]) -> float:
        """The mean score of the calls between dense blocks minus that of the calls inside them."""
        found = networks["densenet40"].end
        between, inside = (
            found.mean[[part in call.module for call in found.calls]].mean() for part in ("transition", "denselayer")
        )
        return float(between - inside)

    found = {
        "widest": seed_by_seed(names, decade, widest),
        **_pre_residual(decade),
        "after_resnets": seed_by_seed(AFTER, decade, lambda n: min(statistic(np.max, each) for each in n.values())),
        "alexnet": by_seed(np.std, decade, "alexnet"),
        "googlenet_least": by_seed(np.min, decade, "googlenet"),
        "googlenet_largest": by_seed(np.max, decade, "googlenet"),
        "inception": by_seed(np.max, decade, "inception_v3", "googlenet"),
        "densenet": seed_by_seed(["densenet40"], decade, linearizers),
    }
    return judged("decade", "spread", found)


def _pre_residual(decade: Decade) -> dict[str, Interval]:
    """The rank correlation of spread and accuracy for stacks and inception networks, and its lead over that of depth.

    Section 4 says that the spread predicts the accuracy "similarly to depth".
    """
    table = np.array([
        np.mean([(np.ptp(each.scores), len(each.end.calls), each.accuracy) for each in decade[name].values()], axis=0)
        for name in PRE_RESIDUAL
    ])  # fmt: skip

    def told(column: int, kept: np.ndarray) -> float:
        return float(stats.spearmanr(table[kept, column], table[kept, 2]).statistic)

    spread = by_family(lambda kept: told(0, kept), PRE_RESIDUAL)
    lead = by_family(lambda kept: told(0, kept) - told(1, kept), PRE_RESIDUAL)
    return {"explained": cut(spread), "similarly": lead}


def tail_claims(decade: Decade) -> list[Claim]:
    """Tests of section 4 on the shapes of the densities, with the kurtosis as the measure of heavy tails."""
    pairs = {"Swin − AlexNet": ("swin", "alexnet"), "ConvNeXt − VGG16": ("convnext", "vgg16")}
    found = {names: by_seed(stats.kurtosis, decade, *pair) for names, pair in pairs.items()}
    return judged("decade", "tails", {"kurtosis": found})


def likeness_claims(decade: Decade) -> list[Claim]:
    """Tests of the similarities in Figure 5 C and section 4, by both distances of signatures within one seed."""
    networks = architectures(decade)
    seeds = common_seeds(networks, decade)
    later = [name for name in networks if SETTINGS[name].year > 2014]

    def nearness(
        of: Callable[[Trained, Trained], float], one: str, other: str, than: list[str], part: float, seed: int
    ) -> float:
        """The distance of two networks minus the quantile ``part`` of the distances to ``than`` without the second."""
        own = decade[one][seed]
        others = [of(own, decade[name][seed]) for name in than if name != other]
        return of(own, decade[other][seed]) - float(np.quantile(others, part))

    def foreign(of: Callable[[Trained, Trained], float], seed: int) -> float:
        """The ViTs' mean distance to the other architectures minus the median over all architectures of that mean."""
        mean = {
            one: float(np.mean([of(decade[one][seed], decade[other][seed]) for other in networks if other != one]))
            for one in networks
        }
        return float(np.mean([mean["vit_8"], mean["vit_4"]]) - np.median(list(mean.values())))

    found: dict[str, dict[str, Interval]] = {}
    for row, ones, other, than, part in (
        ("alexnet_swin", ("alexnet",), "swin", later, 0.25),
        ("vgg16_convnext", ("vgg16", "vgg16_bn"), "convnext", later, 0.25),
        ("swin_alexnet", ("swin",), "alexnet", RESNETS, 0.5),
    ):
        found[row] = {
            convention + ", with batch norm" * one.endswith("_bn"):
                student_interval([nearness(of, one, other, than, part, seed) for seed in seeds])
            for one in ones for convention, of in DISTANCES.items()
        }  # fmt: skip
    found["foreign"] = {
        convention: student_interval([foreign(of, seed) for seed in seeds]) for convention, of in DISTANCES.items()
    }
    return judged("decade", "likeness", found)
