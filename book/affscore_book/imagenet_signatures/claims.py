"""The rows of the chapter's tables of claims: what a source says, our number, its interval, and the range that agrees.

Each function gives the rows of one table; the chapter states each range in words before the table that uses it. The
ranges were set, or set anew, after a first look at the numbers, so every row says so.
``folder`` is that of the stored signatures.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial

import numpy as np
from scipy import stats

from affscore.signature import Signature
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.channels import channel_gap
from affscore_book.imagenet_signatures.explained import family_gap, scores, shares
from affscore_book.imagenet_signatures.finding import seeds
from affscore_book.imagenet_signatures.paper import MEASURES
from affscore_book.imagenet_signatures.trained import (
    TRAINED,
    counted,
    skip_gap,
    strongest_measure,
)
from affscore_book.kit.claims import Claim as AnyClaim
from affscore_book.kit.statistics import over_pairs

__all__ = [
    "measure_claims", "own_claims", "pool_claims", "skip_claims", "start_claims",
]  # fmt: skip

#: A claim whose rule was set after a look at the numbers.
Claim = partial(AnyClaim, seen=True)
#: A mean correlation of this size would be strong. The largest in the paper's Table 2 is 0.44.
STRONG = 0.5


def pool_claims(
    by_pool: Mapping[str, Mapping[str, Signature]],
    few: Mapping[str, Mapping[str, float]] | None = None,
    kind: str = "untrained",
) -> list[AnyClaim]:
    """Is ViT the most non-linear family? One row a pool; the whole interval over networks has to lie below 0.

    ``few``, of :func:`affscore_book.imagenet_signatures.channels.channel_medians`, gives another row: at 50 channels
    a call, is ViT below MNASNet?
    """
    rows = []
    for pool, signatures in by_pool.items():
        other, found = family_gap(signatures, "ViT")
        what = f"ViT less {other}, the lowest other family: {pool} pool"
        rows.append(
            Claim(what, "CVPR 2025, section 1", "below 0", found.mean, (-math.inf, 0), interval=found[1:], kind=kind)
        )
    if few is not None:
        found = channel_gap(few)
        what = "ViT less MNASNet, 50 channels a call: spatial pool"
        rows.append(
            Claim(what, "CVPR 2025, section 1", "below 0", found.mean, (-math.inf, 0), interval=found[1:], kind=kind)
        )
    return rows


def skip_claims(resnets: Mapping[int, Signature]) -> list[AnyClaim]:
    """What skips do to a trained ResNet20, seed by seed: a higher score after the addition; modes, by a bandwidth."""
    gap = skip_gap(resnets)
    return [
        Claim("score after the addition less inside the block, ResNet20", "CVPR 2025, Appendix D", "above 0",
              gap.mean, (0, math.inf), interval=gap[1:]),
        Claim("ResNet20s whose density of scores has two modes", "CVPR 2025, section 4", "all", None, None,
              needs="the bandwidth of the paper's densities"),
    ]  # fmt: skip


def measure_claims(correlations: Table) -> list[AnyClaim]:
    """Is there a measure with a strong consistent correlation with the score, over kinds of trained networks?"""
    strongest = strongest_measure(correlations, MEASURES, TRAINED)
    row = counted(correlations, strongest, TRAINED).row("kinds")
    return [Claim(f"strongest mean correlation ({strongest}), trained networks", "CVPR 2025, Table 2", "-0.44 (norm)",
                  row["mean"], (-STRONG, STRONG), interval=(row["low"], row["high"]))]  # fmt: skip


def start_claims(vgg16: Signature) -> list[AnyClaim]:
    """What Figure 11 says of a VGG16 before training; a claim about random weights, asked of random weights."""
    rising = stats.spearmanr(np.arange(len(vgg16.mean)), vgg16.mean).statistic
    where = "VGG16 before training, photographs"
    return [
        Claim(f"rank correlation of call and score, {where}", "CVPR 2025, Figure 11", "increasing", rising,
              (0.8, math.inf)),
        Claim(f"last score, {where}", "CVPR 2025, Figure 11", "almost perfectly linear", vgg16.mean[-1],
              (0.95, math.inf)),
    ]  # fmt: skip


def own_claims(folder: str | os.PathLike[str], networks: Mapping[str, Signature]) -> list[AnyClaim]:
    """Our own hypotheses: skips zigzag before training, in ``networks`` too, and the start tells more with skips."""
    starts = {name: seeds(folder, name, "calibrated") for name in ("resnet20", "plain20")}
    told = {}
    for name, untrained in starts.items():
        found = shares(scores(seeds(folder, name, "fashion-mnist")), scores(untrained))
        np.fill_diagonal(found, np.nan)
        told[name] = found
    more = over_pairs(told["resnet20"] - told["plain20"])
    gap = skip_gap(starts["resnet20"])
    others = skip_gap(_resnets(networks))
    return [
        Claim("after the addition less inside, untrained ResNet20", "ours, the reason given here", "above 0",
              gap.mean, (0, math.inf), interval=gap[1:], kind="own"),
        Claim("the same, untrained ResNet18 to ResNet152", "ours, the reason given here", "above 0",
              others.mean, (0, math.inf), interval=others[1:], kind="own"),
        Claim("share of the start, ResNet20 less plain20", "ours, the reason given here", "above 0",
              more.mean, (0, math.inf), interval=more[1:], kind="own"),
    ]  # fmt: skip


def _resnets(networks: Mapping[str, Signature]) -> dict[str, Signature]:
    return {name: each for name, each in networks.items() if name.startswith("resnet")}
