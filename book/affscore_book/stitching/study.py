"""The stored stitched networks of the book: penalties over pairs of networks, with intervals.

Pairs that share a network are not independent, so intervals are those of
:func:`affscore_book.kit.statistics.network_bootstrap`.
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

from affscore_book.kit.checking import one_of
from affscore_book.kit.statistics import Interval, network_bootstrap
from affscore_book.kit.stored import read_results
from affscore_book.stitching.stitched import penalty

__all__ = ["StitchingStudy", "load_stitching"]


@dataclass(frozen=True, eq=False)
class StitchingStudy:
    """The stored results of ``book/data/stitching/make.py``.

    Attributes
    ----------
    settings
        Of the run.
    accuracies
        Of each network, on the same test images as its stitches.
    records
        One mapping for each stitched network: ``task``, ``bottom``, ``top``, ``layer``, ``stitch``, ``fit``, and the
        accuracies ``kept`` and ``reestimated`` with either batch-norm statistics; some have more.
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
        """How many ordered pairs of networks each part of the study has: ``{"myrtle, closed": 12, ...}``."""
        found = {
            (f"{_kind(record['bottom'])}, {record['task']}", record["bottom"], record["top"])
            for record in self.records
            if record["task"] != "planted"
        }
        return dict(sorted(Counter(part for part, _, _ in found).items()))

    def layers(self, kind: str) -> list[str]:
        """The activations of a kind of network (``"myrtle"``, ``"resnet20"``, ...) that have records, in order."""
        found = (record["layer"] for record in self.records if _kind(record["bottom"]) == kind)
        return list(dict.fromkeys(found))

    def table(
        self, kind: str, layer: str, stitch: str, fit: str = "closed form", *, norm: str = "reestimated", **more: Any
    ) -> np.ndarray:
        """Penalties in accuracy points, (networks, networks) with bottoms as rows; NaN for pairs without a record.

        ``norm`` is ``"kept"`` or ``"reestimated"``, ``more`` further conditions, such as ``alpha=0.1``.

        Raises ValueError if there is no such record.
        """
        one_of("norm", norm, ("kept", "reestimated"))
        wanted = {"layer": layer, "stitch": stitch, "fit": fit} | more
        values = {}
        for record in self.records:
            one, other = record["bottom"], record["top"]
            if _kind(one) != kind or _kind(other) != kind or any(record.get(k) != v for k, v in wanted.items()):
                continue
            if not more and ("alpha" in record or "strength" in record):
                continue
            value = penalty(self.accuracies[one], self.accuracies[other], record[norm])
            values[_seed(one), _seed(other)] = value
        if not values:
            raise ValueError(f"there is no record of {kind} networks with {wanted}.")
        size = 1 + max(max(pair) for pair in values)
        table = np.full((size, size), np.nan)
        for pair, value in values.items():
            table[pair] = value
        return table

    def penalty(self, kind: str, layer: str, stitch: str, fit: str = "closed form", **more: Any) -> Interval:
        """Mean and interval of :meth:`table`."""
        return network_bootstrap(self.table(kind, layer, stitch, fit, **more))

    def share_below(
        self,
        kind: str,
        one: str,
        other: str,
        layers: Iterable[str] | None = None,
        *,
        fit: str = "closed form",
        norm: str = "reestimated",
    ) -> float:
        """In what share of pairs and layers stitch ``one`` has a lower penalty than ``other``, 0 to 1.

        ``fit`` holds for both. ``norm`` holds for ``other``; ``one`` has its batch-norm statistics measured anew.
        """
        wins, count = 0, 0
        for layer in self.layers(kind) if layers is None else layers:
            ours, theirs = self.table(kind, layer, one, fit), self.table(kind, layer, other, fit, norm=norm)
            wins += int((ours < theirs).sum())  # a comparison with NaN is False
            count += int(np.isfinite(ours + theirs).sum())
        return wins / count

    def mean_penalty(self, kind: str, layers: Iterable[str], stitch: str, **more: Any) -> float:
        """Mean over layers of the mean penalty over pairs."""
        return float(np.mean([self.penalty(kind, layer, stitch, **more).mean for layer in layers]))

    def planted(self, layer: str, fit: str) -> Interval:
        """Penalty between networks and themselves acted on by known elements of G_ReLU: mean, lowest and highest."""
        values = [
            penalty(self.accuracies[record["bottom"]], self.accuracies[record["bottom"]], record["reestimated"])
            for record in self.records
            if record["task"] == "planted" and record["layer"] == layer and record["fit"] == fit
        ]
        return Interval(float(np.mean(values)), min(values), max(values))

    def layer_scores(self, kind: str) -> np.ndarray:
        """Affinity scores, (networks, activations) in order of execution; NaN for a network without scores."""
        found = {_seed(name): list(values.values()) for name, values in self.scores.items() if _kind(name) == kind}
        if not found:
            raise ValueError(f"there are no scores of {kind} networks.")
        table = np.full((1 + max(found), len(next(iter(found.values())))), np.nan)
        for seed, values in found.items():
            table[seed] = values
        return table

    def rank_correlation(self, kind: str) -> Interval:
        """Spearman correlation, over the layers, of mean affinity score and mean penalty of G_ReLU (closed form).

        The 95 % interval draws networks, with their scores and their pairs, as :func:`network_bootstrap` does.
        """
        tables = np.stack([self.table(kind, layer, "g_relu") for layer in self.layers(kind)])  # (layers, n, n)
        known = self.layer_scores(kind)[: tables.shape[1]]
        scores = np.pad(known, ((0, tables.shape[1] - len(known)), (0, 0)), constant_values=np.nan)
        both = [np.isfinite(scores).all(1)[:, None], np.isfinite(tables).all(0)]
        generator, n, found = np.random.default_rng(0), len(scores), []
        for draw in range(1001):
            counts = np.ones(n) if draw == 0 else generator.multinomial(n, np.full(n, 1 / n))
            rows, pairs = counts[:, None] * both[0], np.outer(counts, counts) * both[1]
            if not rows.any() or not pairs.any():
                continue
            score = (rows * np.nan_to_num(scores)).sum(0) / rows.sum()
            value = (pairs * np.nan_to_num(tables)).sum((1, 2)) / pairs.sum()
            found.append(spearmanr(score, value).statistic)
        return Interval(float(found[0]), *map(float, np.quantile(found[1:], [0.025, 0.975])))


def _kind(name: str) -> str:
    """``"myrtle"`` of ``"myrtle_0"``."""
    return name.rpartition("_")[0]


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
