"""Tests of the sources' claims about stitches with the stored networks of the book, one list of claims for each table.

``claims.toml`` has the claims and the rules. Intervals are those of
:func:`affscore_book.kit.statistics.leaving_out`; :mod:`affscore_book.stitching.study` explains the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import spearmanr

from affscore_book.kit.statistics import Interval, leaving_out, over_pairs, student_interval
from affscore_book.stitching.controls import Controls
from affscore_book.stitching.merging import Averages
from affscore_book.stitching.study import StitchingStudy, inside_block
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "blocks",
    "blocks_more",
    "bridge",
    "controls",
    "leaky_slopes",
    "merging",
    "networks",
    "ranking",
    "search",
    "without_relu",
]

#: The largest loss, in points, with which a stitch of :func:`controls` counts as good.
WELL = 2.5
#: The slopes of LeakyReLU, each with two trained networks.
SLOPES = ("0.0001", "0.001", "0.01", "0.1", "0.5", "0.9", "1")


def _parts(study: StitchingStudy) -> tuple[list[str], list[str]]:
    """The names of ResNet20's activations inside blocks, and of those outside."""
    layers = study.layers("resnet20")
    return [name for name in layers if inside_block(name)], [name for name in layers if not inside_block(name)]


def _ordered(tables: np.ndarray, which: int) -> Interval:
    """The mean of the layer at place ``which`` in the order of the means, from ``tables`` (layers, networks, networks).

    The interval leaves out one network at a time, and the layer is found anew each time.
    """
    return leaving_out(
        lambda kept: float(np.sort(np.nanmean(tables[:, kept[:, None], kept], axis=(1, 2)))[which]), tables.shape[-1]
    )


def _difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """``one`` minus ``other``, both (..., networks, networks), for the seeds that both have."""
    seeds = min(one.shape[-1], other.shape[-1])
    return one[..., :seeds, :seeds] - other[..., :seeds, :seeds]


def networks(study: StitchingStudy) -> list[Claim]:
    """Tests of the two sentences of section 4 on the loss by learned stitches of Myrtle CNNs."""
    full, group = (study.tables("myrtle", study.layers("myrtle"), stitch, "learned") for stitch in ("full", "g_relu"))
    return judged("stitching", "networks", {"full": _ordered(full, -1), "group": _ordered(group, -2)})


def ranking(study: StitchingStudy) -> list[Claim]:
    """Tests with Myrtle CNNs of low ranks against G_ReLU, of ranks as shares, and of the penalty at the last layer."""
    layers, epochs = study.layers("myrtle"), study.settings["long_epochs"][-1]
    readings = {}
    for fit, name, more in (
        ("closed form", "closed form", {}),
        ("learned", "learned for one epoch", {}),
        ("learned", f"learned for {epochs} epochs", {"epochs": epochs}),
    ):
        for rank, reading in (("rank 4", "equal rank, 4"), ("rank 1", "equal share, rank 1")):
            if more and rank != study.settings["long_rank"]:
                continue
            group = study.tables("myrtle", layers, "g_relu", fit)
            gaps = study.tables("myrtle", layers, rank, fit, **more) - group
            readings[f"{reading}, {name}"] = _ordered(gaps, 0)
    wide = study.tables("myrtle_double_width", layers, "rank 4").mean(0)
    narrow, share = (study.tables("myrtle", layers, stitch).mean(0) for stitch in ("rank 4", "rank 2"))
    last = {}
    for stitch, name in (("full", "full"), ("g_relu", "G_ReLU")):
        before, end = (study.table("myrtle", layer, stitch, "learned") for layer in ("relu3", "relu4"))
        last[name] = over_pairs(before - end)
    width, as_share = (over_pairs(_difference(wide, part)) for part in (narrow, share))
    found = {"low_rank": readings, "width": width, "width_as_share": as_share, "last": last}
    return judged("stitching", "ranking", found)


def search(study: StitchingStudy) -> list[Claim]:
    """Tests of choices in the training of stitches: alpha, the head start of permutations, soft sorting, the lasso."""
    layers, noise = study.layers("myrtle"), "learned from noise"
    alphas = np.array(study.settings["alpha"])
    tables = np.stack([study.tables("myrtle", layers, "g_relu", noise, alpha=alpha) for alpha in alphas])

    def span(kept: np.ndarray) -> float:
        return float(np.ptp(np.nanmean(tables[..., kept[:, None], kept], axis=(2, 3)), axis=0).mean())

    def decades(kept: np.ndarray) -> np.ndarray:
        """The range of the best alphas of the pairs at each layer, in powers of ten."""
        some = tables[..., kept[:, None], kept]
        best = np.log10(alphas)[some[..., ~np.isnan(some[0, 0])].argmin(0)]
        return np.ptp(best, axis=1)

    learned = study.tables("myrtle", layers, "g_relu", noise)
    start = (study.tables("myrtle", layers, "g_relu", f"{noise}, no head start") - learned).mean(0)
    some = study.settings["temperature_layers"]
    soft = np.stack([study.tables("myrtle", some, "soft_sort", noise, temperature=times).mean(0)
                     for times in study.settings["temperatures"]])  # fmt: skip
    middle = study.settings["temperatures"].index(1.0)
    others = np.delete(soft, middle, axis=0) - soft[middle]
    sorting = soft[middle] - study.tables("myrtle", some, "g_relu", noise).mean(0)
    found = {
        "alpha": leaving_out(span, tables.shape[-1]),
        "best_alphas": leaving_out(lambda kept: float(decades(kept).mean()), tables.shape[-1]),
        "best_alphas_least": leaving_out(lambda kept: float(decades(kept).min()), tables.shape[-1]),
        "head_start": over_pairs(start),
        "soft_sorting": over_pairs(sorting),
        "temperature": _ordered(others, 0),
    }
    words = {"epochs": str(study.settings["temperature_epochs"]), "places": " and ".join(some)}
    return judged("stitching", "search", found, **words)


def blocks(study: StitchingStudy) -> list[Claim]:
    """Tests with closed-form stitches in ResNet20: the cost of a block, and the saving by a stitch for its shortcut."""
    inside, _ = _parts(study)
    ours, both, chance = (
        study.tables("resnet20", inside, "g_relu", fit).mean(0)
        for fit in ("closed form", "closed form, shortcut too", "closed form, shortcut at random")
    )
    found = {
        "group": _inside(study, "resnet20", "g_relu"),
        "full": _inside(study, "resnet20", "full"),
        "saved": over_pairs(ours - both),
        "control": over_pairs(chance - both),
    }
    return judged("stitching", "blocks", found)


def _inside(study: StitchingStudy, kind: str, stitch: str, fit: str = "closed form") -> Interval:
    """The points that a stitch costs inside blocks, with the given fit, minus those outside, in closed form."""
    inside, outside = _parts(study)
    return over_pairs(study.tables(kind, inside, stitch, fit).mean(0) - study.tables(kind, outside, stitch).mean(0))


def blocks_more(study: StitchingStudy) -> list[Claim]:
    """Further tests with ResNet20: learned stitches, the remaining cost, no shortcuts, second stitches elsewhere."""
    chosen = [layer for layer in study.settings["residual_layers"] if inside_block(layer)]
    full, group = (study.tables("resnet20", chosen, stitch, "learned") for stitch in ("full", "g_relu"))
    end, both = (
        study.tables("resnet20", _parts(study)[0], "g_relu", f"closed form, {fit}").mean(0)
        for fit in ("block's end too", "shortcut too")
    )
    found = {
        "learned": _ordered(full - group, -1),
        "stitched": _inside(study, "resnet20", "g_relu", "closed form, shortcut too"),
        "plain": _inside(study, "plain20", "g_relu"),
        "elsewhere": over_pairs(end - both),
    }
    return judged("stitching", "blocks_more", found)


def without_relu(study: StitchingStudy) -> list[Claim]:
    """Tests of the cost of a permutation beyond the full stitch, with and without a ReLU after the addition."""
    outside = [name for name in _parts(study)[1] if name != "relu"]

    def gaps(kind: str) -> np.ndarray:
        return (study.tables(kind, outside, "g_relu") - study.tables(kind, outside, "full")).mean(0)

    without, between = gaps("resnet20_without_last_relu"), gaps("resnet20")
    found = {"large": over_pairs(without), "due": over_pairs(_difference(without, between))}
    return judged("stitching", "without_relu", found)


def leaky_slopes(study: StitchingStudy) -> list[Claim]:
    """Tests with LeakyReLU, with two networks for each slope, as in the paper."""
    kinds = [f"resnet20_slope{slope}" for slope in SLOPES]
    percent = {slope: 100 * np.array([study.accuracies[f"{kind}_{i}"] for i in (0, 1)])
               for slope, kind in zip(SLOPES, kinds, strict=True)}  # fmt: skip
    layers = study.layers(kinds[0])
    costs = np.array([[study.penalty(kind, layer, "g_relu").mean for layer in layers] for kind in kinds])
    slopes = np.array([float(slope) for slope in SLOPES])

    def rising(values: np.ndarray) -> Interval:
        found = leaving_out(lambda kept: float(spearmanr(slopes[kept], values[kept]).statistic), len(slopes))
        return Interval(*np.clip(found, -1, 1).tolist())

    def alone(values: np.ndarray) -> Interval:
        return Interval(float(np.ptp(values)), math.nan, math.nan)

    found = {
        "gentle": student_interval(percent["0.0001"] - percent["0.1"]),
        "linear": student_interval(percent["0.1"] - percent["1"]),
        "similar": alone(costs[:-1].mean(1)),
        "constant": alone(costs[-1]),
        "range": rising(np.ptp(costs, axis=1)),
        "lowest": rising(costs[:, -2:].mean(1)),
    }
    return judged("stitching", "leaky_slopes", found)


def bridge(study: StitchingStudy, kind: str) -> list[Claim]:
    """The test of our hypothesis that more linear activations are harder to permute, over the layers of a network."""
    return judged("stitching", "bridge", {"rank": {kind: study.rank_correlation(kind)[0]}})


def controls(found: Controls) -> list[Claim]:
    """Tests with learned full stitches from features that do not come from a network trained on the task.

    A mean over layers has the number of layers that decide in the same way by themselves.
    """
    kinds = ("clustered noise", "other task", "shuffled labels", "untrained")
    gaps = {kind: found.backwards["another seed"] - found.backwards[kind] for kind in kinds}  # (layers, second halves)
    beyond = {kind: found.lost[kind] - found.lost["another seed"] for kind in kinds[1:]}

    def counted(values: np.ndarray, decided: Callable[[Interval], bool]) -> Worded:
        layers = sum(decided(student_interval(layer)) for layer in values)
        return Worded(student_interval(values.mean(0)), {"alone": f"{layers} of {len(found.layers)}"})

    measured = {
        "noise": student_interval(found.lost["clustered noise"][-1]),
        "beyond": {kind: counted(lost, lambda each: each.high <= WELL) for kind, lost in beyond.items()},
        "backwards": {kind: counted(gap, lambda each: each.low > 0) for kind, gap in gaps.items()},
    }
    return judged("stitching", "controls", measured)


def merging(found: Averages) -> list[Claim]:
    """Tests of the saving by larger groups of alignments, if two networks are averaged."""

    def saved(name: str, one: str, other: str) -> Interval:
        return over_pairs(found.lost[name][one] - found.lost[name][other])

    measured = {
        "permuting": saved("ReLU", "nothing", "permutation"),
        "scales": saved("ReLU", "permutation", "G_ReLU"),
        "rotation": saved("ReLU", "G_ReLU", "orthogonal"),
        "linear_rotation": over_pairs(found.lost["linear"]["orthogonal"]),
        "linear_matrix": over_pairs(found.lost["linear"]["invertible"]),
        "untrained": student_interval(found.untrained["ReLU"]["permutation"]),
    }
    return judged("stitching", "merging", measured)
