"""What the stored networks of the book say on what the sources claim about stitches: one list a table.

``claims.toml`` has the claims and the rules. Intervals are those of
:func:`affscore_book.kit.statistics.leaving_out`; why, says :mod:`affscore_book.stitching.study`.
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

#: Points up to which a stitch of :func:`controls` fits well.
WELL = 2.5
#: Slopes of LeakyReLU with two trained networks each.
SLOPES = ("0.0001", "0.001", "0.01", "0.1", "0.5", "0.9", "1")


def _parts(study: StitchingStudy) -> tuple[list[str], list[str]]:
    """The activations of ResNet20 inside blocks and outside."""
    layers = study.layers("resnet20")
    return [name for name in layers if inside_block(name)], [name for name in layers if not inside_block(name)]


def _ordered(tables: np.ndarray, which: int) -> Interval:
    """Of (layers, networks, networks) the layer that is so far down or up by its mean, found anew for those left."""
    return leaving_out(
        lambda kept: float(np.sort(np.nanmean(tables[:, kept[:, None], kept], axis=(1, 2)))[which]), tables.shape[-1]
    )


def networks(study: StitchingStudy) -> list[Claim]:
    """Learned stitches of Myrtle CNNs: the two sentences of section 4 on what is lost."""
    full, group = (study.tables("myrtle", study.layers("myrtle"), stitch, "learned") for stitch in ("full", "g_relu"))
    return judged("stitching", "networks", {"full": _ordered(full, -1), "group": _ordered(group, -2)})


def ranking(study: StitchingStudy) -> list[Claim]:
    """Myrtle CNNs: do low ranks cost more than G_ReLU, do ranks count as shares, does the penalty fall at the end?"""
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
            gaps = study.tables("myrtle", layers, rank, fit, **more) - study.tables("myrtle", layers, "g_relu", fit)
            readings[f"{reading}, {name}"] = _ordered(gaps, 0)
    wide = study.tables("myrtle_double_width", layers, "rank 4").mean(0)
    narrow, share = (study.tables("myrtle", layers, stitch).mean(0) for stitch in ("rank 4", "rank 2"))
    last = {}
    for stitch, name in (("full", "full"), ("g_relu", "G_ReLU")):
        before, end = (study.table("myrtle", layer, stitch, "learned") for layer in ("relu3", "relu4"))
        last[name] = over_pairs(before - end)
    width, as_share = over_pairs(wide - narrow), over_pairs(wide - share)
    found = {"low_rank": readings, "width": width, "width_as_share": as_share, "last": last}
    return judged("stitching", "ranking", found)


def search(study: StitchingStudy) -> list[Claim]:
    """Alpha, the head start of permutations, the temperature of soft sorting, and the lasso."""
    layers, noise = study.layers("myrtle"), "learned from noise"
    alphas = np.array(study.settings["alpha"])
    tables = np.stack([study.tables("myrtle", layers, "g_relu", noise, alpha=alpha) for alpha in alphas])

    def span(kept: np.ndarray) -> float:
        return float(np.ptp(np.nanmean(tables[..., kept[:, None], kept], axis=(2, 3)), axis=0).mean())

    def decades(kept: np.ndarray) -> np.ndarray:
        """How far apart the best alphas of the pairs are at each layer, powers of ten."""
        some = tables[..., kept[:, None], kept]
        best = np.log10(alphas)[some[..., ~np.isnan(some[0, 0])].argmin(0)]
        return np.ptp(best, axis=1)

    start = (study.tables("myrtle", layers, "g_relu", f"{noise}, no head start")
             - study.tables("myrtle", layers, "g_relu", noise)).mean(0)  # fmt: skip
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
    """Closed-form stitches in ResNet20: what a block costs, and what a second stitch, for its shortcut, saves."""
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
    """Points that a stitch costs inside blocks, fitted in some way, minus those outside, in closed form."""
    inside, outside = _parts(study)
    return over_pairs(study.tables(kind, inside, stitch, fit).mean(0) - study.tables(kind, outside, stitch).mean(0))


def blocks_more(study: StitchingStudy) -> list[Claim]:
    """ResNet20: learned stitches against each other, what remains, no shortcuts, and a second stitch elsewhere."""
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
    """What a permutation costs beyond the full stitch where no ReLU follows the addition, and where one does."""
    outside = [name for name in _parts(study)[1] if name != "relu"]

    def gaps(kind: str) -> np.ndarray:
        return (study.tables(kind, outside, "g_relu") - study.tables(kind, outside, "full")).mean(0)

    without, between = gaps("resnet20_without_last_relu"), gaps("resnet20")
    return judged("stitching", "without_relu", {"large": over_pairs(without), "due": over_pairs(without - between)})


def leaky_slopes(study: StitchingStudy) -> list[Claim]:
    """LeakyReLU: two networks a slope, here as in the paper."""
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
    """Our hypothesis that linear activations are the harder to permute, over the layers of a network."""
    return judged("stitching", "bridge", {"rank": {kind: study.rank_correlation(kind)[0]}})


def controls(found: Controls) -> list[Claim]:
    """Learned full stitches from features that no network trained on the task has made.

    A mean over layers says how many of them decide alike by themselves.
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
    """The group of the activation decides what may be averaged: what larger groups save."""

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
