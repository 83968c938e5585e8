"""The stored stitched networks of the book: penalties over pairs of networks, with intervals.

Pairs that share a network are not independent, so intervals leave out one network at a time:
:func:`affscore_book.kit.statistics.leaving_out`. The networks of a kind stand in rings: each is the first of one pair
and the second of another. If the results of a network as a first half were unrelated to its results as a second half,
the pairs would be independent, and Student's interval exact. But nothing says so, and few pairs cannot show it. If
both are alike (a network that is hard to leave is hard to enter), neighbours in a ring are correlated, up to 1/2.
With four networks Student's 95 % interval then holds the mean in 79 % of draws. Leaving out networks holds it in 94
to 97 % whatever that correlation, as the tests draw it. So it is what we use, although it is the wider of the two
where pairs are independent.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from affscore_book.kit.statistics import Interval, leaving_out, over_pairs
from affscore_book.kit.stored import read_results

__all__ = ["StitchingStudy", "inside_block", "load_stitching", "penalty", "shortcut_share"]

#: A record with one of these belongs to a sweep, and is only found by the value of it.
_VARIANTS = {"alpha", "strength", "epochs", "temperature"}


def penalty(bottom: float, top: float, stitched: float) -> float:
    """The stitching penalty in accuracy points, equation 4.3: 100 times the networks' mean accuracy minus the stitched.

    All between 0 and 1, on the same images.

    >>> round(penalty(0.91, 0.93, 0.87), 6)
    5.0
    """
    for name, value in (("bottom", bottom), ("top", top), ("stitched", stitched)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}; it should be an accuracy between 0 and 1.")
    return 100 * ((bottom + top) / 2 - stitched)


def inside_block(layer: str) -> bool:
    """Whether an activation of :func:`affscore_book.kit.networks.resnet20` lies inside a residual block.

    >>> inside_block("block3.relu1"), inside_block("block3.relu2"), inside_block("relu3")
    (True, False, False)
    """
    return layer.startswith("block") and layer.endswith(".relu1")


@dataclass(frozen=True, eq=False)
class StitchingStudy:
    """The stored results of ``book/data/stitching/make.py``.

    Attributes
    ----------
    settings
        Of the run.
    accuracies
        Of each network, on all test images.
    records
        One mapping for each stitched network: ``task``, ``bottom``, ``top``, ``layer``, ``stitch``, ``fit``, and the
        accuracy ``reestimated`` with batch-norm statistics measured anew.
    scores
        Name of a network to {activation: affinity score, mean over batches}.
    """

    settings: dict[str, Any]
    accuracies: dict[str, float]
    records: list[dict[str, Any]]
    scores: dict[str, dict[str, float]]

    def __repr__(self) -> str:
        pairs = {(record["bottom"], record["top"]) for record in self.records}
        images = self.settings["images"]["test"]
        return (
            f"Study: {len(self.records)} stitched networks of {len(pairs)} pairs, {self.settings['dataset']}, "
            f"{images} test images"
        )

    def pairs(self) -> dict[str, int]:
        """How many ordered pairs of networks each part of the study has: ``{"myrtle, closed": 16, ...}``."""
        found = {
            (f"{_kind(record['bottom'])}, {record['task']}", record["bottom"], record["top"])
            for record in self.records
            if record["task"] != "planted"
        }
        return dict(sorted(Counter(part for part, _, _ in found).items()))

    def _penalty(self, record: dict[str, Any]) -> float:
        return penalty(self.accuracies[record["bottom"]], self.accuracies[record["top"]], record["reestimated"])

    def layers(self, kind: str) -> list[str]:
        """The activations of a kind of network (``"myrtle"``, ``"resnet20"``, ...) that have records, in order."""
        found = (record["layer"] for record in self.records if _kind(record["bottom"]) == kind)
        return list(dict.fromkeys(found))

    def stitches(self, kind: str, fit: str) -> list[str]:
        """The stitches between networks of a kind that were fitted in a way, such as ``"learned"``, in order."""
        found = (r["stitch"] for r in self.records if _kind(r["bottom"]) == kind and r["fit"] == fit)
        return list(dict.fromkeys(found))

    def table(self, kind: str, layer: str, stitch: str, fit: str = "closed form", **more: Any) -> np.ndarray:
        """Penalties in accuracy points, (networks, networks) with bottoms as rows; NaN for pairs without a record.

        ``more`` are further conditions, such as ``alpha=0.1``. Raises ValueError if there is no such record.
        """
        wanted = {"layer": layer, "stitch": stitch, "fit": fit} | more
        values = {}
        for record in self.records:
            one, other = record["bottom"], record["top"]
            if _kind(one) != kind or _kind(other) != kind or any(record.get(k) != v for k, v in wanted.items()):
                continue
            if more or _VARIANTS.isdisjoint(record):
                values[_seed(one), _seed(other)] = self._penalty(record)
        if not values:
            raise ValueError(f"there is no record of {kind} networks with {wanted}.")
        size = 1 + max(max(pair) for pair in values)
        table = np.full((size, size), np.nan)
        for pair, value in values.items():
            table[pair] = value
        return table

    def tables(self, kind: str, layers: str | Iterable[str], stitch: str, *rest: Any, **more: Any) -> np.ndarray:
        """:meth:`table` at each of the layers, or at one: (layers, networks, networks)."""
        names = [layers] if isinstance(layers, str) else layers
        return np.stack([self.table(kind, layer, stitch, *rest, **more) for layer in names])

    def penalty(self, kind: str, layers: str | Iterable[str], stitch: str, *rest: Any, **more: Any) -> Interval:
        """Mean of :meth:`tables` over layers and pairs, with the interval of :func:`over_pairs`."""
        return over_pairs(self.tables(kind, layers, stitch, *rest, **more).mean(0))

    def planted(self, layer: str, fit: str) -> Interval:
        """Penalty between networks and themselves acted on by known elements of G_ReLU: mean, lowest and highest."""
        values = [self._penalty(record | {"top": record["bottom"]}) for record in self._planted(layer, fit)]
        return Interval(float(np.mean(values)), min(values), max(values))

    def recovered(self, layer: str) -> float:
        """Mean share of the planted permutation that a stitch learned from noise finds, 0 to 1."""
        return float(np.mean([record["found"] for record in self._planted(layer, "learned from noise")]))

    def _planted(self, layer: str, fit: str) -> list[dict[str, Any]]:
        wanted = ("planted", layer, fit)
        return [record for record in self.records if (record["task"], record["layer"], record["fit"]) == wanted]

    def layer_scores(self, kind: str) -> np.ndarray:
        """Affinity scores, (networks, activations) in order of execution; NaN for a network without scores."""
        found = {_seed(name): list(values.values()) for name, values in self.scores.items() if _kind(name) == kind}
        if not found:
            raise ValueError(f"there are no scores of {kind} networks.")
        table = np.full((1 + max(found), len(next(iter(found.values())))), np.nan)
        for seed, values in found.items():
            table[seed] = values
        return table

    def rank_correlation(self, kind: str) -> tuple[Interval, list[float]]:
        """Spearman correlation, over the layers, of mean affinity score and mean penalty of G_ReLU (closed form).

        The unit is the layer, and layers of a stage (as many channels, as large maps) are a family: the interval leaves
        out a stage at a time. Then the correlations within the stages.
        """
        layers = self.layers(kind)
        costs = np.array([self.penalty(kind, layer, "g_relu").mean for layer in layers])
        scores, stages = np.nanmean(self.layer_scores(kind), axis=0), np.array([_stage(layer) for layer in layers])

        def statistic(kept: np.ndarray) -> float:
            return float(spearmanr(scores[kept], costs[kept]).statistic)

        found = leaving_out(statistic, len(layers), stages)
        within = [statistic(np.flatnonzero(stages == stage)) for stage in np.unique(stages)]
        return Interval(*np.clip(found, -1, 1).tolist()), within


def _kind(name: str) -> str:
    """``"myrtle"`` of ``"myrtle_0"``."""
    return name.rpartition("_")[0]


def _stage(layer: str) -> int:
    """Which of the three stages of ResNet20 an activation lies in; the first, before all blocks, in the first."""
    block = layer.partition(".")[0].removeprefix("block")
    return (int(block) - 1) // 3 if block.isdecimal() else 0


def _seed(name: str) -> int:
    return int(name.rpartition("_")[2])


def load_stitching(path: str | os.PathLike[str]) -> StitchingStudy:
    """What ``book/data/stitching/make.py`` stored; raises as :func:`affscore_book.kit.stored.read_results`."""
    return read_results(path, _study, "book/data/stitching/make.py")


def _study(content: dict[str, Any]) -> StitchingStudy:
    accuracies = {name: about["accuracy"] for name, about in content["networks"].items()}
    records: list[dict[str, Any]] = []
    scores: dict[str, dict[str, float]] = {}
    for task, found in content["tasks"].items():
        for record in found:
            if "scores" in record:
                values = [math.nan if value is None else value for value in record["scores"]]
                scores.setdefault(record["network"], {})[record["layer"]] = float(np.mean(values))
            else:
                records.append({"task": task.partition(":")[0]} | record)
    return StitchingStudy(content["settings"], accuracies, records, scores)


def shortcut_share(study: StitchingStudy, layers: list[str], second: str = "shortcut too") -> Interval:
    """The share of the penalty of G_ReLU (closed form) inside blocks that a second stitch takes away.

    ``second`` is ``"shortcut too"``, or a control: ``"shortcut at random"``, ``"block's end too"``.
    """
    alone, both = (study.tables("resnet20", layers, "g_relu", fit) for fit in ("closed form", f"closed form, {second}"))

    def share(kept: np.ndarray) -> float:
        left, all_of_it = (np.nanmean(tables[:, kept[:, None], kept]) for tables in (both, alone))
        return float(1 - left / all_of_it)

    return leaving_out(share, alone.shape[-1])
