"""What the source says of transformers, and what one may expect, asked of MiniLM and of two vision transformers; set
before anything was measured, but for the rows that say "set after a look".

There is one trained network of each, so no interval here says what another training would give. An interval over four
batches says what other texts or images would give; one over three networks that are not trained says what another draw
of their weights would. Layers of one network are no independent results and give no interval.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.transformers.laws import score_from_means_and_spreads
from affscore_book.transformers.measured import MiniLMScores, attention_effect
from affscore_book.transformers.minilm import LAYERS
from affscore_book.transformers.vits import BLOCKS, VIT_POOLS, VitScores
from affscore_study.kit.claims import FLOOR, HIGHER, LOWER, SAME, Claim, side_by_side

__all__ = [
    "minilm_claims", "minilm_pool_claims", "minilm_text_claims", "minilm_weight_claims",
    "permutation_p", "vit_lens_claims", "vit_start_claims",
]  # fmt: skip

#: What a pool may move a score by and be called robust: the widest spread of the slide on pools, 0.03, and more.
ROBUST = (0.0, 0.05)
#: Of one trained network the batches of text are repeated, so that the interval says nothing of other networks.
ONE = "ours, one network, batches of text"
#: And of weights that are not trained three draws, so that it says nothing of other trainings.
DRAWN = "ours, one network, three draws of weights"
STARTS = "ours, three random starts, one batch"
LENS, DEPTH = "CVPR 2025, Appendix D, lens", "ours, after CVPR 2025, Appendix D, ViT"
ATTENTION = "score without a layer's attention − with it, mean over layers"


def _row(
    what: str, source: str, theirs: str, values: NDArray[np.float64], accept: tuple[float, float], seen: bool = False
) -> Claim:
    """A claim on the mean of values (n,), with Student's interval."""
    kind = "own" if source.startswith("ours") else "source"
    return Claim.over(what, source, theirs, student_interval(values), accept, kind=kind, seen=seen)


def by_layer(gaps: NDArray[np.float64]) -> str:
    """How many layers fall and rise by :data:`FLOOR` with the whole interval, of values (n, layers), for a row's words.

    >>> by_layer(np.array([[-0.10, 0.001, 0.30], [-0.11, 0.002, 0.31]]))
    '(single layers: 1 fall, 1 rise)'
    """
    found = [student_interval(column) for column in gaps.T]
    falls, rises = sum(each.high <= -FLOOR for each in found), sum(each.low >= FLOOR for each in found)
    return f"(single layers: {falls} fall, {rises} rise)"


def permutation_p(values: NDArray[np.float64]) -> float:
    """In what share of all orders of values (n,), n <= 8, they rise with their place at least as much as they do.

    >>> permutation_p(np.array([0.1, 0.2, 0.4]))  # one order of six
    0.16666666666666666
    """
    ranks, places = stats.rankdata(values), np.arange(len(values))
    orders = np.array(list(itertools.permutations(ranks)))
    return float(np.mean(orders @ places >= ranks @ places - 1e-9))


def minilm_claims(scores: MiniLMScores) -> list[Claim]:
    """Attention as a lens, the pool, training, the order of words."""
    pools = np.abs(scores.batches(pool="trailing") - scores.batches()).max(axis=1)
    training = scores.of().mean() - scores.starts().mean(axis=1)
    order = scores.batches(kind="shuffled").mean(axis=1) - scores.batches().mean(axis=1)
    return [
        _row(f"MiniLM, {ATTENTION}", f"ours, after {LENS}", "above 0", attention_effect(scores).mean(axis=1), HIGHER),
        _row("largest change of a score, trailing for spatial pool", "slides, pooling", '"robust"', pools, ROBUST,
             seen=True),
        _row("mean score: trained − random weights", DRAWN, "below 0", training, LOWER, seen=True),
        _row("mean score: words shuffled − as written", ONE, "no change", order, SAME),
    ]  # fmt: skip


def minilm_weight_claims(scores: MiniLMScores) -> list[Claim]:
    """The size of the weights, the other pool, the lens before training, the laws of the inputs, and depth."""
    size = scores.of().mean() - scores.starts("rearranged").mean(axis=1)
    trailing = scores.of(pool="trailing") - scores.starts(pool="trailing")  # (starts, layers)
    tokens = attention_effect(scores, pool="tokens").mean(axis=1)
    before = attention_effect(scores, trained=False).mean(axis=1)
    laws = [score_from_means_and_spreads(layer) for layer in scores.layers["trained 0"]]
    worst = float(np.abs(np.array(laws) - scores.of()).max())
    rows = [
        _row("mean score: trained − rearranged weights", DRAWN, "below 0", size, LOWER),
        _row(f"mean score, trailing pool: trained − random weights {by_layer(trailing)}", DRAWN, "below 0",
             trailing.mean(axis=1), LOWER),
        _row(f"MiniLM, {ATTENTION}, every token a sample", f"ours, after {LENS}", "above 0", tokens, HIGHER, seen=True),
        _row(f"MiniLM, random weights, batch 0, {ATTENTION}", f"ours, after {LENS}", "no change", before, SAME),
        Claim("largest distance of a layer's score from that of its means and spreads", "ours", "at most 0.05", worst,
              (0, 0.05), kind="own"),
    ]  # fmt: skip
    for pool in ("spatial", "trailing"):
        layers = scores.of(pool=pool)
        rank, p = stats.spearmanr(range(LAYERS), layers).statistic, permutation_p(layers)
        what = f"rank correlation of layer and score, {pool} pool (one network; p = {p:.3f} of its layers' orders)"
        found = Interval(float(rank), math.nan, math.nan)
        rows.append(Claim.over(what, DEPTH, "above 0", found, (0.0, 1.0), kind="own"))
    return rows


def minilm_pool_claims(scores: MiniLMScores) -> list[Claim]:
    """The first token, and every token a sample, beside the average over tokens."""
    first = scores.batches(pool="first") - scores.batches()
    # As many samples on both sides: 512 tokens, 512 texts. Both scores fall with the number of samples.
    tokens = scores.batches(pool="tokens").mean(axis=1) - scores.of().mean()
    return [
        _row(f"mean score: first token − spatial pool {by_layer(first)}", ONE, "no change", first.mean(axis=1), SAME),
        _row("mean score: every token a sample − spatial pool", ONE, "no change", tokens, SAME, seen=True),
    ]


def minilm_text_claims(scores: MiniLMScores) -> list[Claim]:
    """Other kinds of text, other lengths, and padding that the pool is not told of."""
    trained, random, lengths = [], [], []
    for kind, what in (("code", "code"), ("random", "random tokens")):
        gap = (scores.batches(kind=kind) - scores.batches()).mean(axis=1)
        trained.append(_row(f"mean score: {what} − English", ONE, "no change", gap, SAME))
        gap = (scores.starts(kind=kind, batch="0") - scores.starts(batch="0")).mean(axis=1)
        what = f"mean score, random weights, batch 0: {what} − English"
        random.append(_row(what, STARTS, "no change", gap, SAME, seen=True))
    for pool in ("spatial", "trailing"):
        gaps = scores.batches(pool=pool, length=96) - scores.batches(pool=pool, length=8)
        what = f"mean score, {pool} pool: 96 − 8 tokens {by_layer(gaps)}"
        lengths.append(_row(what, ONE, "no change", gaps.mean(axis=1), SAME))
    gap = (scores.batches(length=0, change="padding counted") - scores.batches(length=0)).mean(axis=1)
    padding = _row("mean score: padding counted − masked", ONE, "no change", gap, SAME)
    return [*trained, *lengths, padding, *random]


def vit_lens_claims(vits: VitScores, pool: str = "spatial") -> list[Claim]:
    """The lens, where the source has it: in two vision transformers.

    There is one training of each. Batches of pictures are no trainings, so that no row has an interval.
    """
    samples = {"spatial": "spatial pool", "tokens": "every token a sample"}[pool]
    rows = {
        network: Claim.over(f"ViT in one training of each, {ATTENTION}, {samples}", LENS, '"act as a focusing lens"',
                            Interval(float(vits.effect(network, pool).mean()), math.nan, math.nan), HIGHER, seen=True)
        for network in BLOCKS
    }  # fmt: skip
    return side_by_side("the network", rows)


def vit_start_claims(vits: VitScores) -> list[Claim]:
    """Is the lens there before training? Over three starts of each."""
    return [
        _row(f"{network} at its start, {ATTENTION}, {pool}", f"ours, after {LENS}", "no change",
             vits.effect(network, pool, trained=False).mean(axis=1), SAME, seen=True)
        for network in BLOCKS for pool in VIT_POOLS
    ]  # fmt: skip
