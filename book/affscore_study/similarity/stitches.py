"""Tests of whether a layer that is less similar costs more to stitch: Procrustes and the penalties of stitches.

Section 5 says of four similarities of Myrtle CNNs (Table 2) that this "correlates with the stitching penalties of"
Figure 1. Four layers have 24 orders, so even the perfect one occurs by chance once in 24 times, and four layers can
never decide, however many networks there are. ResNet20 has nineteen layers.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 5, Figure 1 and Table 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import spearmanr

from affscore_book.kit.statistics import Interval, leaving_out
from affscore_book.kit.tables import Table
from affscore_book.similarity.study import PAPER_TABLE_2, SimilarityStudy
from affscore_book.stitching.study import StitchingStudy
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = ["PAPER_FIGURE_1", "against_stitches", "order_share", "stitch_claims"]

#: The points that a stitch costs at the four activations of Myrtle CNNs on CIFAR-10, read off the paper's Figure 1.
PAPER_FIGURE_1 = {
    "full": (1.0, 1.5, 2.3, 2.3),
    "g_relu": (8.1, 7.3, 16.5, 5.6),
}
NAMES = {"full": "full", "g_relu": "G_ReLU"}


def rank_correlation(similarities: Sequence[float] | np.ndarray, penalties: Sequence[float] | np.ndarray) -> float:
    return float(spearmanr(similarities, penalties).statistic)


def order_share(layers: int, correlation: float) -> float:
    """The fraction of all orders of ``layers`` layers whose rank correlation with theirs is at most ``correlation``.

    >>> round(order_share(4, -1.0) * 24), round(order_share(4, -0.8) * 24)
    (1, 4)
    """
    ranks = range(layers)
    found = [rank_correlation(ranks, order) for order in itertools.permutations(ranks)]
    return float(np.mean(np.array(found) <= correlation + 1e-9))


def over_layers(study: SimilarityStudy, stitched: StitchingStudy, layers: np.ndarray) -> Interval:
    """The rank correlation of similarity and stitching penalty over some layers of ResNet20, which ``layers`` masks.

    The similarity is G_ReLU-Procrustes above its null, and the penalty is that of G_ReLU in closed form. The interval
    is the jackknife's over networks, cut to [-1, 1].
    """
    heights = study.heights("resnet20", "relu")[:, layers]
    tables = stitched.tables("resnet20", np.array(study.layers("resnet20"))[layers], "g_relu")

    def statistic(kept: np.ndarray) -> float:
        penalties = np.nanmean(tables[:, kept[:, None], kept], axis=(1, 2))
        return rank_correlation(heights[study.pairs_of("resnet20", kept)].mean(0), penalties)

    return Interval(*np.clip(leaving_out(statistic, study.networks("resnet20")), -1, 1).tolist())


def against_stitches(study: SimilarityStudy, stitched: StitchingStudy) -> Table:
    """A table of rank correlations over four activations of Myrtle CNNs of G_ReLU-Procrustes with stitching penalties.

    Columns: stitch; paper, from its Table 2 and its Figure 1 as read off; ours, not centred, as in the paper's code;
    and ours, centred and above the null. A note gives the number of orders of four layers with the lowest correlations.
    """
    layers = study.layers("myrtle")
    rows = []
    for stitch, theirs in PAPER_FIGURE_1.items():
        ours = np.nanmean(stitched.tables("myrtle", layers, stitch, "learned"), axis=(1, 2))
        rows.append({
            "stitch": NAMES[stitch],
            "paper": rank_correlation(PAPER_TABLE_2["relu_uncentred"], theirs),
            "ours, not centred": rank_correlation(study.procrustes("myrtle", "relu_uncentred")[..., 0].mean(0), ours),
            "ours, above the null": rank_correlation(study.heights("myrtle", "relu").mean(0), ours),
        })  # fmt: skip
    perfect, next_best = (f"{order_share(len(layers), least):.0%}" for least in (-1.0, -0.8))
    note = f"Of all orders of four layers, {perfect} have −1.00, and {next_best} have −0.80 or less."
    return Table.from_rows(rows, notes=[note], digits=2)


def stitch_claims(study: SimilarityStudy, stitched: StitchingStudy) -> list[Claim]:
    """Tests of section 5's sentence on four layers, which cannot decide it, and of ours on the layers of ResNet20."""
    similarities = study.procrustes("myrtle", "relu_uncentred")[..., 0].mean(0)
    tables = stitched.tables("myrtle", study.layers("myrtle"), "g_relu", "learned")
    four = Interval(rank_correlation(similarities, np.nanmean(tables, axis=(1, 2))), math.nan, math.nan)
    inside = study.inside("resnet20")
    places = {"outside": ~inside, "inside": inside}
    resnet20 = {
        where: Worded(over_layers(study, stitched, at), {"activations": str(at.sum())}) for where, at in places.items()
    }
    return judged("similarity", "stitches", {"myrtle": four, "resnet20": resnet20})
