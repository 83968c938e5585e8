"""Tests of the source's sentences on transformers, and of our own hypotheses, with MiniLM and two vision transformers.

``claims.toml`` has the sentences and the rules.

There is one trained network of each kind, so no interval here covers other trainings. An interval over four batches
covers other texts or images. An interval over three untrained networks covers other draws of their weights. Layers of
one network are not independent results and give no interval.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.transformers.measured import LAYERS, MiniLMScores, attention_effect
from affscore_book.transformers.vits import BLOCKS, VIT_POOLS, VitScores
from affscore_study.kit.claims import FLOOR, Claim
from affscore_study.kit.rules import Worded, judged
from affscore_study.transformers.laws import score_from_means_and_spreads

__all__ = [
    "minilm_claims", "minilm_pool_claims", "minilm_text_claims", "minilm_weight_claims",
    "permutation_p", "vit_lens_claims", "vit_start_claims",
]  # fmt: skip


def _counted(gaps: NDArray[np.float64]) -> Worded:
    """The mean over layers of values (n, layers), with Student's interval, and words for the single layers."""
    return Worded(student_interval(gaps.mean(axis=1)), {"layers": by_layer(gaps)})


def by_layer(gaps: NDArray[np.float64]) -> str:
    """Words for the numbers of layers that fall and rise by :data:`FLOOR` with the whole interval.

    ``gaps`` has shape (n, layers).

    >>> by_layer(np.array([[-0.10, 0.001, 0.30], [-0.11, 0.002, 0.31]]))
    '(single layers: 1 fall, 1 rise)'
    """
    found = [student_interval(column) for column in gaps.T]
    falls, rises = sum(each.high <= -FLOOR for each in found), sum(each.low >= FLOOR for each in found)
    return f"(single layers: {falls} fall, {rises} rise)"


def permutation_p(values: NDArray[np.float64]) -> float:
    """The share of all orders of ``values`` (n,), n <= 8, in which they rise with their place at least as much as here.

    >>> permutation_p(np.array([0.1, 0.2, 0.4]))  # one order of six
    0.16666666666666666
    """
    ranks, places = stats.rankdata(values), np.arange(len(values))
    orders = np.array(list(itertools.permutations(ranks)))
    return float(np.mean(orders @ places >= ranks @ places - 1e-9))


def minilm_claims(scores: MiniLMScores) -> list[Claim]:
    """Tests with MiniLM of attention as a lens, the pool, training and the order of words."""
    pools = np.abs(scores.batches(pool="trailing") - scores.batches()).max(axis=1)
    training = scores.of().mean() - scores.starts().mean(axis=1)
    order = scores.batches(kind="shuffled").mean(axis=1) - scores.batches().mean(axis=1)
    lens = attention_effect(scores).mean(axis=1)
    found = {"lens": lens, "pool": pools, "training": training, "order": order}
    return judged("transformers", "minilm", {name: student_interval(values) for name, values in found.items()})


def minilm_weight_claims(scores: MiniLMScores) -> list[Claim]:
    """Tests with MiniLM of the size of the weights, other pools, the lens before training, input laws and depth."""
    size = scores.of().mean() - scores.starts("rearranged").mean(axis=1)
    trailing = scores.of(pool="trailing") - scores.starts(pool="trailing")  # (starts, layers)
    tokens = attention_effect(scores, pool="tokens").mean(axis=1)
    before = attention_effect(scores, trained=False).mean(axis=1)
    laws = [score_from_means_and_spreads(layer) for layer in scores.layers["trained 0"]]
    worst = float(np.abs(np.array(laws) - scores.of()).max())
    depth = {}
    for pool in ("spatial", "trailing"):
        layers = scores.of(pool=pool)
        rank, p = stats.spearmanr(range(LAYERS), layers).statistic, permutation_p(layers)
        depth[pool] = Worded(Interval(float(rank), math.nan, math.nan), {"p": f"{p:.3f}"})
    found = {
        "size": student_interval(size),
        "trailing": _counted(trailing),
        "tokens": student_interval(tokens),
        "before": student_interval(before),
        "laws": worst,
        "depth": depth,
    }
    return judged("transformers", "minilm_weights", found)


def minilm_pool_claims(scores: MiniLMScores) -> list[Claim]:
    """Tests of two other pools, the first token and every token as a sample, against the average over tokens."""
    first = scores.batches(pool="first") - scores.batches()
    # Both sides have 512 samples, tokens or texts, because both scores fall with the number of samples.
    tokens = scores.batches(pool="tokens").mean(axis=1) - scores.of().mean()
    return judged("transformers", "minilm_pools", {"first": _counted(first), "tokens": student_interval(tokens)})


def minilm_text_claims(scores: MiniLMScores) -> list[Claim]:
    """Tests of other kinds of text, other lengths, and padding that the pool counts as tokens."""
    trained, random, lengths = {}, {}, {}
    for kind, what in (("code", "code"), ("random", "random tokens")):
        trained[what] = student_interval((scores.batches(kind=kind) - scores.batches()).mean(axis=1))
        gap = (scores.starts(kind=kind, batch="0") - scores.starts(batch="0")).mean(axis=1)
        random[what] = student_interval(gap)
    for pool in ("spatial", "trailing"):
        lengths[pool] = _counted(scores.batches(pool=pool, length=96) - scores.batches(pool=pool, length=8))
    padded = (scores.batches(length=0, change="padding counted") - scores.batches(length=0)).mean(axis=1)
    found = {"kinds": trained, "lengths": lengths, "padding": student_interval(padded), "random": random}
    return judged("transformers", "minilm_texts", found)


def vit_lens_claims(vits: VitScores, pool: str = "spatial") -> list[Claim]:
    """Tests of attention as a lens in two vision transformers, for which the source states it.

    There is one training of each. Batches of pictures are not trainings, so no row has an interval.
    """
    samples = {"spatial": "spatial pool", "tokens": "every token a sample"}[pool]
    found = {network: Interval(float(vits.effect(network, pool).mean()), math.nan, math.nan) for network in BLOCKS}
    return judged("transformers", "vit_lens", {"lens": found}, samples=samples)


def vit_start_claims(vits: VitScores) -> list[Claim]:
    """Tests of attention as a lens before training, over three starts of each vision transformer."""
    rows = []
    for network in BLOCKS:
        found = {pool: student_interval(vits.effect(network, pool, trained=False).mean(axis=1)) for pool in VIT_POOLS}
        rows += judged("transformers", "vit_starts", {"start": found}, network=network)
    return rows
