"""Tests of the source's claims about depth, width and single units with the stored networks, a list for each table.

``claims.toml`` has the claims and the rules. Intervals are over networks: the jackknife's if pairs have networks in
common (:meth:`affscore_book.similarity.study.SimilarityStudy.over_networks`), Student's for one kind of network, and
Welch's for the difference of two kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import spearmanr

from affscore_book.kit.statistics import Interval, leaving_out, student_interval
from affscore_book.similarity.study import PAPER_TABLE_2, SimilarityStudy
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = ["PAPER_TABLE_4", "kept_signs", "other_widths", "same_depth", "single_units", "trained_pairs"]

#: Table 4, for 512 channels throughout. Its third column is in our text, and all four columns are in the notebook of
#: the paper's code.
PAPER_TABLE_4 = {
    "relu_uncentred": (0.8176, 0.7602, 0.5691, 0.4971),
    "orthogonal_uncentred": (0.8460, 0.6735, 0.5409, 0.6050),
}

WITH, WITHOUT = "resnet20", "resnet20_without_last_relu"
#: The two forms of Procrustes. The paper's code does not centre features; ours does and is measured above its null.
READINGS = ("not centred, as the paper's code", "centred, above the null")


def decay(study: SimilarityStudy, kind: str, kernel: str) -> Interval:
    """The CKA of the same layer in two networks, at the first activation minus at the last."""
    along = study.diagonal(kind, kernel)
    return study.over_networks(along[:, 0] - along[:, -1])


def least_step(study: SimilarityStudy, kind: str, kernel: str) -> Interval:
    """The least fall of CKA from one activation to the next, which is below 0 if CKA rises somewhere."""
    along = study.diagonal(kind, kernel)
    falls = along[:, :-1] - along[:, 1:]
    return leaving_out(lambda kept: float(falls[study.pairs_of(kind, kept)].mean(0).min()), study.networks(kind))


def decays_faster(study: SimilarityStudy, kind: str) -> Interval:
    """The decay of the max kernel's CKA minus that of linear CKA."""
    linear, relu = (study.diagonal(kind, kernel) for kernel in ("linear", "max"))
    return study.over_networks((relu[:, 0] - relu[:, -1]) - (linear[:, 0] - linear[:, -1]))


def kept_signs() -> int:
    """The number of ten signs in the source's Table 2 that are the same in its Table 4.

    Four are the signs of orthogonal minus G_ReLU in each layer. Three for each group are the signs of a layer minus the
    one before.
    """
    signs = []
    for table in (PAPER_TABLE_2, PAPER_TABLE_4):
        relu, orthogonal = (np.array(table[name]) for name in ("relu_uncentred", "orthogonal_uncentred"))
        signs.append(np.sign([*(orthogonal - relu), *np.diff(relu), *np.diff(orthogonal)]))
    return int((signs[0] == signs[1]).sum())


#: A function from the similarities of G_ReLU and of the orthogonal group, both (pairs, layers), to one value per pair.
_Difference = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _both_readings(
    study: SimilarityStudy, kind: str, differences: dict[str, _Difference]
) -> dict[str, dict[str, Interval]]:
    """Differences of Procrustes similarities by their names, each with the paper's measure and with ours."""
    by_code = [study.procrustes(kind, f"{group}_uncentred")[..., 0] for group in ("relu", "orthogonal")]
    heights = [study.heights(kind, group) for group in ("relu", "orthogonal")]
    return {
        what: {
            reading: study.over_networks(difference(*values))
            for reading, values in zip(READINGS, (by_code, heights), strict=True)
        }
        for what, difference in differences.items()
    }


def trained_pairs(study: SimilarityStudy) -> list[Claim]:
    """Tests of Table 2 and Figures 2, 5 and 9: falls, rises and orders along depth."""
    section_5: dict[str, _Difference] = {
        "orthogonal − G_ReLU, mean of layers": lambda r, o: (o - r).mean(1),
        "G_ReLU, relu1 − relu3": lambda r, o: r[:, 0] - r[:, 2],
        "orthogonal, relu1 − relu3": lambda r, o: o[:, 0] - o[:, 2],
        "G_ReLU, relu4 − relu3": lambda r, o: r[:, 3] - r[:, 2],
        "orthogonal, relu4 − relu3": lambda r, o: o[:, 3] - o[:, 2],
    }
    kernels = {"linear": "linear", "G_ReLU": "max"}
    found = {
        "inside": {name: _outside(study, study.diagonal("resnet20", kernel)) for name, kernel in kernels.items()},
        "faster": {"ResNet20": decays_faster(study, "resnet20"), "Myrtle": decays_faster(study, "myrtle")},
        "section_5": _both_readings(study, "myrtle", section_5),
        **_figure_9(study),
    }
    return judged("similarity", "trained_pairs", found)


def _figure_9(study: SimilarityStudy) -> dict[str, dict[str, Any]]:
    """Procrustes for ResNet20s: the agreement of the two groups' orders of layers, and outside minus inside blocks."""
    groups = {"G_ReLU": "relu", "orthogonal": "orthogonal"}
    readings = {
        "raw": {name: study.procrustes("resnet20", group)[..., 0] for name, group in groups.items()},
        "above the null": {name: study.heights("resnet20", group) for name, group in groups.items()},
    }

    def alike(found: dict[str, np.ndarray]) -> Interval:
        def statistic(kept: np.ndarray) -> float:
            pairs = study.pairs_of("resnet20", kept)
            return float(spearmanr(*(of_group[pairs].mean(0) for of_group in found.values())).statistic)

        return _cut(leaving_out(statistic, study.networks("resnet20")), -1)

    return {
        "alike": {reading: alike(found) for reading, found in readings.items()},
        "blocks": {
            name: {reading: _outside(study, found[name]) for reading, found in readings.items()} for name in groups
        },
    }


def _outside(study: SimilarityStudy, values: np.ndarray) -> Interval:
    return study.over_networks(study.outside_minus_inside("resnet20", values))


def _cut(found: Interval, low: float, high: float = 1.0) -> Interval:
    """The interval of a number with a bounded range, such as a correlation, cut to that range."""
    return Interval(*np.clip(found, low, high).tolist())


def other_widths(study: SimilarityStudy) -> list[Claim]:
    """Tests with Myrtle CNNs of 32 channels throughout, and with those of double width."""
    kind = "myrtle_constant_width"
    shape: dict[str, _Difference] = {
        "G_ReLU − orthogonal, mean of relu2 and relu3": lambda r, o: (r - o)[:, 1:3].mean(1),
        "G_ReLU, relu1 − relu3": lambda r, o: r[:, 0] - r[:, 2],
        "orthogonal, relu1 − relu3": lambda r, o: o[:, 0] - o[:, 2],
        "G_ReLU, relu3 − relu4": lambda r, o: r[:, 2] - r[:, 3],
        "orthogonal, relu4 − relu3": lambda r, o: o[:, 3] - o[:, 2],
    }
    found = {
        "decay": {
            "first − last activation": decay(study, kind, "max"),
            "least fall of three steps": least_step(study, kind, "max"),
        },
        "faster": decays_faster(study, kind),
        "signs": kept_signs(),
        "table_4": _both_readings(study, kind, shape),
    }
    kind = "myrtle_double_width"
    relu, orthogonal = (study.heights(kind, group) for group in ("relu", "orthogonal"))
    above_0 = {
        "G_ReLU-CKA, first − last activation": decay(study, kind, "max"),
        "G_ReLU-CKA, least fall of three steps": least_step(study, kind, "max"),
        **{f"{name} above its null, {first} − {second}": study.over_networks(above[:, one] - above[:, other])
           for above, name in ((relu, "G_ReLU"), (orthogonal, "orthogonal"))
           for first, second, one, other in (("relu1", "relu3", 0, 2), ("relu4", "relu3", 3, 2))},
        "orthogonal − G_ReLU above their nulls": study.over_networks((orthogonal - relu).mean(1)),
    }  # fmt: skip
    double = {"above_0": above_0, "faster": decays_faster(study, kind)}
    return [*judged("similarity", "other_widths", found), *judged("similarity", "double_width", double)]


def same_depth(study: SimilarityStudy) -> list[Claim]:
    """Tests of section 5: layers of the same depth are more similar, early layers highly and later ones less."""
    rows = []
    for kind, name, figure in (("myrtle", "Myrtle", "Figure 5"), ("resnet20", "ResNet20", "Figure 2")):
        found: dict[str, Any] = {}
        for kernel in ("linear", "max"):
            maps, along = study.maps(kind, kernel), study.diagonal(kind, kernel)
            layers = maps.shape[1]
            others = (maps.sum((1, 2)) - along.sum(1)) / (layers * (layers - 1))
            found[kernel] = study.over_networks(along.mean(1) - others)
            found[f"{kernel}_first"] = _cut(study.over_networks(along[:, 0]), -1)
        found["later"] = decay(study, kind, "max")
        linear, relu = (contrasts(study, kind, kernel) for kernel in ("linear", "max"))
        found["contrast"] = {reading: study.over_networks(linear[reading] - relu[reading]) for reading in linear}
        rows += judged("similarity", "same_depth", found, name=name, figure=figure)
    return rows


def contrasts(study: SimilarityStudy, kind: str, kernel: str) -> dict[str, np.ndarray]:
    """For each reading, a reference similarity minus that of an early and a late layer of two networks, (pairs,).

    The reference of the first and the last layer is the same layer in both networks (the diagonal of the map of CKA),
    neighbouring layers, or a similarity of 1, which uses no other layer.
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
    """Tests with the dissection of ResNet20s, with and without the ReLU after the addition, by one of the two cuts."""
    falls, stays = (student_interval(study.drops(kind, top_of=top_of)) for kind in (WITH, WITHOUT))
    start = {kind: study.curves(kind, top_of=top_of)[:, 0] for kind in (WITH, WITHOUT)}
    drops = {kind: study.drops(kind, top_of=top_of) for kind in (WITH, WITHOUT)}
    shares = study.categories(WITH, top_of=top_of)
    named = np.sum(list(shares.values()), axis=0)  # (networks, alphas)
    objects = shares.get("object", np.zeros_like(named)) / named
    found = {
        "falls": falls,
        "stays": stays,
        "drops": _difference(drops[WITH], drops[WITHOUT]),
        "fewer": _difference(start[WITH], start[WITHOUT]),
        "objects": student_interval(objects[:, 0] - objects[:, -1]),
        "objects_alone": _cut(student_interval(objects[:, 0]), 0),
        "rises": {
            name: student_interval(study.inside_rises(kind, top_of=top_of))
            for kind, name in ((WITH, "ReLU"), (WITHOUT, "no ReLU"))
        },
    }
    return judged("similarity", "single_units", found, cut=f"top of the {top_of}")


def _difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The mean of one kind of network minus that of another, with Welch's 95 % interval, from one value per network."""
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    return Interval(float(first.mean() - second.mean()), float(found.low), float(found.high))
