"""What the sources claim about stitches, beside what the stored networks of the book say: one list a table.

The networks are trained on Fashion-MNIST; Myrtle CNNs have a quarter of the paper's channels. Intervals are those of
:func:`affscore_book.kit.statistics.leaving_out`; why, says :mod:`affscore_book.stitching.study`.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendix D ("Symmetries").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from affscore_book.kit.statistics import Interval, leaving_out, over_pairs, student_interval
from affscore_book.stitching.controls import Controls
from affscore_book.stitching.merging import Averages
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import StitchingStudy
from affscore_study.kit.claims import Claim, side_by_side

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

INF = math.inf
#: Points up to which a stitch of :func:`controls` fits well.
WELL = 2.5
MORE, LESS = (0.0, INF), (-INF, 0.0)
#: Matrices of low rank start far from their best, and learn on 1,000 images where the paper learns on 20 x 50,000.
LOW_RANKS = "training until low ranks no longer improve"
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
    """Learned stitches of Myrtle CNNs: the two sentences of section 4 on what is lost.

    The paper gives no number for "nearly". We read at most 2.3 points off its Figure 1, by eye, and allow 2.5.
    """
    full, group = (study.tables("myrtle", study.layers("myrtle"), stitch, "learned") for stitch in ("full", "g_relu"))
    section = "Symmetries, section 4"
    return [
        Claim.over("full: worst layer, points", section, '"nearly" the accuracy of the original models',
                   _ordered(full, -1), (-INF, 2.5), seen=True),
        Claim.over("G_ReLU: worst layer but one, points", section, '"within less than 10%" in "all but one layer"',
                   _ordered(group, -2), (-INF, 10)),
    ]  # fmt: skip


def ranking(study: StitchingStudy) -> list[Claim]:
    """Myrtle CNNs: do low ranks cost more than G_ReLU, do ranks count as shares, does the penalty fall at the end?

    Rank 4 of the paper's 64 to 512 channels is, as a share, rank 1 of our 16 to 128: 1/16 to 1/128. Appendix D.3 takes
    ranks for shares, as a heuristic. So the two readings stand side by side, and a test of it with twice our channels.
    The ranks of the paper that have smaller shares have no counterpart here.
    """
    section, layers = "Symmetries, section 4", study.layers("myrtle")
    epochs = study.settings["long_epochs"][-1]
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
            readings[f"{reading}, {name}"] = Claim.over(
                "low rank − G_ReLU, least of the layers, points", section, '"significantly higher"',
                _ordered(gaps, 0), MORE, seen=not more,
            )  # fmt: skip
    rows = side_by_side("the share and how the stitch is fitted", readings)
    rows.append(Claim("shares of the paper's ranks 1 and 2 − G_ReLU", section, '"significantly higher"', None, None,
                      needs="Myrtle CNNs of the published width: here they are less than rank 1"))  # fmt: skip
    wide = study.tables("myrtle_double_width", layers, "rank 4").mean(0)
    narrow, share = (study.tables("myrtle", layers, stitch).mean(0) for stitch in ("rank 4", "rank 2"))
    rows += [
        Claim.over("rank 4: twice as many channels − ours, mean over layers, points",
                   "Symmetries, appendix D.3, ranks", '"in the narrower network low-rank transformations may suffice"',
                   over_pairs(wide - narrow), MORE),
        Claim.over("rank 4 of twice as many channels − rank 2 of ours, mean over layers, points",
                   "ours, of appendix D.3", "ranks count as shares", over_pairs(wide - share), (-5.0, 5.0), kind="own"),
    ]  # fmt: skip
    for stitch, name in (("full", "full"), ("g_relu", "G_ReLU")):
        third, last = (study.table("myrtle", layer, stitch, "learned") for layer in ("relu3", "relu4"))
        what, theirs = f"{name}, learned: relu3 − relu4, points", '"then decrease at the final activation layer"'
        rows.append(Claim.over(what, section, theirs, over_pairs(third - last), MORE))
    return rows


def search(study: StitchingStudy) -> list[Claim]:
    """Alpha, the head start of permutations, the temperature of soft sorting, and the lasso.

    A choice is "not essential" if it costs at most 3 points, as a mean over the layers. Soft sorting is "reasonable"
    within 10 points of doubly stochastic matrices; where it is not even at 1/n, it has not learned for long enough.
    """
    layers, noise, d5 = study.layers("myrtle"), "learned from noise", "Symmetries, appendix D.5"
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
    some, epochs = study.settings["temperature_layers"], study.settings["temperature_epochs"]
    places = f"mean of {' and '.join(some)}"
    soft = np.stack([study.tables("myrtle", some, "soft_sort", noise, temperature=times).mean(0)
                     for times in study.settings["temperatures"]])  # fmt: skip
    middle = study.settings["temperatures"].index(1.0)
    others = np.delete(soft, middle, axis=0) - soft[middle]
    variance = '"substantial variance in the α selected by cross-validation, at all layers"'
    return [
        Claim.over("alpha from 0.001 to 10: span, points", d5, '"not essential"',
                   leaving_out(span, tables.shape[-1]), (-INF, 3)),
        Claim.over("best alphas of the pairs: decades apart, mean over layers", "Symmetries, Figure 14", variance,
                   leaving_out(lambda kept: float(decades(kept).mean()), tables.shape[-1]), (1.0, INF), seen=True),
        Claim.over("best alphas of the pairs: decades apart, least of the layers", "Symmetries, Figure 14", variance,
                   leaving_out(lambda kept: float(decades(kept).min()), tables.shape[-1]), (1.0, INF), seen=True),
        Claim.over("without a head start − with one, mean over layers, points",
                   "Symmetries, appendix D.2.1, head start", '"probably not essential"', over_pairs(start), (-INF, 3)),
        Claim.over(f"soft sorting at temperature 1/n, {epochs} epochs − doubly stochastic matrices, {places}, points",
                   "ours, of appendix D.2.2", "so many epochs are enough",
                   over_pairs(soft[middle] - study.tables("myrtle", some, "g_relu", noise).mean(0)), (-INF, 10),
                   kind="own"),
        Claim.over(f"soft sorting at 0.1/n or 10/n − at 1/n, the lesser, {places}, points",
                   "Symmetries, appendix D.2.2",
                   '"only able to obtain reasonable results" with a temperature near 1/n', _ordered(others, 0), MORE),
        Claim("soft sorting", "Symmetries, appendix D.2.1", '"comparable"', None, None,
              needs="training until soft sorting no longer improves"),
        Claim("lasso − G_ReLU at its sparsity", "Symmetries, appendix D.6",
              '"low stitching penalties for their sparsity levels"', None, None,
              needs="training until the lasso no longer improves, at strengths that reach that sparsity in each layer"),
    ]  # fmt: skip


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
        Claim.over("G_ReLU, closed form: inside − outside, points", d3, 'inside "higher"',
               _inside(study, "resnet20", "g_relu"), MORE),
        Claim.over("full, closed form: inside − outside, points", d3, 'inside "higher"',
               _inside(study, "resnet20", "full"), MORE),
        Claim.over("inside, saved by a stitched shortcut, points", "ours, of E.54", "it saves some",
                   over_pairs(ours - both), (5, INF), **own),
        Claim.over("shortcut: penalty with random channels − with right ones, points", "ours, control",
                   "the right ones help", over_pairs(chance - both), MORE, **own),
    ]  # fmt: skip


def _inside(study: StitchingStudy, kind: str, stitch: str, fit: str = "closed form") -> Interval:
    """Points that a stitch costs inside blocks, fitted in some way, minus those outside, in closed form."""
    inside, outside = _parts(study)
    return over_pairs(study.tables(kind, inside, stitch, fit).mean(0) - study.tables(kind, outside, stitch).mean(0))


def blocks_more(study: StitchingStudy) -> list[Claim]:
    """ResNet20: learned stitches against each other, what remains, no shortcuts, and a second stitch elsewhere."""
    d3 = "Symmetries, appendix D.3"
    chosen = [layer for layer in study.settings["residual_layers"] if inside_block(layer)]
    full, group = (study.tables("resnet20", chosen, stitch, "learned") for stitch in ("full", "g_relu"))
    end, both = (
        study.tables("resnet20", _parts(study)[0], "g_relu", f"closed form, {fit}").mean(0)
        for fit in ("block's end too", "shortcut too")
    )
    own: dict[str, Any] = {"kind": "own", "seen": True}
    return [
        Claim.over("inside: full − G_ReLU, learned: most of the layers, points", d3,
                   'G_ReLU "underperforms all strategies"', _ordered(full - group, -1), LESS),
        Claim("inside: ranks 1 and 2 − G_ReLU", d3, 'G_ReLU "underperforms all strategies"', None, None,
              needs=LOW_RANKS),
        Claim("outside: rank 1 − G_ReLU", d3, 'G_ReLU "consistently outperforms rank 1"', None, None,
              needs=LOW_RANKS),
        Claim.over("shortcut stitched: inside − outside, points", "ours, of E.54", "no difference is left",
                   _inside(study, "resnet20", "g_relu", "closed form, shortcut too"), (-5, 5), **own),
        Claim.over("network without shortcuts: inside − outside, points", "ours, control", "no difference",
                   _inside(study, "plain20", "g_relu"), (-5, 5), **own),
        Claim.over("penalty with a second stitch behind the block − for the shortcut, points",
                   "ours, control", "the shortcut is the better place", over_pairs(end - both), MORE, **own),
        Claim("penalties of ResNet18 − ResNet20", "Symmetries, Figure 7", '"generally lower"', None, None,
              needs="trained ResNet18s of full width, on CIFAR-10"),
        Claim("vision transformers: penalties of G_ReLU", "Symmetries, Figure 12", '"large"', None, None,
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
        Claim.over("no ReLU after additions: G_ReLU beyond the full stitch, points", "Symmetries, Figure 12", '"large"',
               over_pairs(without), (10.0, INF)),
        Claim.over("G_ReLU beyond the full stitch: no ReLU after additions − with one, points",
                   "Symmetries, Figure 12", '"due to the lack of activation functions"', found, MORE),
    ]  # fmt: skip


def leaky_slopes(study: StitchingStudy) -> list[Claim]:
    """LeakyReLU: two networks a slope, here as in the paper.

    Two accuracies have an interval. One pair has none, so penalties decide only what can be asked over the slopes.
    """
    table, figure = "Symmetries, Table 3", "Symmetries, Figure 8"
    kinds = [f"resnet20_slope{slope}" for slope in SLOPES]
    percent = {slope: 100 * np.array([study.accuracies[f"{kind}_{i}"] for i in (0, 1)])
               for slope, kind in zip(SLOPES, kinds, strict=True)}  # fmt: skip
    layers = study.layers(kinds[0])
    costs = np.array([[study.penalty(kind, layer, "g_relu").mean for layer in layers] for kind in kinds])
    slopes = np.array([float(slope) for slope in SLOPES])

    def rising(values: np.ndarray) -> Interval:
        found = leaving_out(lambda kept: float(spearmanr(slopes[kept], values[kept]).statistic), len(slopes))
        return Interval(*np.clip(found, -1, 1).tolist())

    below = costs[:-1].mean(1)
    return [
        Claim.over("accuracy: slope 0.0001 − slope 0.1, points", table, "89.3 and 89.4",
                   student_interval(percent["0.0001"] - percent["0.1"]), (-1, 1), seen=True),
        Claim.over("accuracy: slope 0.1 − slope 1, points", table, "89.4 and 41.8",
                   student_interval(percent["0.1"] - percent["1"]), MORE, seen=True),
        Claim.over("slopes below 1: highest − lowest penalty, means over layers", "Symmetries, section 4",
                   '"similar"', Interval(float(np.ptp(below)), math.nan, math.nan), (-INF, 5), seen=True),
        Claim.over("slope 1, one pair: highest − lowest penalty of the layers, points", figure,
                   'at slope 1 "mostly constant"', Interval(float(np.ptp(costs[-1])), math.nan, math.nan), (-INF, 5),
                   seen=True),
        Claim.over("rank correlation of slope and range of the penalties over the layers, a pair a slope", figure,
                   'at slope 1 "mostly constant"', rising(np.ptp(costs, axis=1)), LESS, seen=True),
        Claim.over("rank correlation of slope and penalty in the last two layers, a pair a slope", figure,
                   'for small slopes "the lowest"', rising(costs[:, -2:].mean(1)), MORE, seen=True),
    ]  # fmt: skip


def bridge(study: StitchingStudy, kind: str) -> list[Claim]:
    """Our hypothesis that linear activations are the harder to permute, over the layers of a network."""
    found, _ = study.rank_correlation(kind)
    what = f"{kind}: rank correlation of score and penalty over the layers"
    return [Claim.over(what, "ours, score and penalty", "they rise together", found, (0.3, INF), kind="own")]


def controls(found: Controls) -> list[Claim]:
    """Learned full stitches from features that no network trained on the task has made.

    :data:`WELL` is the "nearly" of :func:`networks`. A mean over layers says how many of them decide alike by
    themselves. Noise without clusters knows no class, so that its failure is no finding.
    """
    smith, athanasiadis = ("ours, after Smith et al. (2025)", "ours, after Athanasiadis et al. (2026)")
    kinds = ("clustered noise", "other task", "shuffled labels", "untrained")
    gaps = {kind: found.backwards["another seed"] - found.backwards[kind] for kind in kinds}  # (layers, second halves)
    alone = {kind: sum(student_interval(layer).low > 0 for layer in layers) for kind, layers in gaps.items()}
    beyond = {kind: found.lost[kind] - found.lost["another seed"] for kind in kinds[1:]}
    well = {kind: sum(student_interval(layer).high <= WELL for layer in layers) for kind, layers in beyond.items()}

    def row(what: str, source: str, theirs: str, values: np.ndarray, accept: tuple[float, float]) -> Claim:
        return Claim.over(what, source, theirs, student_interval(values), accept, kind="own")

    return [
        row("clustered noise: points lost, last activation", smith, "it is stitched well",
            found.lost["clustered noise"][-1], (-INF, WELL)),
        *(row(f"{kind}: points lost beyond another seed, mean over layers (single layers: {well[kind]} of "
              f"{len(found.layers)} within {WELL})", smith, "any features will do", lost.mean(0), (-INF, WELL))
          for kind, lost in beyond.items()),
        *(row(f"variance explained backwards, mean over layers: another seed − {kind} (single layers: {alone[kind]} "
              f"of {len(found.layers)} above 0)", athanasiadis, "another seed explains more", gaps[kind].mean(0), MORE)
          for kind in gaps),
    ]  # fmt: skip


def merging(found: Averages) -> list[Claim]:
    """The group of the activation decides what may be averaged: what larger groups save. After a look at one pair."""
    ours, own = "ours, after Theus et al. (2025)", {"kind": "own", "seen": True}

    def saved(name: str, one: str, other: str) -> Interval:
        return over_pairs(found.lost[name][one] - found.lost[name][other])

    planted = student_interval(found.untrained["ReLU"]["permutation"])
    return [
        Claim.over("ReLU: points that permuting saves, beside nothing", ours, "some",
               saved("ReLU", "nothing", "permutation"), MORE, **own),
        Claim.over("ReLU: points that scales save, beside permuting", ours, "some",
               saved("ReLU", "permutation", "G_ReLU"), MORE, **own),
        Claim.over("ReLU: points that a rotation, no symmetry of ReLU, saves beside G_ReLU", ours, "none",
               saved("ReLU", "G_ReLU", "orthogonal"), (-INF, 0.0), **own),
        Claim.over("linear: points lost after a rotation", ours, "none",
               over_pairs(found.lost["linear"]["orthogonal"]), (-INF, 0.5), **own),
        Claim.over("linear: points lost after any invertible matrix", ours, "none",
               over_pairs(found.lost["linear"]["invertible"]), (-INF, 0.5), **own),
        Claim.over("ReLU, second network untrained: points lost after permuting", ours, "it must fail", planted,
               (5.0, INF), **own),
    ]  # fmt: skip
