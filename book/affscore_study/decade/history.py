"""The history to 2019 and the turn of the transformers: what it depends on, and what it does not.

Architectures are the units here, each the mean over its seeds, and a family of them is left out at a time. Rules were
set before the trainings were done, unless a row says that it was set after a look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.collection import END, START, Decade, Trained, architectures, by_family
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.decade.networks import SETTINGS
from affscore_book.kit.statistics import Interval
from affscore_study.decade.claims import (
    ABOVE,
    BELOW,
    DISTANCES,
    PLAIN,
    by_seed,
    claim_row,
    common_seeds,
    rank_correlation,
    seed_by_seed,
    statistic,
)
from affscore_study.kit.claims import HIGHER, LOWER, Claim, side_by_side

__all__ = ["VITS", "era_claims", "history_claims", "rise_claims", "trend_claims", "vit_claims"]

WITHOUT_NORM = ("alexnet", "vgg11", "vgg13", "vgg16")
VITS = ("vit_8", "vit_4")
#: The networks that return to early shapes, says the source.
RETURNING = ("swin", "convnext")
#: Random channels of a call; 0 stands for all.
ALL_AND_FEW = (0, CHANNELS[0])
#: Of the slide on deeper networks those that are here, and of the one on early ones.
DEEPER, EARLY = ("resnet34", "densenet40", "efficientnet"), ("alexnet", "vgg16")
RISE = "rank correlation of year and mean score, to 2019"
SLIDE = "max and median values are increasing, also gap between min and max"


def _early(decade: Decade, norm: bool = False) -> list[str]:
    """Architectures from before the transformers, all or those with norm."""
    names = [name for name in architectures(decade) if SETTINGS[name].year < 2020]
    return [name for name in names if not norm or name not in WITHOUT_NORM]


class _Levels:
    """Statistics of the scores of networks, with all channels of a call and with some random ones."""

    def __init__(self, decade: Decade, equal: Mapping[str, Equal]) -> None:
        self.decade, self.equal = decade, equal

    def of(
        self, names: Iterable[str], what: Callable[..., Any] = np.mean, *,
        state: str = END, gates: bool = True, channels: int = 0,
    ) -> np.ndarray:  # fmt: skip
        """Of each network's calls that are alive: the mean over its seeds, of few channels that of the first seed.

        ``gates`` says whether gate calls count. A network without norm has one start, which is its raw one.
        """
        found = []
        for name in names:
            signatures = [each.signatures.get((state, "spatial"), each.signatures[START, "spatial"])
                          for each in self.decade[name].values()]  # fmt: skip
            rows = [self.equal[name].channels[END, channels]] if channels else [each.mean for each in signatures]
            counted = gates | ~np.array([call.gate for call in signatures[0].calls])
            found.append(np.mean([what(scores[counted & ~np.isnan(scores)]) for scores in rows]))
        return np.array(found)

    def rise(self, names: Sequence[str], what: Callable[..., Any] = np.mean, **options: Any) -> Interval:
        """The rank correlation of :meth:`of` with the year."""
        return rank_correlation([SETTINGS[name].year for name in names], self.of(names, what, **options), names)


def _readings(
    found: Mapping[int, Interval], what: str, place: str, theirs: str, accept: tuple[float, float], seen: bool = False
) -> list[Claim]:
    """One claim by the number of channels, side by side."""
    return side_by_side("the channels", {
        f"{count} random channels a call" if count else "all channels":
            claim_row(what, place, theirs, interval, accept, seen)
        for count, interval in found.items()
    })  # fmt: skip


def _apart(values: np.ndarray, names: Sequence[str], group: Iterable[str]) -> Interval:
    """Mean of the networks of a group less that of the others."""
    inside = np.isin(names, list(group))
    return by_family(lambda kept: float(values[kept][inside[kept]].mean() - values[kept][~inside[kept]].mean()), names)


def rise_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Figure 5 A: a decade of rising linearity, with all channels of a call and with equally many."""
    levels, early = _Levels(decade, equal), _early(decade)
    found = {count: levels.rise(early, channels=count) for count in ALL_AND_FEW}
    return _readings(found, RISE, "Figure 5 A", '"the trend ... was to increase their linearity"', ABOVE)


def trend_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Is the rise to 2019 there before training? And among networks with norm, and with gate calls left out? And is
    there a way back? Rules set after a look."""
    levels, place = _Levels(decade, equal), "ours, of Figure 5 A"

    def gain(state: str, norm: bool) -> Interval:
        names = _early(decade, norm)
        years = np.array([SETTINGS[name].year for name in names])
        trained, start = levels.of(names), levels.of(names, state=state)

        def more(kept: np.ndarray) -> float:
            after, before = (float(stats.spearmanr(years[kept], each[kept]).statistic) for each in (trained, start))
            return after - before

        return by_family(more, names)

    starts = {"the raw start": "raw start", "the start with norm set": START}
    which = {"all networks": False, "those with norm": True}
    rows = [
        *side_by_side("the start", {
            name: claim_row(f"{RISE}, before training", place, "above 0",
                            levels.rise(_early(decade), state=state), ABOVE, seen=True)
            for name, state in starts.items()
        }),
        *side_by_side("start and norm", {
            f"{start}; {names}": claim_row(f"{RISE}, trained − before training", place, "above 0",
                                           gain(state, norm), ABOVE, seen=True)
            for names, norm in which.items() for start, state in starts.items()
        }),
    ]  # fmt: skip
    for what, norm, gates in (
        ("gate calls left out", False, False), ("networks with norm", True, True),
        ("networks with norm, gate calls left out", True, False),
    ):  # fmt: skip
        names = _early(decade, norm)
        found = {count: levels.rise(names, gates=gates, channels=count) for count in (0, *CHANNELS)}
        rows += _readings(found, f"{RISE}, {what}", place, "above 0", ABOVE, seen=True)
    around = [name for name in architectures(decade) if SETTINGS[name].year >= 2018 and name not in VITS]
    found = {count: _apart(levels.of(around, channels=count), around, RETURNING) for count in ALL_AND_FEW}
    what = "mean score: Swin and ConvNeXt − networks of 2018 and 2019"
    return rows + _readings(found, what, place, "below 0", LOWER, seen=True)


def era_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """The slides: median, maximum and range by year, and deeper networks beside early ones."""
    levels, early, some, rows = _Levels(decade, equal), _early(decade), [*EARLY, *DEEPER], []
    for name, of in (("median score", np.median), ("largest score", np.max), ("range of the scores", np.ptp)):
        found = {count: levels.rise(early, of, channels=count) for count in ALL_AND_FEW}
        rows += _readings(found, f"rank correlation of year and {name}, to 2019",
                          "slides, Neural architectures, before ViTs", f'"{SLIDE}"', ABOVE)  # fmt: skip
    found = {count: _apart(levels.of(some, channels=count), some, DEEPER) for count in ALL_AND_FEW}
    return rows + _readings(found, "mean score: ResNet34, DenseNet40, EfficientNet − AlexNet, VGG16",
                            "slides, Deeper Networks", '"increasing linearity (higher scores)"', HIGHER)  # fmt: skip


def history_claims(decade: Decade) -> list[Claim]:
    """Figure 5, A and B, but for the rise: GoogLeNet's range, EfficientNet's skewness, distances, the U-turn."""

    def wider(networks: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in networks.items()}
        return spread["googlenet"] - max(spread[name] for name in PLAIN)

    def far(of: Callable[[Trained, Trained], float], names: Sequence[str]) -> np.ndarray:
        """Distance of each from AlexNet, mean over the seeds that both have."""
        first = decade["alexnet"]
        return np.array([np.mean([of(first[seed], decade[name][seed])
                                  for seed in common_seeds(("alexnet", name), decade)]) for name in names])  # fmt: skip

    years = {name: SETTINGS[name].year for name in architectures(decade)}
    later = [name for name in years if name != "alexnet" and years[name] <= 2020]
    around = [name for name in years if years[name] >= 2016]
    return [
        claim_row("range: GoogLeNet − the widest of AlexNet and VGG", "section 4, GoogLeNet", '"extend the range"',
                  seed_by_seed([*PLAIN, "googlenet"], decade, wider), HIGHER),
        claim_row("skewness of EfficientNet's scores", "section 4", '"strong negative skewness"',
                  by_seed(stats.skew, decade, "efficientnet"), (-math.inf, -0.5)),
        *side_by_side("the distance", {
            convention: claim_row("rank correlation of year and distance from AlexNet, to 2020", "Figure 5 B",
                                  '"more and more dissimilar to Alexnet"',
                                  rank_correlation([years[name] for name in later], far(of, later), later), ABOVE)
            for convention, of in DISTANCES.items()
        }),
        *side_by_side("the distance", {
            convention: claim_row("distance from AlexNet: Swin and ConvNeXt − those of 2016 to 2020", "Figure 5 B",
                                  '"U-turn"', _apart(far(of, around), around, RETURNING), BELOW)
            for convention, of in DISTANCES.items()
        }),
    ]  # fmt: skip


def vit_claims(decade: Decade) -> list[Claim]:
    """Section 1: are both ViTs below every other architecture? By both pools, that of the source's code second."""

    def below(networks: Mapping[str, Trained], pool: str) -> float:
        level = {name: statistic(np.mean, network, pool) for name, network in networks.items()}
        return max(level[name] for name in VITS) - min(v for name, v in level.items() if name not in VITS)

    names = list(architectures(decade))
    return side_by_side("the pool", {
        f"{pool} pool": claim_row(
            "mean score: the higher ViT − the lowest other network", "section 1", '"the most non-linear architectures"',
            seed_by_seed(names, decade, lambda networks, pool=pool: below(networks, pool)), LOWER,  # type: ignore[misc]
        )
        for pool in ("spatial", "trailing")
    })  # fmt: skip
