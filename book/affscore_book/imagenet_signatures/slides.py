"""Two slides on the history, asked of the small networks of the decade in miniature, whose scores are stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.claims import architectures, statistic
from affscore_book.decade.collection import Trained
from affscore_book.kit.claims import HIGHER, Claim, side_by_side
from affscore_book.kit.statistics import Interval, leaving_out, student_interval

__all__ = ["slides_claims"]

Decade = Mapping[str, Mapping[int, Trained]]

#: What stands for the slides' Resnet152, Densenet161 and Efficientnet B4, and for Alexnet and VGG16.
DEEPER = ("resnet34", "densenet40", "efficientnet")
EARLY = {"AlexNet and VGG16, no norm, as theirs": ("alexnet", "vgg16"), "VGG16 with norm": ("vgg16_bn",)}


def slides_claims(decade: Decade) -> list[Claim]:
    """Are deeper networks more linear, and did scores and their range rise before ViTs? Rules set after a look."""
    readings = {
        name: Claim.over("mean score, ResNet34, DenseNet40 and EfficientNet − early convnets, by seeds",
                         "slides, Deeper Networks", '"increasing linearity (higher scores)"',
                         _seed_by_seed(decade, early), HIGHER, seen=True)
        for name, early in EARLY.items()
    }  # fmt: skip
    rising: dict[str, tuple[str, Callable[..., Any]]] = {
        "largest score": ('"max and median values are increasing"', np.max),
        "median score": ('"max and median values are increasing"', np.median),
        "range of the scores": ('"also gap between min and max"', np.ptp),
    }
    return side_by_side("batch norm", readings) + [
        Claim.over(f"rank correlation of year and {name}, up to 2019, by families",
                   "slides, Neural architectures, before ViTs", theirs, _trend(decade, of), (0, math.inf), seen=True)
        for name, (theirs, of) in rising.items()
    ]  # fmt: skip


def _seed_by_seed(decade: Decade, early: Sequence[str]) -> Interval:
    seeds = sorted(set.intersection(*(set(decade[name]) for name in (*DEEPER, *early))))

    def level(names: Sequence[str], seed: int) -> float:
        return float(np.mean([statistic(np.mean, decade[name][seed]) for name in names]))

    return student_interval([level(DEEPER, seed) - level(early, seed) for seed in seeds])


def _trend(decade: Decade, of: Callable[..., Any]) -> Interval:
    """Of architectures, each the mean over its seeds; the interval leaves out a family at a time."""
    early = {name: seeds for name, seeds in architectures(decade).items() if next(iter(seeds.values())).year < 2020}
    years = np.array([next(iter(seeds.values())).year for seeds in early.values()])
    values = np.array([np.mean([statistic(of, each) for each in seeds.values()]) for seeds in early.values()])
    families = [re.split("[^a-z]", name)[0] for name in early]  # whose names begin alike
    found = leaving_out(lambda kept: float(stats.spearmanr(years[kept], values[kept]).statistic), len(early), families)
    return Interval(found.mean, max(found.low, -1.0), min(found.high, 1.0))
