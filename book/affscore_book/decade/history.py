"""The history to 2019 and the turn of the transformers: what it depends on, and what it does not.

Architectures are the units here, each the mean over its seeds, and a family of them is left out at a time. Rules were
set before the trainings were done, unless a row says that it was set after a look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    kin,
    rank_correlation,
    seed_by_seed,
    statistic,
)  # fmt: skip
from affscore_book.decade.collection import END, START, Trained
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.kit.claims import HIGHER, LOWER, Claim, side_by_side
from affscore_book.kit.statistics import Interval

__all__ = ["VITS", "era_claims", "history_claims", "rise_claims", "trend_claims", "vit_claims"]

Decade = Mapping[str, Mapping[int, Trained]]

WITHOUT_NORM = ("alexnet", "vgg11", "vgg13", "vgg16")
VITS = ("vit_8", "vit_4")
#: The networks that return to early shapes, says the source.
RETURNING = ("swin", "convnext")
#: Of the slide on deeper networks those that are here, and of the one on early ones.
DEEPER, EARLY = ("resnet34", "densenet40", "efficientnet"), ("alexnet", "vgg16")
RISE = "rank correlation of year and mean score, to 2019"
RAW = "raw start"
SLIDE = "max and median values are increasing, also gap between min and max"


def _early(decade: Decade) -> dict[str, Mapping[int, Trained]]:
    """Architectures from before the transformers."""
    return {name: seeds for name, seeds in architectures(decade).items() if _year(seeds) < 2020}


def _year(seeds: Mapping[int, Trained]) -> int:
    return next(iter(seeds.values())).year


def _level(network: Trained, state: str, gates: bool) -> float:
    """Mean score of the calls that are alive, with or without gates. Without norm there is one start only."""
    found = network.signatures.get((state, "spatial"), network.signatures[START, "spatial"])
    kept = ~np.isnan(found.mean) & (gates | ~np.array([call.gate for call in found.calls]))
    return float(found.mean[kept].mean())


def _few(network: Trained, equal: Equal, channels: int, gates: bool) -> float:
    """Mean score of a network of the first seed with some random channels a call."""
    scores = equal.channels[END, channels]
    kept = ~np.isnan(scores) & (gates | ~np.array([call.gate for call in network.signatures[END, "spatial"].calls]))
    return float(scores[kept].mean())


def _reading(channels: int) -> str:
    return f"{channels} random channels a call" if channels else "all channels"


class _Rise:
    """Year and mean score of the architectures to 2019; ``norm`` keeps those with norm only, ``gates`` all calls."""

    def __init__(self, decade: Decade, equal: Mapping[str, Equal]) -> None:
        self.networks, self.equal = _early(decade), equal

    def levels(self, state: str = END, gates: bool = True, channels: int = 0) -> np.ndarray:
        if channels:
            firsts = ((seeds[0], self.equal[name]) for name, seeds in self.networks.items())
            return np.array([_few(network, equal, channels, gates) for network, equal in firsts])
        means = [np.mean([_level(each, state, gates) for each in seeds.values()]) for seeds in self.networks.values()]
        return np.array(means)

    def kept(self, norm: bool) -> np.ndarray:
        return np.flatnonzero([not norm or name not in WITHOUT_NORM for name in self.networks])

    def over(self, of: Callable[[np.ndarray], float], norm: bool = False) -> Interval:
        """A statistic of the networks that are kept, a family left out at a time."""
        at, names = self.kept(norm), np.array(list(self.networks))
        return by_family(lambda kept: of(at[kept]), names[at].tolist())

    def correlation(self, levels: np.ndarray) -> Callable[[np.ndarray], float]:
        years = np.array([_year(seeds) for seeds in self.networks.values()])
        return lambda kept: float(stats.spearmanr(years[kept], levels[kept]).statistic)


def rise_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Figure 5 A: a decade of rising linearity, with all channels of a call and with equally many."""
    rise = _Rise(decade, equal)
    readings = {_reading(channels): rise.levels(channels=channels) for channels in (0, CHANNELS[0])}
    theirs = '"the trend ... was to increase their linearity"'
    return side_by_side("the channels", {
        name: claim_row(RISE, "Figure 5 A", theirs, cut(rise.over(rise.correlation(levels))), ABOVE)
        for name, levels in readings.items()
    })  # fmt: skip


def trend_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Is the rise to 2019 there before training? And among networks with norm, and with gate calls left out? And is
    there a way back? Rules set after a look."""
    rise = _Rise(decade, equal)

    def row(what: str, found: Interval) -> Claim:
        return Claim.over(what, "ours, of Figure 5 A", "above 0", found, ABOVE, kind="own", seen=True)

    def gain(state: str, norm: bool) -> Interval:
        trained, start = (rise.correlation(rise.levels(each)) for each in (END, state))
        return rise.over(lambda kept: trained(kept) - start(kept), norm)

    def among(norm: bool, gates: bool, channels: int) -> Interval:
        return cut(rise.over(rise.correlation(rise.levels(gates=gates, channels=channels)), norm))

    starts = {"the raw start": RAW, "the start with norm set": START}
    which = {"all networks": False, "those with norm": True}
    rows = [
        *side_by_side("the start", {
            name: row(f"{RISE}, before training", cut(rise.over(rise.correlation(rise.levels(state)))))
            for name, state in starts.items()
        }),
        *side_by_side("start and norm", {
            f"{start}; {names}": row(f"{RISE}, trained − before training", gain(state, norm))
            for names, norm in which.items() for start, state in starts.items()
        }),
    ]  # fmt: skip
    for what, norm, gates in (
        ("gate calls left out", False, False), ("networks with norm", True, True),
        ("networks with norm, gate calls left out", True, False),
    ):  # fmt: skip
        rows += side_by_side("the channels", {
            _reading(channels): row(f"{RISE}, {what}", among(norm, gates, channels)) for channels in (0, *CHANNELS)
        })  # fmt: skip
    return rows + side_by_side("the channels", _way_back(decade, equal))


def _way_back(decade: Decade, equal: Mapping[str, Equal]) -> dict[str, Claim]:
    """Do Swin and ConvNeXt score lower than the networks right before the transformers?"""
    names = [name for name, seeds in architectures(decade).items() if _year(seeds) >= 2018 and name not in VITS]
    back = np.array([name in RETURNING for name in names])

    def lower(level: np.ndarray) -> Interval:
        return by_family(lambda kept: float(level[kept][back[kept]].mean() - level[kept][~back[kept]].mean()), names)

    what = "mean score: Swin and ConvNeXt − networks of 2018 and 2019"
    return {
        reading: Claim.over(what, "ours, of Figure 5 A", "below 0", lower(level), LOWER, kind="own", seen=True)
        for reading, level in _by_channels(decade, equal, names, np.mean).items()
    }  # fmt: skip


def _by_channels(
    decade: Decade, equal: Mapping[str, Equal], names: Sequence[str], of: Callable[..., Any]
) -> dict[str, np.ndarray]:
    """A statistic of the scores of each network, with all channels (mean over the seeds) and with some random ones."""
    whole = [np.mean([statistic(of, each) for each in decade[name].values()]) for name in names]
    drawn = (equal[name].channels[END, CHANNELS[0]] for name in names)
    few = [of(scores[~np.isnan(scores)]) for scores in drawn]
    return {_reading(0): np.array(whole), _reading(CHANNELS[0]): np.array(few)}


def era_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """The slides: median, maximum and range by year, and deeper networks beside early ones."""
    networks = _early(decade)
    names, some = list(networks), [*EARLY, *DEEPER]
    years, late = [_year(seeds) for seeds in networks.values()], np.array([name in DEEPER for name in some])
    families = [kin(name) for name in names]

    def apart(level: np.ndarray) -> Interval:
        return by_family(lambda kept: float(level[kept][late[kept]].mean() - level[kept][~late[kept]].mean()), some)

    rows = []
    for what, of in (("median score", np.median), ("largest score", np.max), ("range of the scores", np.ptp)):
        rows += side_by_side("the channels", {
            reading: Claim.over(f"rank correlation of year and {what}, to 2019",
                                "slides, Neural architectures, before ViTs", f'"{SLIDE}"',
                                rank_correlation(np.column_stack([years, levels]), families), ABOVE)
            for reading, levels in _by_channels(decade, equal, names, of).items()
        })  # fmt: skip
    return rows + side_by_side("the channels", {
        reading: Claim.over("mean score: ResNet34, DenseNet40, EfficientNet − AlexNet, VGG16",
                            "slides, Deeper Networks", '"increasing linearity (higher scores)"', apart(level), HIGHER)
        for reading, level in _by_channels(decade, equal, some, np.mean).items()
    })  # fmt: skip


def history_claims(decade: Decade) -> list[Claim]:
    """Figure 5, A and B, but for the rise: GoogLeNet's range, EfficientNet's skewness, distances, the U-turn."""
    networks = architectures(decade)
    years = {name: _year(seeds) for name, seeds in networks.items()}
    everyone = [*PLAIN, "googlenet"]

    def wider(networks: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in networks.items()}
        return spread["googlenet"] - max(spread[name] for name in PLAIN)

    def far(of: Callable[[Trained, Trained], float], name: str) -> float:
        return float(np.mean([of(decade["alexnet"][seed], decade[name][seed])
                              for seed in common_seeds(("alexnet", name), decade)]))  # fmt: skip

    later = [name for name in networks if name != "alexnet" and years[name] <= 2020]
    around = [name for name in networks if years[name] >= 2016]
    back = np.array([name in RETURNING for name in around])
    rising, turned = {}, {}
    for convention, of in DISTANCES.items():
        pairs = np.array([(years[name], far(of, name)) for name in later])
        found = rank_correlation(pairs, [kin(name) for name in later])
        rising[convention] = claim_row("rank correlation of year and distance from AlexNet, to 2020", "Figure 5 B",
                                       '"more and more dissimilar to Alexnet"', found, ABOVE)  # fmt: skip
        away = np.array([far(of, name) for name in around])

        def closer(kept: np.ndarray, away: np.ndarray = away) -> float:
            return float(away[kept][back[kept]].mean() - away[kept][~back[kept]].mean())

        turned[convention] = claim_row("distance from AlexNet: Swin and ConvNeXt − those of 2016 to 2020",
                                       "Figure 5 B", '"U-turn"', by_family(closer, around), BELOW)  # fmt: skip
    return [
        claim_row("range: GoogLeNet − the widest of AlexNet and VGG", "section 4, GoogLeNet", '"extend the range"',
                  seed_by_seed(everyone, decade, wider), HIGHER),
        claim_row("skewness of EfficientNet's scores", "section 4", '"strong negative skewness"',
                  seed_by_seed(["efficientnet"], decade, lambda n: statistic(stats.skew, n["efficientnet"])),
                  (-math.inf, -0.5)),
        *side_by_side("the distance", rising), *side_by_side("the distance", turned),
    ]  # fmt: skip


def vit_claims(decade: Decade) -> list[Claim]:
    """Section 1: are both ViTs below every other architecture? By both pools, that of the source's code second."""
    names = list(architectures(decade))
    readings = {}
    for pool in ("spatial", "trailing"):

        def below(networks: Mapping[str, Trained], pool: str = pool) -> float:
            level = {name: statistic(np.mean, network, pool) for name, network in networks.items()}
            return max(level[name] for name in VITS) - min(v for name, v in level.items() if name not in VITS)

        readings[f"{pool} pool"] = claim_row("mean score: the higher ViT − the lowest other network", "section 1",
                                             '"the most non-linear architectures"',
                                             seed_by_seed(names, decade, below), LOWER)  # fmt: skip
    return side_by_side("the pool", readings)
