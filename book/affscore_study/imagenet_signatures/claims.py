"""The rows of the chapter's tables of claims: what a source says, our number, its interval, and the range that agrees.

Each function gives the rows of one table; the chapter states each range in words before the table that uses it. The
ranges were set, or set anew, after a first look at the numbers, so every row with a number says so.
``folder`` is that of the stored signatures.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from affscore.signatures import Signature
from affscore_book.decade.collection import Trained
from affscore_book.imagenet_signatures.explained import family_gap, scores, shares
from affscore_book.imagenet_signatures.finding import seeds
from affscore_book.imagenet_signatures.trained import TRAINED, Pairs, climb, skip_gap, strongest_measure, widening
from affscore_book.kit.statistics import Interval, over_pairs, student_interval
from affscore_book.kit.tables import Table
from affscore_study.decade.claims import statistic
from affscore_study.imagenet_signatures.channels import channel_gap
from affscore_study.imagenet_signatures.paper import MEASURES
from affscore_study.kit.claims import HIGHER, LOWER, Claim, side_by_side

__all__ = [
    "channel_claims", "deeper_with_norm", "measure_claims", "own_claims", "pool_claims", "skip_claims", "start_claims",
]  # fmt: skip

#: A mean correlation of this size would be strong. The largest in the paper's Table 2 is 0.44.
STRONG = 0.5
#: The slide on ViTs, and its sentence; and the families of convnets with several networks, of before ViT.
POST_VIT, VIT = "slides, Post-ViT Era, ViT", '"highly non-linear compared to convnets"'
CONVNETS = ("VGG", "ResNet", "DenseNet", "MNASNet", "EfficientNet")
#: What stands for the slides' Resnet152, Densenet161 and Efficientnet B4, and for their VGG16, with norm.
DEEPER, EARLY = ("resnet34", "densenet40", "efficientnet"), "vgg16_bn"

#: A claim with its interval, whose rule was set after a look at the numbers.
_seen = partial(Claim.over, seen=True)


def pool_claims(by_pool: Mapping[str, Mapping[str, Signature]]) -> list[Claim]:
    """Is ViT the most non-linear family? One row a pool; and by the trailing one, is it more so than convnets?

    The whole interval over networks has to lie below -.02.
    """

    def row(what: str, source: str, theirs: str, pool: str, families: Sequence[str] | None = None) -> Claim:
        other, found = family_gap(by_pool[pool], "ViT", families)
        return _seen(f"ViT − {other}, the lowest {what}: {pool} pool", source, theirs, found, LOWER, kind="untrained")

    theirs = '"the most non-linear architectures"'
    rows = [row("other family", "CVPR 2025, section 1", theirs, pool) for pool in by_pool]
    if "trailing" in by_pool:
        rows.append(row("family of convnets before ViT", POST_VIT, VIT, "trailing", CONVNETS))
    return rows


def channel_claims(spatial: Mapping[str, Signature], few: Mapping[str, Mapping[str, float]]) -> list[Claim]:
    """Is ViT more non-linear than MNASNet, by the spatial pool, with all channels and with 50 of each call?

    ``few`` is that of :func:`affscore_study.imagenet_signatures.channels.channel_medians`.
    """
    gaps = {"all channels": family_gap(spatial, "ViT", ["MNASNet"])[1], "50 channels a call": channel_gap(few)}
    rows = {
        name: _seen("ViT − MNASNet: spatial pool", POST_VIT, VIT, gap, LOWER, kind="untrained")
        for name, gap in gaps.items()
    }  # fmt: skip
    return side_by_side("the number of channels", rows)


def skip_claims(resnets: Mapping[int, Signature]) -> list[Claim]:
    """What skips do to a trained ResNet20, seed by seed: a higher score after the addition; modes, by a bandwidth."""
    return [
        _seen("score after the addition − inside the block, trained ResNet20, by seeds", "CVPR 2025, Appendix D",
                   '"much lower" inside', skip_gap(resnets), HIGHER),
        Claim("ResNet20s whose density of scores has two modes", "slides, Residual Connections",
              '"a clear trend toward a bi-modal distribution"', None, None,
              needs="the bandwidth of the slide's densities; two modes are asked for in the decade in miniature"),
    ]  # fmt: skip


def measure_claims(correlations: Table) -> list[Claim]:
    """Is there a measure with a strong consistent correlation with the score, over kinds of trained networks?"""
    strongest, found = strongest_measure(correlations, MEASURES, TRAINED["kinds"])
    return [_seen(f"strongest mean correlation ({strongest}), trained networks, by kinds", "CVPR 2025, Table 2",
                       "-0.44 (norm)", found, (-STRONG, STRONG))]  # fmt: skip


def start_claims(draws: Sequence[Mapping[str, np.ndarray]]) -> list[Claim]:
    """What Figure 11 says of a VGG16 before training; a claim about random weights, asked of random weights.

    ``draws`` holds the scores of its calls for several draws of the weights, those of
    :func:`affscore_study.imagenet_signatures.channels.channel_scores`: with all channels and with 50 of each call.
    """
    rows = []
    for what, theirs, of, accept in (
        ("rank correlation of call and score", '"increasing"', climb, (0.8, math.inf)),
        ("last score", '"almost a perfectly linear pattern"', lambda scores: float(scores[-1]), (0.95, math.inf)),
    ):
        readings = {}
        for name, key in (("all channels", "spatial"), ("50 channels a call", "spatial50")):
            mean, low, high = student_interval([of(scores[key]) for scores in draws])
            found = Interval(mean, low, min(high, 1.0))  # both numbers are at most 1
            readings[name] = _seen(f"{what}, full-size VGG16 at random, photographs, by seeds", "CVPR 2025, Figure 11",
                                   theirs, found, accept)  # fmt: skip
        rows += side_by_side("the number of channels", readings)
    return rows


def own_claims(
    folder: str | os.PathLike[str],
    networks: Mapping[str, Signature],
    pairs: Pairs,
) -> list[Claim]:
    """Our own hypotheses: skips zigzag before training, training widens that, and the start tells more with skips.

    ``networks`` are torchvision's before training; ``pairs`` those of
    :func:`affscore_book.imagenet_signatures.trained.widening_table`.
    """
    told = {}
    for name in ("resnet20", "plain20"):
        told[name] = shares(*(scores(seeds(folder, name, weights)) for weights in ("fashion-mnist", "calibrated")))
        np.fill_diagonal(told[name], np.nan)
    source, gap = "ours, the reason given here", "score after the addition − inside the block"
    return [
        *(claim for name, by_start in pairs.items() for claim in side_by_side("the start", {
            state: _seen(f"{gap}, {name} before training, by seeds", source, "above 0", skip_gap(start), HIGHER,
                         kind="own")
            for state, (start, _) in by_start.items()
        })),
        _seen(f"{gap}, ResNet18 to ResNet152 of torchvision before training", source, "above 0",
                   skip_gap({name: each for name, each in networks.items() if name.startswith("resnet")}), HIGHER,
                   kind="own"),
        *(claim for name, by_start in pairs.items() for claim in side_by_side("the start", {
            state: _seen(f"{gap}, {name}: trained − before training, by seeds", source, "above 0",
                         widening(start, trained), HIGHER, kind="own")
            for state, (start, trained) in by_start.items()
        })),
        _seen("share of the start, ResNet20 − plain20", source, "above 0",
                   over_pairs(told["resnet20"] - told["plain20"]), (0, math.inf), kind="own"),
    ]  # fmt: skip


def deeper_with_norm(decade: Mapping[str, Mapping[int, Trained]]) -> Claim:
    """A control for the slides' Deeper Networks: are deeper ones still the more linear if both sides have batch norm?

    Mean score of each deeper architecture − that of VGG16 with norm, each a mean over its seeds. The interval is over
    the deeper architectures: there is one VGG16. The decade in miniature asks what the slide says, of networks without
    norm.
    """
    level = {name: np.mean([statistic(np.mean, each) for each in decade[name].values()]) for name in (*DEEPER, EARLY)}
    found = student_interval([float(level[name] - level[EARLY]) for name in DEEPER])
    what = "mean score, ResNet34, DenseNet40 and EfficientNet − VGG16 with norm, by deeper architectures: a control"
    return _seen(what, "slides, Deeper Networks", '"increasing linearity (higher scores)"', found, HIGHER)
