"""Tests of the change of a trained signature with the batch, the seed, the pictures and the task of the training.

``claims.toml`` has the sentences and the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from affscore_book.decade.collection import KNOWN, Decade, Trained, architectures
from affscore_book.decade.equal import Equal
from affscore_book.kit.sequences import dtw
from affscore_book.kit.statistics import Interval, leaving_out, over_pairs, student_interval
from affscore_book.kit.tables import Table
from affscore_study.decade.claims import DISTANCES, beyond_chance, cut
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "batch_claims", "data_claims", "map_claims", "map_table", "nearest_architectures",
    "purity", "retrieval_claims", "seed_claims", "spread_of_tasks_claims", "task_claims",
    "task_distances", "taught",
]  # fmt: skip

#: For each network, the further measurements that :func:`load_further` returns.
Further = Mapping[str, Mapping[str, Any]]
#: The residual network of :mod:`affscore_study.decade.pretext`.
TAUGHT = "resnet18"
#: The number of seeds of each architecture among which the nearest network is searched.
NEAREST = 3


def _rms(one: np.ndarray, other: np.ndarray) -> float:
    return math.sqrt(float(np.nanmean((one - other) ** 2)))


def _shrinking(found: Mapping[str, Any], which: str) -> float:
    """The root mean squared change of a network's scores from its largest batches to its smallest."""
    sizes = found["sizes"]
    return _rms(sizes[min(sizes)][which], sizes[max(sizes)][which])


def batch_claims(further: Further) -> list[Claim]:
    """Tests of Figure 10 (left) and the titles of Figure 12 over six networks; the source uses a VGG16."""
    numbers = {
        "change": lambda found: _shrinking(found, "mean"),
        "std": lambda found: float(np.nanmean(found["sizes"][512]["std"])),
    }
    rows = {}
    for row, of in numbers.items():
        values = {name: of(found) for name, found in further.items()}
        name = max(values, key=lambda name: values[name])
        words = {"largest": f"{values[name]:.4f}", "network": name}
        rows[row] = Worded(student_interval(list(values.values())), words)
    return judged("decade", "batches", rows)


def map_table(further: Further, equal: Mapping[str, Equal]) -> Table:
    """A table of the scores of feature maps with a row for each network, as means over maps of 4 x 4 positions or more.

    Columns: network; maps, their number; the scores of one random position of each channel, of averages to 1 x 1, 2 x 2
    and 4 x 4 positions, and of the flattened maps. The first two scores are from one number for each channel.
    """
    rows = []
    for name, found in further.items():
        if kept := {key: row for key, row in found["maps"].items() if "4" in row}:
            one = float(np.mean([equal[name].positions[key] for key in kept]))
            heads = {"average": "1", "2 x 2": "2", "4 x 4": "4", "flattened": "all"}
            means = {head: float(np.mean([row[side] for row in kept.values()])) for head, side in heads.items()}
            rows.append({"network": name, "maps": len(kept), "one position": one} | means)
    return Table.from_rows(rows, digits=2)


def map_claims(further: Further, equal: Mapping[str, Equal]) -> list[Claim]:
    """Tests of Figure 9: the effects of averaging a map to one number a channel, and of shrinkage as batches shrink."""

    def beside(other: Callable[[str, str], float]) -> list[float]:
        """For each network, the root mean squared difference over its maps of another score and the averages' score."""
        return [
            math.sqrt(float(np.mean([(other(name, key) - row["1"]) ** 2 for key, row in found["maps"].items()])))
            for name, found in further.items() if found["maps"]
        ]  # fmt: skip

    flattened = beside(lambda name, key: further[name]["maps"][key]["all"])
    even = beside(lambda name, key: equal[name].positions[key])
    gains = [_shrinking(found, "unshrunk") - _shrinking(found, "mean") for found in further.values()]
    values = {"flattened": flattened, "one_position": even, "shrinkage": gains}
    return judged("decade", "maps", {row: student_interval(each) for row, each in values.items()})


def seed_claims(decade: Decade) -> list[Claim]:
    """Tests of Figure 10 (right): the difference between signatures of two seeds."""
    found = {}
    for name in ("vgg11_bn", "resnet18"):
        scores = [each.end.mean for each in decade[name].values()]
        table = squareform(pdist(np.array(scores), lambda one, other: np.nanmean((one - other) ** 2)))
        np.fill_diagonal(table, np.nan)
        apart = Interval(*(math.sqrt(max(end, 0.0)) for end in over_pairs(table)))
        found[name] = Worded(apart, {"seeds": str(len(scores))})
    return judged("decade", "seeds", {"between": found})


def data_claims(further: Further) -> list[Claim]:
    """Tests whether signatures on other pictures are nearer to the validation images' than those on noise (Appendix F).

    The distance is DTW.
    """

    def moved(found: Mapping[str, Any], kind: str) -> float:
        own, other = found["sizes"][512]["mean"], np.nanmean(found["pictures"][kind], axis=0)
        return dtw(own[~np.isnan(own)], other[~np.isnan(other)])

    found = {
        kind: student_interval([moved(each, kind) - moved(each, "noise") for each in further.values()])
        for kind in (*KNOWN, "shuffled")
    }
    return judged("decade", "pictures", {"nearer": found})


def taught(decade: Decade) -> dict[str, list[Trained]]:
    """The residual networks by the task of their training; the task with labels is ``"labels"``.

    Every task has as many networks as the one with the fewest, the first seeds.
    """
    found = {name.partition(" ")[2] or "labels": list(seeds.values()) for name, seeds in decade.items()
             if name.partition(" ")[0] == TAUGHT}  # fmt: skip
    least = min(map(len, found.values()))
    return {task: networks[:least] for task, networks in found.items()}


def _with_tasks(decade: Decade) -> tuple[list[str], list[Trained]]:
    """The tasks of the :func:`taught` networks, and the networks."""
    pairs = [(task, network) for task, networks in taught(decade).items() for network in networks]
    return [task for task, _ in pairs], [network for _, network in pairs]


def task_distances(decade: Decade) -> tuple[list[str], np.ndarray]:
    """The task of each of the :func:`taught` networks, and the DTW distances of their signatures, shape (n, n)."""
    labels, networks = _with_tasks(decade)
    scores = [each.scores for each in networks]
    return labels, np.array([[dtw(one, other) for other in scores] for one in scores])


def purity(distances: np.ndarray, labels: list[str]) -> float:
    """The fraction of items that have the most frequent label of their cluster.

    The clusters come from average linkage of the ``distances`` (n, n), cut into as many clusters as there are labels.

    >>> purity(np.array([[0, 1, 9.0], [1, 0, 9], [9, 9, 0]]), ["a", "a", "b"])
    1.0
    """
    clusters = fcluster(linkage(squareform(distances), "average"), len(set(labels)), criterion="maxclust")
    counts = [
        np.unique(np.array(labels)[clusters == cluster], return_counts=True)[1].max() for cluster in set(clusters)
    ]
    return float(sum(counts) / len(labels))


def _taught_otherwise(groups: Mapping[str, list[Trained]]) -> Interval:
    """The distance between signatures learned without labels and with labels, beyond that of seeds (Appendix G).

    Each task gives the mean distance between the two kinds minus that between two seeds of one kind.
    """
    scores = {task: [each.end.mean for each in networks] for task, networks in groups.items()}
    seeds = {task: float(np.mean([_rms(*pair) for pair in combinations(rows, 2)])) for task, rows in scores.items()}
    supervised = scores.pop("labels")
    gaps = [
        float(np.mean([_rms(one, other) for one in supervised for other in rows])) - (seeds["labels"] + seeds[task]) / 2
        for task, rows in scores.items()
    ]
    return student_interval(gaps)


def nearest_architectures(decade: Decade, distance: Callable[[Trained, Trained], float]) -> dict[str, list[str]]:
    """For each task, the architecture of the network taught with labels that is nearest to each of the task's networks.

    The search is among the first :data:`NEAREST` seeds of each architecture. ``"labels"`` has the nearest architectures
    of these networks themselves, in the order of the architectures; each is compared with all others.
    """
    known = [each for networks in architectures(decade).values() for each in list(networks.values())[:NEAREST]]

    def nearest(one: Trained) -> str:
        return min((each for each in known if each is not one), key=lambda each: distance(one, each)).name

    groups = {task: networks for task, networks in taught(decade).items() if task != "labels"}
    found = {task: [nearest(each) for each in networks] for task, networks in groups.items()}
    return found | {"labels": [nearest(each) for each in known]}


def retrieval_claims(decade: Decade) -> list[Claim]:
    """Tests whether a signature still identifies its architecture after training on other tasks.

    Its nearest signature of a network trained with labels is then of ResNet18. Each task gives one number.
    """
    retrieved = {}
    known = [each.name for networks in architectures(decade).values() for each in list(networks.values())[:NEAREST]]
    for convention, distance in DISTANCES.items():
        found = nearest_architectures(decade, distance)
        labels = float(np.mean([one == own for one, own in zip(found.pop("labels"), known, strict=True)]))
        shares = [float(np.mean([name == TAUGHT for name in names])) for names in found.values()]
        share = cut(student_interval(shares), 0.0)
        retrieved[convention] = Worded(share, {"labels": f"{labels:.2f}"})
    return judged("decade", "retrieval", {"nearest": retrieved})


def spread_of_tasks_claims(decade: Decade) -> list[Claim]:
    """Tests whether mean scores vary as little over the tasks as in the source, and less than other measures (Table 3).

    The intervals leave out one task at a time.
    """
    labels, networks = _with_tasks(decade)

    def mean(measure: str) -> np.ndarray:
        return np.array([np.nanmean(each.end.companions[measure]) for each in networks])

    def relative(values: np.ndarray) -> float:
        return float(values.std(ddof=1) / abs(values.mean()))

    level = np.array([np.nanmean(each.end.mean) for each in networks])
    others = {
        "linear CKA": mean("cka"), "norm": mean("norm"),
        "change in sparsity": mean("sparsity_after") - mean("sparsity_before"),
        "change in entropy": mean("entropy_change"),
    }  # fmt: skip
    spread = leaving_out(lambda kept: float(level[kept].std(ddof=1)), len(level), labels)
    found = {}
    for measure, values in others.items():

        def beyond(kept: np.ndarray, values: np.ndarray = values) -> float:
            return relative(values[kept]) - relative(level[kept])

        found[measure] = leaving_out(beyond, len(level), labels)
    score = Worded(spread, {"level": f"{level.mean():.2f}"})
    return judged("decade", "spread_of_tasks", {"score": score, "others": found})


def task_claims(decade: Decade, draws: int = 1000) -> list[Claim]:
    """Tests whether signatures of one architecture distinguish five tasks (Figure 19 and Appendix G)."""
    groups = taught(decade)
    labels, table = task_distances(decade)
    own, random = purity(table, labels), np.random.default_rng(0)

    def left(kept: np.ndarray) -> float:
        return purity(table[np.ix_(kept, kept)], [labels[row] for row in kept])

    found = leaving_out(left, len(labels), labels)
    chance = float(np.mean([purity(table, random.permutation(labels).tolist()) >= own for _ in range(draws)]))
    measured = {
        # If the purity stays the same when any task is left out, there is no interval and the number alone is judged.
        "purity": own if math.isnan(found.low) else cut(found, 0.0),
        "chance": beyond_chance(chance),
        "otherwise": _taught_otherwise(groups),
    }
    return judged("decade", "tasks", measured, clusters=str(len(groups)), networks=str(len(labels)))
