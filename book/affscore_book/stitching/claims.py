"""What the sources claim about stitches, beside what the stored networks of the book say: one list a table.

The networks are trained on Fashion-MNIST; Myrtle CNNs have a quarter of the paper's channels. Intervals are those of
:func:`affscore_book.kit.statistics.leaving_out`.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendix D ("Symmetries").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, leaving_out, over_pairs, student_interval
from affscore_book.stitching.controls import Controls
from affscore_book.stitching.merging import Averages
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import StitchingStudy

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
    "shortcut_share",
    "without_relu",
]

INF = math.inf
MORE = (0.0, INF)
#: Matrices of rank 1 and 2 start far from their best, and learn on 1,000 images where the paper learns on 20 x 50,000.
LOW_RANKS = "training until low ranks no longer improve"


def _claim(what: str, source: str, theirs: str, found: Interval, accept: tuple[float, float], **more: Any) -> Claim:
    interval = None if math.isnan(found.low) else (found.low, found.high)
    return Claim(what, source, theirs, found.mean, accept, interval=interval, **more)


def _parts(study: StitchingStudy) -> tuple[list[str], list[str]]:
    """The activations of ResNet20 inside blocks and outside."""
    layers = study.layers("resnet20")
    return [name for name in layers if inside_block(name)], [name for name in layers if not inside_block(name)]


def networks(study: StitchingStudy) -> list[Claim]:
    """Learned stitches of Myrtle CNNs: the two sentences of section 4 on what is lost.

    Which layer is the worst is found anew for each of the networks that are left out.
    """

    def worst(stitch: str, which: int) -> Interval:
        tables = study.tables("myrtle", study.layers("myrtle"), stitch, "learned")
        return leaving_out(
            lambda kept: float(np.sort(np.nanmean(tables[:, kept[:, None], kept], axis=(1, 2)))[which]),
            tables.shape[-1],
        )

    full, group = worst("full", -1), worst("g_relu", -2)
    return [
        _claim("full: worst layer, points", "Symmetries, Figure 1", "2.3", full, (-INF, 2.5), seen=True),
        _claim("G_ReLU: worst layer but one, points", "Symmetries, section 4", "less than 10", group, (-INF, 10)),
    ]


def ranking(study: StitchingStudy) -> list[Claim]:
    """Learned stitches of Myrtle CNNs: does rank 4 cost more than G_ReLU, and does the penalty fall at the end?"""
    section, rows = "Symmetries, section 4", []
    for norm, how in (("reestimated", "new"), ("kept", "old")):
        found = {
            layer: over_pairs(study.table("myrtle", layer, "rank 4", "learned", norm=norm)
                              - study.table("myrtle", layer, "g_relu", "learned"))
            for layer in study.layers("myrtle")
        }  # fmt: skip
        layer = min(found, key=lambda name: found[name].mean)
        what = f"rank 4, {how} statistics, less G_ReLU, least at {layer}, points"
        rows.append(_claim(what, section, "significantly higher", found[layer], MORE))
    rows.append(Claim("ranks 1 and 2 less G_ReLU", section, "significantly higher", None, None, needs=LOW_RANKS))
    for stitch, name in (("full", "full"), ("g_relu", "G_ReLU")):
        third, last = (study.table("myrtle", layer, stitch, "learned") for layer in ("relu3", "relu4"))
        rows.append(
            _claim(f"{name}: relu3 less relu4, points", section, "up, then down", over_pairs(third - last), MORE)
        )
    return rows


def search(study: StitchingStudy) -> list[Claim]:
    """Alpha, soft sorting and lasso."""
    layers, noise = study.layers("myrtle"), "learned from noise"
    tables = np.stack(
        [study.tables("myrtle", layers, "g_relu", noise, alpha=alpha) for alpha in study.settings["alpha"]]
    )

    def span(kept: np.ndarray) -> float:
        return float(np.ptp(np.nanmean(tables[..., kept[:, None], kept], axis=(2, 3)), axis=0).mean())

    found = leaving_out(span, tables.shape[-1])
    what = "alpha from 0.001 to 10: span, points"
    rows = [_claim(what, "Symmetries, appendix D.5", "not essential", found, (-INF, 3))]
    for what, place, theirs in (
        ("soft sorting", "appendix D.2.1", "comparable"),
        ("lasso less G_ReLU at its sparsity", "appendix D.6", "higher"),
    ):
        needs = f"training until {what.partition(' less')[0]} no longer improves"
        rows.append(Claim(what, f"Symmetries, {place}", theirs, None, None, needs=needs))
    return rows


def blocks(study: StitchingStudy) -> list[Claim]:
    """Closed-form stitches in ResNet20: what a block costs, and what a second stitch, for its shortcut, saves."""
    inside, _ = _parts(study)
    ours, both, chance = (
        study.tables("resnet20", inside, "g_relu", fit).mean(0)
        for fit in ("closed form", "closed form, shortcut too", "closed form, shortcut at random")
    )
    d3 = "Symmetries, appendix D.3"
    own: dict[str, Any] = {"kind": "own", "seen": True}
    return [
        _claim("G_ReLU, closed form: inside less outside, points", d3, "higher inside",
               _inside(study, "resnet20", "g_relu"), MORE),
        _claim("full, closed form: inside less outside, points", d3, "higher inside",
               _inside(study, "resnet20", "full"), MORE),
        _claim("inside, saved by a stitched shortcut, points", "ours, of E.54", "at least 5", over_pairs(ours - both),
               (5, INF), **own),
        _claim("shortcut: random channels less right ones, points", "ours, control", "more", over_pairs(chance - both),
               MORE, **own),
    ]  # fmt: skip


def _inside(study: StitchingStudy, kind: str, stitch: str, fit: str = "closed form") -> Interval:
    """Points that a stitch costs inside blocks, fitted in some way, less those outside, in closed form."""
    inside, outside = _parts(study)
    return over_pairs(study.tables(kind, inside, stitch, fit).mean(0) - study.tables(kind, outside, stitch).mean(0))


def shortcut_share(study: StitchingStudy, layers: list[str]) -> Interval:
    """The share of the penalty of G_ReLU (closed form) inside blocks that a stitch for the shortcut takes away."""
    alone, both = (
        study.tables("resnet20", layers, "g_relu", fit) for fit in ("closed form", "closed form, shortcut too")
    )

    def share(kept: np.ndarray) -> float:
        left, all_of_it = (np.nanmean(tables[:, kept[:, None], kept]) for tables in (both, alone))
        return float(1 - left / all_of_it)

    return leaving_out(share, alone.shape[-1])


def blocks_more(study: StitchingStudy) -> list[Claim]:
    """ResNet20: learned stitches against each other, what remains, no shortcuts, and a second stitch elsewhere."""
    d3 = "Symmetries, appendix D.3"
    chosen = [layer for layer in study.settings["residual_layers"] if inside_block(layer)]
    less = {
        layer: over_pairs(study.table("resnet20", layer, "full", "learned")
                          - study.table("resnet20", layer, "g_relu", "learned"))
        for layer in chosen
    }  # fmt: skip
    layer = max(less, key=lambda name: less[name].mean)
    end, both = (
        study.tables("resnet20", _parts(study)[0], "g_relu", f"closed form, {fit}").mean(0)
        for fit in ("block's end too", "shortcut too")
    )
    own: dict[str, Any] = {"kind": "own", "seen": True}
    return [
        _claim(f"inside: full less G_ReLU, most at {layer}, points", d3, "consistently lower", less[layer], (-INF, 0)),
        Claim("inside: ranks 1 and 2 less G_ReLU", d3, "consistently lower", None, None, needs=LOW_RANKS),
        Claim("outside: rank 1, and sometimes 2, less G_ReLU", d3, "higher", None, None, needs=LOW_RANKS),
        _claim("shortcut stitched: inside less outside, points", "ours, of E.54", "within 5",
               _inside(study, "resnet20", "g_relu", "closed form, shortcut too"), (-5, 5), **own),
        _claim("no shortcuts: inside less outside, points", "ours, control", "within 5",
               _inside(study, "plain20", "g_relu"), (-5, 5), **own),
        _claim("second stitch: behind the block less shortcut, points", "ours, control", "more", over_pairs(end - both),
               MORE, **own),
        Claim("ResNet18: penalties below those of ResNet20", "Symmetries, Figure 7", "lower", None, None,
              needs="trained ResNet18s of full width, on CIFAR-10"),
        Claim("vision transformer: G_ReLU is costly", "Symmetries, Figure 12", "large", None, None,
              needs="trained compact convolutional transformers"),
    ]  # fmt: skip


def without_relu(study: StitchingStudy) -> list[Claim]:
    """Figure 12, of vision transformers, where blocks do not end in an activation: there nothing singles out the
    channels, so a permutation should cost more beyond the full stitch than where a ReLU follows the addition."""
    outside = [name for name in _parts(study)[1] if name != "relu"]

    def gaps(kind: str) -> np.ndarray:
        return (study.tables(kind, outside, "g_relu") - study.tables(kind, outside, "full")).mean(0)

    without, between = gaps("resnet20_without_last_relu"), gaps("resnet20")
    found = over_pairs(without - between)
    return [
        _claim("no ReLU after additions: G_ReLU beyond the full stitch, points", "Symmetries, Figure 12", "large",
               over_pairs(without), (10.0, INF)),
        _claim("the same, less that with ReLU", "Symmetries, Figure 12", "above 0", found, MORE),
    ]  # fmt: skip


def leaky_slopes() -> list[Claim]:
    """LeakyReLU: one pair of networks a slope, here as in the paper, judges nothing."""
    figure = "Symmetries, Figure 8"
    needs = "several pairs of networks a slope"
    return [
        Claim("slopes below 1: penalties", "Symmetries, section 4", "similar", None, None, needs=needs),
        Claim("slope 1: penalties along the layers", figure, "mostly constant", None, None, needs=needs),
        Claim("last two layers: small slopes", figure, "lowest", None, None, needs=needs),
    ]


def bridge(study: StitchingStudy, kind: str) -> list[Claim]:
    """Our hypothesis that linear activations are the harder to permute."""
    what = f"{kind}: rank correlation of score and penalty"
    return [_claim(what, "ours, last section", "at least 0.3", study.rank_correlation(kind), (0.3, INF), kind="own")]


def controls(found: Controls) -> list[Claim]:
    """Learned full stitches from features that no network trained on the task has made. "Well" is at most the 2.5
    points of "nearly" in :func:`networks`; a stitch from noise without clusters has to fail."""
    smith, athanasiadis = ("ours, after Smith et al. (2025)", "ours, after Athanasiadis et al. (2026)")
    another = found.lost["another seed"].mean(0)

    def row(what: str, source: str, theirs: str, values: np.ndarray, accept: tuple[float, float]) -> Claim:
        return _claim(what, source, theirs, student_interval(values), accept, kind="own")

    return [
        row("clustered noise: points lost, last activation", smith, "successful", found.lost["clustered noise"][-1],
            (-INF, 2.5)),
        row("noise without clusters: least loss of any layer, points", smith, "fails", found.lost["noise"].min(0),
            (50.0, INF)),
        *(row(f"{kind}: points lost beyond another seed, mean over layers", smith, "below 2.5",
              found.lost[kind].mean(0) - another, (-INF, 2.5))
          for kind in ("other task", "shuffled labels", "untrained")),
        *(row(f"variance explained backwards, another seed less {kind}", athanasiadis, "above 0",
              (found.backwards["another seed"] - found.backwards[kind]).mean(0), MORE)
          for kind in ("clustered noise", "other task", "shuffled labels", "untrained")),
    ]  # fmt: skip


def merging(found: Averages) -> list[Claim]:
    """The group of the activation decides what may be averaged: what larger groups save. After a look at one pair."""
    ours, own = "ours, after Theus et al. (2025)", {"kind": "own", "seen": True}

    def saved(name: str, one: str, other: str) -> Interval:
        return over_pairs(found.lost[name][one] - found.lost[name][other])

    planted = student_interval(found.untrained["ReLU"]["permutation"])
    return [
        _claim("ReLU: points that permuting saves, beside nothing", ours, "above 0",
               saved("ReLU", "nothing", "permutation"), MORE, **own),
        _claim("ReLU: points that scales save, beside permuting", ours, "above 0",
               saved("ReLU", "permutation", "G_ReLU"), MORE, **own),
        _claim("ReLU: points that a rotation, no symmetry of ReLU, saves beside G_ReLU", ours, "below 0",
               saved("ReLU", "G_ReLU", "orthogonal"), (-INF, 0.0), **own),
        _claim("linear: points lost after a rotation", ours, "at most 0.5",
               over_pairs(found.lost["linear"]["orthogonal"]), (-INF, 0.5), **own),
        _claim("linear: points lost after any invertible matrix", ours, "at most 0.5",
               over_pairs(found.lost["linear"]["invertible"]), (-INF, 0.5), **own),
        _claim("ReLU, second network untrained: points lost after permuting", ours, "at least 5: it must fail", planted,
               (5.0, INF), **own),
    ]  # fmt: skip
