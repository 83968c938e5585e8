"""What the source claims about depth, width and single units, beside what the stored networks say: one list a table.

The networks are small and trained on Fashion-MNIST. Intervals are over networks: the jackknife where pairs share them
(:meth:`affscore_book.similarity.study.SimilarityStudy.over_networks`), Student's for one kind of network, and Welch's
for the difference of two.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, sections 5 and 6, appendices D.8 and F ("Symmetries").
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.similarity.study import SimilarityStudy

__all__ = ["other_widths", "same_depth", "single_units", "trained_pairs"]

INF = math.inf
MORE = (0.0, INF)
WITH, WITHOUT = "resnet20", "resnet20_without_last_relu"


def decay(study: SimilarityStudy, kind: str, kernel: str) -> Interval:
    """CKA of the same layer in two networks: at the first activation minus at the last."""
    along = study.diagonal(kind, kernel)
    return study.over_networks(along[:, 0] - along[:, -1])


def decays_faster(study: SimilarityStudy, kind: str) -> Interval:
    """The decay of the max kernel's CKA minus that of linear CKA."""
    linear, relu = (study.diagonal(kind, kernel) for kernel in ("linear", "max"))
    return study.over_networks((relu[:, 0] - relu[:, -1]) - (linear[:, 0] - linear[:, -1]))


def above_null(study: SimilarityStudy, kind: str) -> dict[str, np.ndarray]:
    """Procrustes above its null by group, (pairs, layers)."""
    return {
        group: study.procrustes(kind, group)[..., 0] - study.procrustes(kind, group)[..., 1]
        for group in ("relu", "orthogonal")
    }


def trained_pairs(study: SimilarityStudy) -> list[Claim]:
    """Table 2 and Figures 2, 5 and 9: falls, rises and orders along depth, above the null; the first two are shown."""
    section, table, seen = "Symmetries, section 5", "Symmetries, Table 2", {"seen": True}
    height = above_null(study, "myrtle")
    rows = [
        Claim.over("ResNet20: G_ReLU-CKA decays faster, by", "Symmetries, Figure 2", "yes",
               decays_faster(study, "resnet20"), (0.05, INF), **seen),
        Claim.over("less similar inside blocks, linear CKA, by", "Symmetries, Figure 2", "yes",
               _outside(study, study.diagonal("resnet20", "linear")), MORE, **seen),
        Claim("the eight numbers of Table 2", table, "0.4432 to 0.7724", None, None,
              needs="CIFAR-10, the published width, 50 epochs, and the paper's null"),
        Claim.over("G_ReLU below orthogonal, by", section, "yes",
               study.over_networks((height["orthogonal"] - height["relu"]).mean(1)), MORE, **seen),
    ]  # fmt: skip
    for group, name in (("relu", "G_ReLU"), ("orthogonal", "orthogonal")):
        for what, at in (("falls to relu3", 0), ("rises at relu4", 3)):
            found = study.over_networks(height[group][:, at] - height[group][:, 2])
            rows.append(Claim.over(f"{what}, {name}, by", section, "yes", found, MORE, **seen))
    rows += [
        Claim.over("Myrtle: G_ReLU-CKA decays faster, by", "Symmetries, Figure 5", "yes",
               decays_faster(study, "myrtle"), (0.05, INF), **seen),
        Claim.over("less similar inside blocks, max CKA, by", "Symmetries, Figure 2", "yes",
               _outside(study, study.diagonal("resnet20", "max")), MORE, **seen),
    ]  # fmt: skip
    for group, above in above_null(study, "resnet20").items():
        for how, values in (("", study.procrustes("resnet20", group)[..., 0]), ("above the null, ", above)):
            what = f"less similar inside blocks, Procrustes {group}, {how}by"
            rows.append(Claim.over(what, "Symmetries, Figure 9", "yes", _outside(study, values), MORE, **seen))
    return rows


def _outside(study: SimilarityStudy, values: np.ndarray) -> Interval:
    return study.over_networks(study.outside_minus_inside("resnet20", values))


def other_widths(study: SimilarityStudy) -> list[Claim]:
    """Myrtle CNNs of 32 channels throughout: if the decay with depth came from growing width, it would be gone.

    Those of double width ask the same the other way. The rules are those of the networks of our usual width: falls,
    rises and orders are above 0, of heights above the null for Procrustes, and "faster" is by 0.05.
    """
    rows = []
    for kind, name, figure, table in (
        ("myrtle_constant_width", "constant width", "Symmetries, Figure 16", "Symmetries, Table 4"),
        ("myrtle_double_width", "double width", "ours, of Figure 16", "ours, of Table 4"),
    ):
        height = above_null(study, kind)
        found = {
            "G_ReLU-CKA falls with depth": (decay(study, kind, "max"), MORE),
            "G_ReLU-CKA decays faster": (decays_faster(study, kind), (0.05, INF)),
        }
        rows += [Claim.over(f"{name}: {what}, by", figure, "yes", *values) for what, values in found.items()]
        shape = {
            f"{group}-Procrustes {what}": height[key][:, at] - height[key][:, 2]
            for key, group in (("relu", "G_ReLU"), ("orthogonal", "orthogonal"))
            for what, at in (("falls to relu3", 0), ("rises at relu4", 3))
        }
        shape["G_ReLU below orthogonal"] = (height["orthogonal"] - height["relu"]).mean(1)
        rows += [
            Claim.over(f"{name}: {what}, by", table, "as in Table 2", study.over_networks(values), MORE)
            for what, values in shape.items()
        ]
    needs = "CIFAR-10, 512 channels throughout, and the paper's null"
    what = "the two numbers of Table 4 that can be read"
    return [*rows, Claim(what, "Symmetries, Table 4", ".5691, .5409", None, None, needs=needs)]


def same_depth(study: SimilarityStudy) -> list[Claim]:
    """Section 5: the same depth is more similar, early layers highly, later ones less.

    "Highly" is a CKA of at least 0.9, and "more similar" the mean over the same layer minus that over other pairs.
    """
    rows = []
    for kind, name, figure in (("myrtle", "Myrtle", "Figure 5"), ("resnet20", "ResNet20", "Figure 2")):
        source = f"Symmetries, {figure}"
        contrast = {}
        for kernel, measure in (("linear", "linear"), ("max", "G_ReLU")):
            maps, along = study.maps(kind, kernel), study.diagonal(kind, kernel)
            layers = maps.shape[1]
            others = (maps.sum((1, 2)) - along.sum(1)) / (layers * (layers - 1))
            rows += [
                Claim.over(f"{name}, {measure}-CKA: same depth more similar, by", source, "yes",
                       study.over_networks(along.mean(1) - others), MORE, seen=True),
                Claim.over(f"{name}, {measure}-CKA: at the first activation", source, "highly similar",
                       study.over_networks(along[:, 0]), (0.9, INF), seen=True),
            ]  # fmt: skip
            contrast[kernel] = along.mean(1) - (maps[:, 0, -1] + maps[:, -1, 0]) / 2
        rows += [
            Claim.over(f"{name}, G_ReLU-CKA: last activation less similar than first, by", source, "yes",
                   decay(study, kind, "max"), MORE, seen=True),
            Claim.over(f"{name}: early against late layers, less pronounced by G_ReLU-CKA, by", source, "yes",
                   study.over_networks(contrast["linear"] - contrast["max"]), MORE, seen=True),
        ]  # fmt: skip
    return rows


def single_units(study: SimilarityStudy, top_of: str = "map") -> list[Claim]:
    """Dissection of ResNet20s with the ReLU after the addition and without, by one of the two cuts.

    "Falls" is by at least 0.05, "does not fall" by at most that, "far fewer" by at least 0.1 of all units, and a
    category dominates with half of the interpretable units or more.
    """
    cut = f"top of the {top_of}"
    falls, stays = (student_interval(study.drops(kind, top_of=top_of)) for kind in (WITH, WITHOUT))
    start = {kind: study.curves(kind, top_of=top_of)[:, 0] for kind in (WITH, WITHOUT)}
    drops = {kind: study.drops(kind, top_of=top_of) for kind in (WITH, WITHOUT)}
    shares = {name: values[:, 0] for name, values in study.categories(WITH, top_of=top_of).items()}
    named = np.sum(list(shares.values()), axis=0)
    objects = student_interval(shares.get("object", np.zeros(len(named))) / named)
    figure = "Symmetries, Figure 3"
    rows = [
        Claim.over(f"ReLU: falls, by ({cut})", figure, "yes", falls, (0.05, INF), seen=True),
        Claim.over(f"no ReLU: does not fall, by ({cut})", figure, "yes", stays, (-INF, 0.05), seen=True),
        Claim.over(f"falls more with ReLU than without, by ({cut})", figure, "yes",
               _difference(drops[WITH], drops[WITHOUT]), MORE, seen=True),
        Claim.over(f"no ReLU: fewer interpretable units, by ({cut})", "Symmetries, section 6", "far fewer",
               _difference(start[WITH], start[WITHOUT]), (0.1, INF), seen=True),
        Claim.over(f"ReLU: share of object concepts ({cut})", "Symmetries, Figure 18", "dominated", objects, (0.5, INF),
               seen=True),
    ]  # fmt: skip
    for kind, name in ((WITH, "ReLU"), (WITHOUT, "no ReLU")):
        rises = student_interval(study.inside_rises(kind, top_of=top_of))
        rows.append(
            Claim.over(f"{name}: inside blocks rises, by ({cut})", "Symmetries, Figure 19", "increases", rises, MORE)
        )
    return rows


def _difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The mean of one kind of network minus that of another, with Welch's 95 % interval; one value a network."""
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    return Interval(float(first.mean() - second.mean()), float(found.low), float(found.high))
