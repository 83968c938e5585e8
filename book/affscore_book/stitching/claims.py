"""What the sources claim about stitches, beside what the stored networks of the book say: one list a table.

The networks are trained on Fashion-MNIST; Myrtle CNNs have a quarter of the paper's channels. Intervals are those of
:func:`affscore_book.stitching.study.leaving_out`.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendix D ("Symmetries").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import StitchingStudy, leaving_out, over_pairs

__all__ = ["blocks", "blocks_more", "bridge", "leaky_slopes", "networks", "ranking", "search", "signatures"]

INF = math.inf
OFTEN = (0.9, INF)
MORE = (0.0, INF)


def _claim(what: str, source: str, theirs: str, found: Interval, accept: tuple[float, float], **more: Any) -> Claim:
    interval = None if math.isnan(found.low) else (found.low, found.high)
    return Claim(what, source, theirs, found.mean, accept, interval=interval, **more)


def _parts(study: StitchingStudy, chosen: bool = False) -> tuple[list[str], list[str]]:
    """The activations of ResNet20 inside blocks and outside, all or those where stitches were learned."""
    layers = study.settings["residual_layers"] if chosen else study.layers("resnet20")
    return [name for name in layers if inside_block(name)], [name for name in layers if not inside_block(name)]


def _extreme(
    study: StitchingStudy, kind: str, stitch: str, layers: list[str], which: Any, norm: str = "reestimated"
) -> tuple[str, Interval]:
    """The layer where a learned stitch costs least (``min``) or most above G_ReLU, and by how many points."""
    found = {
        layer: over_pairs(
            study.table(kind, layer, stitch, "learned", norm=norm) - study.table(kind, layer, "g_relu", "learned")
        )
        for layer in layers
    }
    layer = which(found, key=lambda name: found[name].mean)
    return layer, found[layer]


def networks(study: StitchingStudy) -> list[Claim]:
    """Learned stitches of Myrtle CNNs: the two sentences of section 4 on what is lost."""
    full, group = (
        sorted(study.penalty("myrtle", layer, stitch, "learned") for layer in study.layers("myrtle"))
        for stitch in ("full", "g_relu")
    )
    return [
        _claim("full: worst layer, points", "Symmetries, Figure 1", "2.3", full[-1], (-INF, 2.5)),
        _claim("G_ReLU: worst layer but one, points", "Symmetries, section 4", "less than 10", group[-2], (-INF, 10)),
    ]


def ranking(study: StitchingStudy) -> list[Claim]:
    """Learned stitches of Myrtle CNNs: which costs less, and where the penalty is highest."""
    rows = []
    for norm, how in (("reestimated", ""), ("kept", ", old statistics")):
        for rank in ("rank 1", "rank 2", "rank 4"):
            layer, found = _extreme(study, "myrtle", rank, study.layers("myrtle"), min, norm)
            what = f"{rank}{how}: less G_ReLU, least at {layer}, points"
            rows.append(_claim(what, "Symmetries, section 4", "significantly higher", found, MORE))
    for stitch, name in (("full", "full"), ("rank 4", "rank 4"), ("rank 2", "rank 2"), ("g_relu", "G_ReLU")):
        third, last = (study.table("myrtle", layer, stitch, "learned") for layer in ("relu3", "relu4"))
        rows.append(
            _claim(f"{name}: relu3 less relu4, points", "Symmetries, section 4", "up, then down",
                   over_pairs(third - last), MORE)
        )  # fmt: skip
    return rows


def search(study: StitchingStudy) -> list[Claim]:
    """Alpha, soft sorting and lasso."""
    layers, noise = study.layers("myrtle"), "learned from noise"
    rows = []
    for largest in (0.1, 10):
        tables = np.stack(
            [study.tables("myrtle", layers, "g_relu", noise, alpha=alpha)
             for alpha in study.settings["alpha"] if alpha <= largest]
        )  # fmt: skip

        def span(kept: np.ndarray, tables: np.ndarray = tables) -> float:
            return float(np.ptp(np.nanmean(tables[..., kept[:, None], kept], axis=(2, 3)), axis=0).mean())

        what = f"alpha from 0.001 to {largest:g}: span, points"
        found = leaving_out(span, tables.shape[-1])
        rows.append(_claim(what, "Symmetries, appendix D.5", "not essential", found, (-INF, 3)))
    needs = "training until soft sorting no longer improves"
    rows.append(Claim("soft sorting", "Symmetries, appendix D.2.1", "comparable", None, None, needs=needs))
    strongest = max(study.settings["lasso"])
    lasso = study.tables("myrtle", layers, "lasso", "learned", strength=strongest).mean(0)
    found = over_pairs(lasso - study.tables("myrtle", layers, "g_relu", "learned").mean(0))
    what = "sparsest lasso less G_ReLU, points"
    return [*rows, _claim(what, "Symmetries, appendix D.6", "G_ReLU is low for its sparsity", found, MORE)]


def blocks(study: StitchingStudy) -> list[Claim]:
    """Closed-form G_ReLU stitches in ResNet20: what a block costs, and what a stitch for its shortcut saves."""
    inside, outside = _parts(study)
    ours = study.tables("resnet20", inside, "g_relu").mean(0)
    both = study.tables("resnet20", inside, "g_relu", "closed form, shortcut too").mean(0)
    gap = over_pairs(ours - study.tables("resnet20", outside, "g_relu").mean(0))
    d3 = "Symmetries, appendix D.3"
    return [
        _claim("G_ReLU, closed form: inside less outside, points", d3, "higher inside", gap, MORE),
        _claim("inside, saved by a stitched shortcut, points", "ours, of E.54", "at least 5", over_pairs(ours - both),
               (5, INF), kind="own"),
    ]  # fmt: skip


def blocks_more(study: StitchingStudy) -> list[Claim]:
    """ResNet20: learned stitches against each other, the full stitch, what remains, and no shortcuts."""
    inside, outside = _parts(study, chosen=True)
    d3, rows = "Symmetries, appendix D.3", []
    known = study.stitches("resnet20", "learned")
    for stitch, theirs, which in (("rank 1", "consistently higher", min), ("rank 2", "sometimes higher", max)):
        if stitch not in known:
            continue
        layer, found = _extreme(study, "resnet20", stitch, outside, which)
        what = f"outside: {stitch} less G_ReLU, {'least' if which is min else 'most'} at {layer}, points"
        rows.append(_claim(what, d3, theirs, found, MORE))
    for stitch in (name for name in known if name != "g_relu"):
        layer, found = _extreme(study, "resnet20", stitch, inside, max)
        what = f"inside: {stitch} less G_ReLU, most at {layer}, points"
        rows.append(_claim(what, d3, "consistently lower", found, (-INF, 0)))
    inside, outside = _parts(study)

    def gap(kind: str, stitch: str, fit: str = "closed form") -> Interval:
        return over_pairs(study.tables(kind, inside, stitch, fit).mean(0) - study.tables(kind, outside, stitch).mean(0))

    limit = abs(gap("resnet20", "g_relu").mean) / 2
    return [
        *rows,
        _claim("full, closed form: inside less outside, points", d3, "higher inside", gap("resnet20", "full"), MORE),
        _claim("shortcut stitched: inside less outside, points", "ours, of E.54", "within 5",
               gap("resnet20", "g_relu", "closed form, shortcut too"), (-5, 5), kind="own"),
        _claim("no shortcuts: inside less outside, points", "ours, control", "less than half", gap("plain20", "g_relu"),
               (-limit, limit), kind="own"),
        Claim("ResNet18: penalties below those of ResNet20", "Symmetries, Figure 7", "lower", None, None,
              needs="trained ResNet18s of full width, on CIFAR-10"),
        Claim("vision transformer: G_ReLU is costly", "Symmetries, Figure 12", "large", None, None,
              needs="trained compact convolutional transformers"),
    ]  # fmt: skip


def leaky_slopes(study: StitchingStudy, kinds: dict[float, str]) -> list[Claim]:
    """LeakyReLU: closed-form G_ReLU stitches by slope. One pair of networks a slope gives no interval."""
    layers = study.layers(kinds[1.0])
    along = {s: np.nanmean(study.tables(kind, layers, "g_relu"), axis=(1, 2)) for s, kind in kinds.items()}
    means = {slope: values.mean() for slope, values in along.items()}
    last = {slope: values[-2:].mean() for slope, values in along.items()}
    small = [slope for slope in kinds if slope <= 0.1]
    span = float(np.ptp([mean for slope, mean in means.items() if slope < 1]))
    steady = float(np.std(along[1.0]) / np.std(along[min(kinds)]))
    end = float(last[1.0] - np.mean([last[slope] for slope in small]))
    d3 = "Symmetries, Figure 8"
    return [
        Claim("slopes up to 0.1: span of mean penalties", d3, "similar", float(np.ptp([means[s] for s in small])),
              (-INF, 10)),
        Claim("all slopes below 1: span of mean penalties", d3, "similar", span, (-INF, 10)),
        Claim("slope 1: std along layers, of that at 0.0001", d3, "mostly constant", steady, (-INF, 0.5)),
        Claim("last two layers: slope 1 less small slopes", d3, "small slopes lowest", end, (5, INF)),
    ]  # fmt: skip


def signatures(study: StitchingStudy) -> list[Claim]:
    """Affinity scores after additions less those inside blocks, with shortcuts and without; intervals over networks."""
    found = {}
    for kind in ("resnet20", "plain20"):
        scores = study.layer_scores(kind)[:, 1:]
        found[kind] = student_interval(scores[:, 1::2].mean(1) - scores[:, ::2].mean(1))
    limit = found["resnet20"].mean / 2
    figure = "CVPR 2025, Figure 7"
    return [
        _claim("with shortcuts: after the addition less inside", figure, "bimodal", found["resnet20"], (0.05, INF)),
        _claim("without: the same difference", figure, "not bimodal", found["plain20"], (-limit, limit)),
    ]


def bridge(study: StitchingStudy, kind: str) -> list[Claim]:
    """Our hypothesis that linear activations are the harder to permute."""
    what = f"{kind}: rank correlation of score and penalty"
    return [_claim(what, "ours, last section", "at least 0.3", study.rank_correlation(kind), (0.3, INF), kind="own")]
