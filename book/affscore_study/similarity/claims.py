"""What the source claims about depth, width and single units, beside what the stored networks say: one list a table.

The networks are small and trained on Fashion-MNIST. Intervals are over networks: the jackknife where pairs share them
(:meth:`affscore_book.similarity.study.SimilarityStudy.over_networks`), Student's for one kind of network, and Welch's
for the difference of two. Similarities are not affinity scores, so the book's floor for those is not theirs.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, sections 5 and 6, appendices D.8 and F ("Symmetries").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import spearmanr

from affscore_book.kit.statistics import Interval, leaving_out, student_interval
from affscore_book.similarity.study import PAPER_TABLE_2, PAPER_TABLE_4, SimilarityStudy
from affscore_study.kit.claims import Claim, side_by_side

__all__ = ["kept_signs", "other_widths", "same_depth", "single_units", "trained_pairs"]

INF = math.inf
MORE = (0.0, INF)
WITH, WITHOUT = "resnet20", "resnet20_without_last_relu"
FASTER = "fall of G_ReLU-CKA − fall of linear CKA, first to last activation"
DECAY = '"a much more significant decay with network depth"'
#: The paper's code centres no features for Procrustes; the null is what a similarity has to be above.
READINGS = ("not centred, as the paper's code", "centred, above the null")


def decay(study: SimilarityStudy, kind: str, kernel: str) -> Interval:
    """CKA of the same layer in two networks: at the first activation minus at the last."""
    along = study.diagonal(kind, kernel)
    return study.over_networks(along[:, 0] - along[:, -1])


def least_step(study: SimilarityStudy, kind: str, kernel: str) -> Interval:
    """The least of the falls of CKA from one activation to the next: below 0 where it rises somewhere."""
    along = study.diagonal(kind, kernel)
    falls = along[:, :-1] - along[:, 1:]
    return leaving_out(lambda kept: float(falls[study.pairs_of(kept)].mean(0).min()), study.settings["seeds"])


def decays_faster(study: SimilarityStudy, kind: str) -> Interval:
    """The decay of the max kernel's CKA minus that of linear CKA."""
    linear, relu = (study.diagonal(kind, kernel) for kernel in ("linear", "max"))
    return study.over_networks((relu[:, 0] - relu[:, -1]) - (linear[:, 0] - linear[:, -1]))


def kept_signs() -> int:
    """Of ten signs in the source's Table 2, how many are the same in its Table 4.

    Four are of orthogonal minus G_ReLU, a layer each, and three for each group of a layer minus the one before.
    """
    signs = []
    for table in (PAPER_TABLE_2, PAPER_TABLE_4):
        relu, orthogonal = (np.array(table[name]) for name in ("relu_uncentred", "orthogonal_uncentred"))
        signs.append(np.sign([*(orthogonal - relu), *np.diff(relu), *np.diff(orthogonal)]))
    return int((signs[0] == signs[1]).sum())


def _both_readings(
    study: SimilarityStudy, kind: str, differences: dict[str, tuple[str, Any]], source: str, **more: Any
) -> list[Claim]:
    """Claims on Procrustes that a difference is above 0, each by the paper's measure and by ours.

    ``differences``: what is measured -> what the source says, and a function of the similarities (pairs, layers) of
    G_ReLU and of the orthogonal group that gives one value a pair.
    """
    by_code = [study.procrustes(kind, f"{group}_uncentred")[..., 0] for group in ("relu", "orthogonal")]
    heights = [study.heights(kind, group) for group in ("relu", "orthogonal")]
    rows = []
    for what, (theirs, difference) in differences.items():
        claims = {
            reading: Claim.over(what, source, theirs, study.over_networks(difference(*values)), MORE, **more)
            for reading, values in zip(READINGS, (by_code, heights), strict=True)
        }
        rows += side_by_side("the measure", claims)
    return rows


def trained_pairs(study: SimilarityStudy) -> list[Claim]:
    """Table 2 and Figures 2, 5 and 9: falls, rises and orders along depth; the first is shown."""
    seen: dict[str, Any] = {"seen": True}
    falls, rises = '"decreasing as one progresses through the network"', '"to increase again in the last layer"'
    section_5 = {
        "orthogonal − G_ReLU, mean of layers": ('"less similarity in terms of" G_ReLU', lambda r, o: (o - r).mean(1)),
        "G_ReLU, relu1 − relu3": (falls, lambda r, o: r[:, 0] - r[:, 2]),
        "orthogonal, relu1 − relu3": (falls, lambda r, o: o[:, 0] - o[:, 2]),
        "G_ReLU, relu4 − relu3": (rises, lambda r, o: r[:, 3] - r[:, 2]),
        "orthogonal, relu4 − relu3": (rises, lambda r, o: o[:, 3] - o[:, 2]),
    }
    inside = [
        Claim.over(f"ResNet20, {name} CKA: outside blocks − inside", "Symmetries, Figure 2", '"less similar" inside',
                   _outside(study, study.diagonal("resnet20", kernel)), MORE, **seen)
        for kernel, name in (("linear", "linear"), ("max", "G_ReLU"))
    ]  # fmt: skip
    fastest = [
        Claim.over(f"{name}: {FASTER}", f"Symmetries, {figure}", DECAY, decays_faster(study, kind), (0.05, INF), **seen)
        for kind, name, figure in (("resnet20", "ResNet20", "Figure 2"), ("myrtle", "Myrtle", "Figure 5"))
    ]  # fmt: skip
    numbers = ", ".join(f"{value:.4f}".lstrip("0") for values in PAPER_TABLE_2.values() for value in values)
    not_run = Claim("the eight numbers of Table 2", "Symmetries, Table 2", numbers, None, None,
                    needs="CIFAR-10, the published width, 50 epochs, and the paper's null")  # fmt: skip
    rows = [*inside, *fastest, not_run, *_both_readings(study, "myrtle", section_5, "Symmetries, section 5", **seen)]
    return [*rows, *_figure_9(study)]


def _figure_9(study: SimilarityStudy) -> list[Claim]:
    """Procrustes of ResNet20s: do the two groups order the layers alike, and are layers inside blocks lower?"""
    values = {group: study.procrustes("resnet20", group)[..., 0] for group in ("relu", "orthogonal")}
    heights = {group: study.heights("resnet20", group) for group in values}

    def alike(found: dict[str, np.ndarray]) -> Interval:
        def statistic(kept: np.ndarray) -> float:
            return float(spearmanr(*(of_group[study.pairs_of(kept)].mean(0) for of_group in found.values())).statistic)

        return _cut(leaving_out(statistic, study.settings["seeds"]), -1)

    what = "ResNet20: rank correlation of G_ReLU and orthogonal Procrustes over 19 activations"
    rows = side_by_side("the null", {
        reading: Claim.over(what, "Symmetries, Figure 9", '"qualitatively quite similar"', alike(found), (0.5, INF),
                            seen=True)
        for reading, found in (("raw", values), ("above the null", heights))
    })  # fmt: skip
    for group, name in (("relu", "G_ReLU"), ("orthogonal", "orthogonal")):
        what = f"ResNet20, {name} Procrustes: outside blocks − inside"
        readings = {
            reading: Claim.over(what, "ours, of Figure 9", "above 0", _outside(study, found[group]), MORE, kind="own",
                                seen=True)
            for reading, found in (("raw", values), ("above the null", heights))
        }  # fmt: skip
        rows += side_by_side("the null", readings)
    return rows


def _outside(study: SimilarityStudy, values: np.ndarray) -> Interval:
    return study.over_networks(study.outside_minus_inside("resnet20", values))


def _cut(found: Interval, low: float, high: float = 1.0) -> Interval:
    """An interval of a number that has ends of its own, such as a correlation."""
    return Interval(*np.clip(found, low, high).tolist())


def other_widths(study: SimilarityStudy) -> list[Claim]:
    """Myrtle CNNs of 32 channels throughout: if the decay with depth came from growing width, it would be gone.

    The first two rows are shown. Networks of double width, which no source has, ask the same the other way.
    """
    figure, table, kind = "Symmetries, Figure 16", "Symmetries, Table 4", "myrtle_constant_width"
    rows = side_by_side("what a decay is", {
        reading: Claim.over("constant width, G_ReLU-CKA", figure, '"decay with network depth"', found, MORE)
        for reading, found in (("first − last activation", decay(study, kind, "max")),
                               ("least fall of three steps", least_step(study, kind, "max")))
    })  # fmt: skip
    rows += [
        Claim.over(f"constant width: {FASTER}", figure, DECAY, decays_faster(study, kind), (0.05, INF)),
        Claim("signs of Table 2 that Table 4 of the paper keeps, of 10", table, '"qualitatively very similar"',
              kept_signs(), (10, 10), seen=True),
    ]  # fmt: skip
    shape = {
        "constant width: G_ReLU − orthogonal, mean of relu2 and relu3":
            (".7602 − .6735, .5691 − .5409", lambda r, o: (r - o)[:, 1:3].mean(1)),
        "constant width: G_ReLU, relu1 − relu3": (".8176 − .5691", lambda r, o: r[:, 0] - r[:, 2]),
        "constant width: orthogonal, relu1 − relu3": (".8460 − .5409", lambda r, o: o[:, 0] - o[:, 2]),
        "constant width: G_ReLU, relu3 − relu4": (".5691 − .4971", lambda r, o: r[:, 2] - r[:, 3]),
        "constant width: orthogonal, relu4 − relu3": (".6050 − .5409", lambda r, o: o[:, 3] - o[:, 2]),
    }  # fmt: skip
    rows += _both_readings(study, kind, shape, table, seen=True)
    numbers = ", ".join(f"{value:.4f}".lstrip("0") for values in PAPER_TABLE_4.values() for value in values)
    rows.append(Claim("the eight numbers of Table 4", table, numbers, None, None,
                      needs="CIFAR-10, 512 channels throughout, and the paper's null"))  # fmt: skip
    kind = "myrtle_double_width"
    relu, orthogonal = (study.heights(kind, group) for group in ("relu", "orthogonal"))
    found = {
        "G_ReLU-CKA, first − last activation": decay(study, kind, "max"),
        "G_ReLU-CKA, least fall of three steps": least_step(study, kind, "max"),
        **{f"{name} above its null, {first} − {second}": study.over_networks(above[:, one] - above[:, other])
           for above, name in ((relu, "G_ReLU"), (orthogonal, "orthogonal"))
           for first, second, one, other in (("relu1", "relu3", 0, 2), ("relu4", "relu3", 3, 2))},
        "orthogonal − G_ReLU above their nulls": study.over_networks((orthogonal - relu).mean(1)),
    }  # fmt: skip
    own = "ours, after section 5, double width"
    rows += [
        Claim.over(f"double width: {what}", own, "above 0", value, MORE, kind="own") for what, value in found.items()
    ]
    faster = decays_faster(study, kind)
    return [*rows, Claim.over(f"double width: {FASTER}", own, "at least 0.05", faster, (0.05, INF), kind="own")]


def same_depth(study: SimilarityStudy) -> list[Claim]:
    """Section 5: the same depth is more similar, early layers highly, later ones less.

    "Highly" is a CKA of at least 0.9, and "more similar" the mean over the same layer minus that over other pairs.
    """
    rows = []
    for kind, name, figure in (("myrtle", "Myrtle", "Figure 5"), ("resnet20", "ResNet20", "Figure 2")):
        source = f"Symmetries, {figure}"
        for kernel, measure in (("linear", "linear"), ("max", "G_ReLU")):
            maps, along = study.maps(kind, kernel), study.diagonal(kind, kernel)
            layers = maps.shape[1]
            others = (maps.sum((1, 2)) - along.sum(1)) / (layers * (layers - 1))
            rows += [
                Claim.over(f"{name}, {measure} CKA: same depth − other depths", source, '"more similar"',
                           study.over_networks(along.mean(1) - others), MORE, seen=True),
                Claim.over(f"{name}, {measure} CKA: at the first activation", source, '"highly similar"',
                           _cut(study.over_networks(along[:, 0]), -1), (0.9, INF), seen=True),
            ]  # fmt: skip
        rows.append(
            Claim.over(f"{name}, G_ReLU CKA: first − last activation", source,
                       '"later layers are found to be less similar"', decay(study, kind, "max"), MORE, seen=True)
        )  # fmt: skip
        linear, relu = (contrasts(study, kind, kernel) for kernel in ("linear", "max"))
        what = f"{name}: contrast of early and late layers, linear CKA − G_ReLU CKA"
        rows += side_by_side("which layers are compared", {
            reading: Claim.over(what, source, '"less pronounced"', study.over_networks(linear[reading] - relu[reading]),
                                MORE, seen=True)
            for reading in linear
        })  # fmt: skip
    return rows


def contrasts(study: SimilarityStudy, kind: str, kernel: str) -> dict[str, np.ndarray]:
    """By reading, how much less alike an early and a late layer of two networks are than they could be, (pairs,).

    The first and the last layer are compared with the same layer in both networks (the diagonal of the map of CKA),
    with neighbouring layers, or with a similarity of 1, so that no other layer enters.
    """
    maps = study.maps(kind, kernel)
    ends = (maps[:, 0, -1] + maps[:, -1, 0]) / 2
    beside = [np.diagonal(maps, offset, 1, 2).mean(1) for offset in (-1, 0, 1)]
    return {
        "same layer − first and last": beside[1] - ends,
        "neighbours − first and last": (beside[0] + beside[2]) / 2 - ends,
        "first and last alone": 1 - ends,
    }


def single_units(study: SimilarityStudy, top_of: str = "map") -> list[Claim]:
    """Dissection of ResNet20s with the ReLU after the addition and without, by one of the two cuts.

    "Falls" is by at least 0.05, "does not fall" by at most that, and "far fewer" by at least 0.1 of all units. A
    category dominates if it has more of the interpretable units of a layer than of as many rotated directions: many of
    the concepts are objects, and their masks are large, so that any direction has a good share of them.
    """
    cut = f"top of the {top_of}"
    falls, stays = (student_interval(study.drops(kind, top_of=top_of)) for kind in (WITH, WITHOUT))
    start = {kind: study.curves(kind, top_of=top_of)[:, 0] for kind in (WITH, WITHOUT)}
    drops = {kind: study.drops(kind, top_of=top_of) for kind in (WITH, WITHOUT)}
    shares = study.categories(WITH, top_of=top_of)
    named = np.sum(list(shares.values()), axis=0)  # (networks, alphas)
    objects = shares.get("object", np.zeros_like(named)) / named
    figure = "Symmetries, Figure 3"
    rows = [
        Claim.over(f"ReLU: share of units lost by rotating ({cut})", figure, '"decreases as we rotate"', falls,
                   (0.05, INF), seen=True),
        Claim.over(f"no ReLU: share of units lost by rotating ({cut})", figure, '"does not drop with rotation"', stays,
                   (-INF, 0.05), seen=True),
        Claim.over(f"share of units lost by rotating, ReLU − no ReLU ({cut})", "ours, of Figure 3", "above 0",
                   _difference(drops[WITH], drops[WITHOUT]), MORE, seen=True, kind="own"),
        Claim.over(f"share of interpretable units, ReLU − no ReLU ({cut})", "Symmetries, section 6", '"far fewer"',
                   _difference(start[WITH], start[WITHOUT]), (0.1, INF), seen=True),
        Claim.over(f"ReLU: share of objects among interpretable units − in a rotated basis ({cut})",
                   "Symmetries, Figure 18", '"dominated by the object and scene concept detectors"',
                   student_interval(objects[:, 0] - objects[:, -1]), MORE, seen=True),
        Claim.over(f"ReLU: share of objects among interpretable units, no null subtracted ({cut})",
                   "ours, of Figure 18", "at least half", _cut(student_interval(objects[:, 0]), 0), (0.5, INF),
                   seen=True, kind="own"),
    ]  # fmt: skip
    for kind, name in ((WITH, "ReLU"), (WITHOUT, "no ReLU")):
        rises = student_interval(study.inside_rises(kind, top_of=top_of))
        rows.append(
            Claim.over(f"{name}: share of units gained by rotating inside blocks ({cut})", "Symmetries, Figure 19",
                       '"actually tends to increase"', rises, MORE)
        )  # fmt: skip
    return rows


def _difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The mean of one kind of network minus that of another, with Welch's 95 % interval; one value a network."""
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    return Interval(float(first.mean() - second.mean()), float(found.low), float(found.high))
