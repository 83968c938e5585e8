"""Tests of the source's history: the rise of scores to 2019, its causes, and the return of later networks.

The units are architectures, each the mean over its seeds, and intervals leave out one family at a time. ``claims.toml``
has the sentences and the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.decade.collection import END, START, Decade, Trained, architectures
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.decade.networks import SETTINGS
from affscore_book.kit.statistics import Interval
from affscore_study.decade.claims import (
    DISTANCES,
    PLAIN,
    by_family,
    by_seed,
    common_seeds,
    rank_correlation,
    seed_by_seed,
    statistic,
)
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = ["VITS", "era_claims", "history_claims", "rise_claims", "trend_claims", "vit_claims"]

WITHOUT_NORM = ("alexnet", "vgg11", "vgg13", "vgg16")
VITS = ("vit_8", "vit_4")
#: The networks that return to early shapes according to the source.
RETURNING = ("swin", "convnext")
#: The numbers of random channels of a call; 0 stands for all channels.
ALL_AND_FEW = (0, CHANNELS[0])
#: The networks of the decade that are on the slide of deeper networks, and those on the slide of early ones.
DEEPER, EARLY = ("resnet34", "densenet40", "efficientnet"), ("alexnet", "vgg16")


def _early(decade: Decade, norm: bool = False) -> list[str]:
    """The architectures from before 2020, all of them or only those with batch norm."""
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
        """The statistic ``what`` of each network's live calls, as a mean over its seeds, shape (networks,).

        With few channels, only the first seed is used. Gate calls count only if ``gates`` is True. A network without
        norm has only the raw start.
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


def _channels(count: int) -> str:
    return f"{count} random channels a call" if count else "all channels"


def _apart(values: np.ndarray, names: Sequence[str], group: Iterable[str]) -> Interval:
    """The mean of the networks of a group minus that of the others."""
    inside = np.isin(names, list(group))
    return by_family(lambda kept: float(values[kept][inside[kept]].mean() - values[kept][~inside[kept]].mean()), names)


def rise_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Tests of the rise of linearity over a decade (Figure 5 A), with all channels of a call and with equally many."""
    levels, early = _Levels(decade, equal), _early(decade)
    found = {_channels(count): levels.rise(early, channels=count) for count in ALL_AND_FEW}
    return judged("decade", "rise", {"year": found})


def trend_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Tests of the trend: the rise to 2019 before training and in the networks with norm, and the later return.

    The rise is also tested without gate calls. The return is the difference between the networks that return to early
    shapes and the others since 2018.
    """
    levels = _Levels(decade, equal)

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
    without = {
        what: {
            _channels(count): levels.rise(_early(decade, norm), gates=gates, channels=count) for count in (0, *CHANNELS)
        }
        for what, norm, gates in (
            ("gate calls left out", False, False), ("networks with norm", True, True),
            ("networks with norm, gate calls left out", True, False),
        )
    }  # fmt: skip
    around = [name for name in architectures(decade) if SETTINGS[name].year >= 2018 and name not in VITS]
    found = {
        "start": {name: levels.rise(_early(decade), state=state) for name, state in starts.items()},
        "gained": {
            f"{start}; {names}": gain(state, norm)
            for names, norm in which.items() for start, state in starts.items()
        },
        "without": without,
        "returning": {
            _channels(count): _apart(levels.of(around, channels=count), around, RETURNING) for count in ALL_AND_FEW
        },
    }  # fmt: skip
    return judged("decade", "trend", found)


def era_claims(decade: Decade, equal: Mapping[str, Equal]) -> list[Claim]:
    """Tests of the slides: median, maximum and range of the scores by year, and deeper networks against early ones."""
    levels, early, some = _Levels(decade, equal), _early(decade), [*EARLY, *DEEPER]
    numbers: dict[str, Callable[..., Any]] = {
        "median score": np.median, "largest score": np.max, "range of the scores": np.ptp,
    }  # fmt: skip
    found = {
        "year": {
            name: {_channels(count): levels.rise(early, of, channels=count) for count in ALL_AND_FEW}
            for name, of in numbers.items()
        },
        "deeper": {_channels(count): _apart(levels.of(some, channels=count), some, DEEPER) for count in ALL_AND_FEW},
    }
    return judged("decade", "era", found)


def history_claims(decade: Decade) -> list[Claim]:
    """Tests of Figure 5 A and B: GoogLeNet's range, EfficientNet's skewness, distances and the U-turn."""

    def wider(networks: Mapping[str, Trained]) -> float:
        spread = {name: statistic(np.ptp, network) for name, network in networks.items()}
        return spread["googlenet"] - max(spread[name] for name in PLAIN)

    def far(of: Callable[[Trained, Trained], float], names: Sequence[str]) -> np.ndarray:
        """The distance of each network from AlexNet, a mean over the seeds that both have."""
        first = decade["alexnet"]
        return np.array([np.mean([of(first[seed], decade[name][seed])
                                  for seed in common_seeds(("alexnet", name), decade)]) for name in names])  # fmt: skip

    years = {name: SETTINGS[name].year for name in architectures(decade)}
    later = [name for name in years if name != "alexnet" and years[name] <= 2020]
    around = [name for name in years if years[name] >= 2016]
    found = {
        "googlenet": seed_by_seed([*PLAIN, "googlenet"], decade, wider),
        "efficientnet": by_seed(stats.skew, decade, "efficientnet"),
        "dissimilar": {
            convention: rank_correlation([years[name] for name in later], far(of, later), later)
            for convention, of in DISTANCES.items()
        },
        "u_turn": {convention: _apart(far(of, around), around, RETURNING) for convention, of in DISTANCES.items()},
    }
    return judged("decade", "history", found)


def vit_claims(decade: Decade) -> list[Claim]:
    """Tests whether both ViTs are below every other architecture (section 1), by both pools.

    The second pool, ``trailing``, is that of the source's code.
    """

    def below(networks: Mapping[str, Trained], pool: str) -> float:
        level = {name: statistic(np.mean, network, pool) for name, network in networks.items()}
        return max(level[name] for name in VITS) - min(v for name, v in level.items() if name not in VITS)

    names = list(architectures(decade))
    found = {f"{pool} pool": seed_by_seed(names, decade, partial(below, pool=pool)) for pool in ("spatial", "trailing")}
    return judged("decade", "vit", {"lowest": found})
