"""What a trained signature does when the batch, the seed, the pictures or the task of the training change."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from affscore.suite.comparable import sequence
from affscore.suite.distances import dtw
from affscore.suite.tables import Table
from affscore_book.decade.claims import STABLE, architectures
from affscore_book.decade.collection import END, SCRIPT, Trained
from affscore_book.decade.variance import profile
from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import leaving_out, over_pairs, student_interval
from affscore_book.kit.stored import read_results

__all__ = [
    "batch_claims", "data_claims", "load_further", "map_claims", "map_table", "on_other_pictures",
    "purity", "seed_claims", "task_claims", "task_distances", "taught",
]  # fmt: skip

Decade = Mapping[str, Mapping[int, Trained]]
#: The residual network of :mod:`affscore_book.decade.pretext`.
TAUGHT = "resnet18"
#: Pictures of things, as those of the training are.
KNOWN = ("digits", "photographs")


def load_further(folder: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """What ``make.py further`` stored, by network: ``sizes`` (by batch size, ``mean`` and ``std`` of the scores, and
    ``unshrunk``, the mean without shrinkage) and ``pictures`` (by kind, scores (batches, calls)), as arrays; ``maps``
    of networks that have it (by module, the score by the positions along a side, ``"all"`` for the flattened map).

    Raises FileNotFoundError if there is nothing, ValueError if a file is damaged.
    """
    files = sorted((Path(folder) / "further").glob("*.json"))
    if not files:
        raise FileNotFoundError(f"folder: {folder} has no further measures; {SCRIPT} writes them.")

    def build(content: Mapping[str, Any]) -> dict[str, Any]:
        sizes = {int(size): {key: np.array(values, dtype=np.float64) for key, values in both.items()}
                 for size, both in content["sizes"].items()}  # fmt: skip
        pictures = {kind: np.array(rows, dtype=np.float64) for kind, rows in content["pictures"].items()}
        return {"sizes": sizes, "pictures": pictures, "maps": content.get("maps", {})}

    return {file.stem: read_results(file, build, SCRIPT) for file in files}


def _rms(one: np.ndarray, other: np.ndarray) -> float:
    return math.sqrt(float(np.nanmean((one - other) ** 2)))


def batch_claims(further: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Figure 10, left, and the titles of Figure 12, over six networks; the source speaks of a VGG16."""
    changes, scatter = [], []
    for found in further.values():
        sizes = found["sizes"]
        changes.append(_rms(sizes[min(sizes)]["mean"], sizes[max(sizes)]["mean"]))
        scatter.append(float(np.nanmean(sizes[512]["std"])))
    rows = []
    for what, source, values in (
        ("change of the scores from 1024 to 128 images", "CVPR 2025, Figure 10", changes),
        ("std over batches of 512, mean over the calls", "slides, titles of the histograms", scatter),
    ):
        mean, *ends = student_interval(values)
        rows.append(Claim(what, source, "robust" if "change" in what else "0.005 to 0.020", mean,
                          (-math.inf, STABLE), interval=(ends[0], ends[1])))  # fmt: skip
    return rows


def map_table(further: Mapping[str, Mapping[str, Any]]) -> Table:
    """Scores of feature maps averaged to 1 x 1, 2 x 2 and 4 x 4 positions, and flattened: a row a network, means over
    its maps of 4 x 4 positions or more."""
    rows = []
    for name, found in further.items():
        if kept := [row for row in found["maps"].values() if "4" in row]:
            heads = {"1 x 1": "1", "2 x 2": "2", "4 x 4": "4", "flattened": "all"}
            means = {head: float(np.mean([row[side] for row in kept])) for head, side in heads.items()}
            rows.append({"network": name, "maps": len(kept)} | means)
    return Table.from_rows(rows, digits=2)


def map_claims(further: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Figure 9: averaging a map to one number a channel, and what shrinkage does from 1,024 to 128 images.

    The rule was set after a look at AlexNet and VGG11.
    """
    averaged = [
        math.sqrt(float(np.mean([(row["all"] - row["1"]) ** 2 for row in found["maps"].values()])))
        for found in further.values() if found["maps"]
    ]  # fmt: skip
    gains = []
    for found in further.values():
        least, most = (found["sizes"][end(found["sizes"])] for end in (min, max))
        gains.append(_rms(least["unshrunk"], most["unshrunk"]) - _rms(least["mean"], most["mean"]))
    rows = []
    for what, theirs, values, accept in (
        ("flattened maps less averaged ones, root mean square", "the same values", averaged, (-math.inf, STABLE)),
        ("change from 1024 to 128 images: without shrinkage less with", "above 0", gains, (0, math.inf)),
    ):
        mean, *ends = student_interval(values)
        rows.append(Claim(what, "CVPR 2025, Figure 9", theirs, mean, accept, interval=(ends[0], ends[1]), seen=True))
    return rows


def seed_claims(decade: Decade, networks: tuple[str, ...] = ("vgg11_bn", "resnet18")) -> list[Claim]:
    """Figure 10, right: nine seeds. Two that scatter by .02 each differ by the root of 2 times that."""
    rows = []
    for name in networks:
        scores = [each.signatures[END, "spatial"].mean for each in decade[name].values()]
        table = squareform(pdist(np.array(scores), lambda one, other: np.nanmean((one - other) ** 2)))
        np.fill_diagonal(table, np.nan)
        mean, low, high = (math.sqrt(max(end, 0.0)) for end in over_pairs(table))
        rows.append(Claim(f"between two of {len(scores)} seeds, {name}", "CVPR 2025, Figure 10", "robust", mean,
                          (-math.inf, math.sqrt(2) * STABLE), interval=(low, high)))  # fmt: skip
    return rows


def data_claims(further: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Appendix F: signatures on other pictures lie nearer than on noise. DTW, each from the validation images'."""

    def moved(found: Mapping[str, Any], kind: str) -> float:
        own, other = found["sizes"][512]["mean"], np.nanmean(found["pictures"][kind], axis=0)
        return dtw(own[~np.isnan(own)], other[~np.isnan(other)])

    rows = []
    for kind in (*KNOWN, "shuffled"):
        found = student_interval([moved(each, kind) - moved(each, "noise") for each in further.values()])
        source, kind_of = ("ours, of Figure 18", "own") if kind == "shuffled" else ("CVPR 2025, Figure 18", "source")
        rows.append(Claim(f"distance of the signature: {kind} less noise", source, "below 0", found.mean,
                          (-math.inf, 0), interval=found[1:], kind=kind_of))  # fmt: skip
    return rows


def on_other_pictures(further: Mapping[str, Mapping[str, Any]]) -> Callable[[Trained], list[np.ndarray]]:
    """For :func:`affscore_book.decade.variance.difference_table`: the signatures of a network on validation images, on
    digits and on photographs; none of a network that ``further`` does not have."""

    def signatures(network: Trained) -> list[np.ndarray]:
        found = further.get(network.name)
        if found is None:
            return []
        return [found["sizes"][512]["mean"], *(np.nanmean(found["pictures"][kind], axis=0) for kind in KNOWN)]

    return signatures


def taught(decade: Decade) -> dict[str, list[Trained]]:
    """The residual networks by the task that they were trained for; the one with labels is ``"labels"``.

    Of the last there are as many as of the others, the first seeds.
    """
    found = {name.partition(" ")[2] or "labels": list(seeds.values()) for name, seeds in decade.items()
             if name.partition(" ")[0] == TAUGHT}  # fmt: skip
    least = min(map(len, found.values()))
    return {task: networks[:least] for task, networks in found.items()}


def task_distances(decade: Decade) -> tuple[list[str], np.ndarray]:
    """What each of the :func:`taught` networks was trained for, and the DTW distances of their signatures, (n, n)."""
    groups = taught(decade)
    labels = [task for task, networks in groups.items() for _ in networks]
    scores = [sequence(each.signatures[END, "spatial"]) for networks in groups.values() for each in networks]
    return labels, np.array([[dtw(one, other) for other in scores] for one in scores])


def purity(distances: np.ndarray, labels: list[str]) -> float:
    """Average linkage cut into as many clusters as there are labels: the part that has its cluster's most frequent one.

    >>> purity(np.array([[0, 1, 9.0], [1, 0, 9], [9, 9, 0]]), ["a", "a", "b"])
    1.0
    """
    clusters = fcluster(linkage(squareform(distances), "average"), len(set(labels)), criterion="maxclust")
    counts = [
        np.unique(np.array(labels)[clusters == cluster], return_counts=True)[1].max() for cluster in set(clusters)
    ]
    return float(sum(counts) / len(labels))


def _taught_otherwise(groups: Mapping[str, list[Trained]]) -> Claim:
    """Appendix G: how far a signature learned without labels is from one learned with them, one number a task."""
    scores = {task: [each.signatures[END, "spatial"].mean for each in networks] for task, networks in groups.items()}
    supervised = scores.pop("labels")
    means = [np.mean([_rms(one, other) for one in supervised for other in rows]) for rows in scores.values()]
    found = student_interval(means)
    return Claim("between labels and another task, mean over the tasks", "CVPR 2025, Appendix G", "almost unchanged",
                 found.mean, (-math.inf, math.sqrt(2) * STABLE), interval=found[1:])  # fmt: skip


def _task_or_architecture(groups: Mapping[str, list[Trained]], decade: Decade) -> Claim:
    """Appendix G: from the network taught with labels, is another task nearer than another architecture?

    Signatures are compared at even places; a task is the mean over the tasks, and each architecture gives a number.
    The rule was set when :func:`affscore_book.decade.variance.difference_table` and some of the tasks were known.
    """
    own, *others = (
        [profile(sequence(each.signatures[END, "spatial"])) for each in networks] for networks in groups.values()
    )
    to_task = np.mean([_rms(one, other) for one in own for rows in others for other in rows])
    foreign = [seeds for name, seeds in architectures(decade).items() if name != TAUGHT]
    gaps = [
        to_task - np.mean([_rms(one, profile(sequence(each.signatures[END, "spatial"])))
                           for one in own for each in seeds.values()])
        for seeds in foreign
    ]  # fmt: skip
    return Claim.over(
        "from labels to another task, less to another architecture", "ours, of Appendix G",
        "below 0", student_interval(gaps), (-math.inf, 0), kind="own", seen=True,
    )  # fmt: skip


def task_claims(decade: Decade, draws: int = 1000) -> list[Claim]:
    """Figure 19, Table 3 and Appendix G: one architecture, five tasks. Does a signature tell them? Is the level one?"""
    groups = taught(decade)
    labels, table = task_distances(decade)
    scores = [sequence(each.signatures[END, "spatial"]) for networks in groups.values() for each in networks]
    own, random = purity(table, labels), np.random.default_rng(0)
    chance = float(np.mean([purity(table, random.permutation(labels).tolist()) >= own for _ in range(draws)]))
    means = np.array([values.mean() for values in scores])
    spread = leaving_out(lambda kept: float(means[kept].std(ddof=1)), len(means))
    return [
        Claim(f"purity of {len(groups)} clusters of {len(labels)} networks", "CVPR 2025, Figure 19", "correct",
              own, (0.9, 1)),
        Claim("part of shuffled tasks with such a purity", "ours, of Figure 19", "at most 0.05", chance, (0, 0.05),
              kind="own"),
        Claim(f"std of the mean scores over the networks (mean {means.mean():.2f})", "CVPR 2025, Table 3",
              "0.04 (mean 0.76)", spread.mean, (0, 0.04), interval=spread[1:]),
        _taught_otherwise(groups),
        _task_or_architecture(groups, decade),
    ]  # fmt: skip
