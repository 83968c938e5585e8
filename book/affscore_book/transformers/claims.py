"""What the source says of transformers, and what one may expect, asked of MiniLM; set before anything was measured,
but for the rows that say "set after a look".

There is one trained MiniLM, so no interval here says what another training would give. An interval over the four
batches, 128 texts each, says what other text of the kind would give; one over three networks that are not trained says
what another draw of their weights would. Layers of one network are no independent results and give no interval.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.transformers.laws import score_from_means_and_spreads
from affscore_book.transformers.measured import START_SEEDS, MiniLMScores
from affscore_book.transformers.minilm import LAYERS

__all__ = ["attention_effect", "minilm_claims", "minilm_pool_claims", "minilm_text_claims", "minilm_weight_claims"]

#: Two batches of the source differ by this much: less is no change.
NO_CHANGE = (-0.02, 0.02)
#: What a pool may move a score by and be called robust: the widest spread of the slide on pools, 0.03, and more.
ROBUST = (0.0, 0.05)
BELOW, ABOVE = (-math.inf, -0.02), (0.02, math.inf)
OURS = "ours"
LENS = "ours, after CVPR 2025, appendix D"


def _row(
    what: str, source: str, theirs: str, found: Interval, accept: tuple[float, float], seen: bool = False
) -> Claim:
    kind = "source" if source.startswith("slides") else "own"
    return Claim(what, source, theirs, found.mean, accept, interval=found[1:], kind=kind, seen=seen)


def attention_effect(scores: MiniLMScores, trained: bool = True, pool: str = "spatial") -> NDArray[np.float64]:
    """By how much each layer's score rises when its own attention is taken out: (batches or starts, layers).

    Trained: one row for each of the four batches. Otherwise one row for each random start, on the first batch.
    """
    columns = []
    for layer in range(LAYERS):
        change = f"without {layer}"
        if trained:
            gap = scores.batches(pool=pool, change=change) - scores.batches(pool=pool)
        else:
            gap = scores.starts(batch="0", change=change) - scores.starts(batch="0")
        columns.append(gap[:, layer])
    return np.stack(columns, axis=1)


def minilm_claims(scores: MiniLMScores) -> list[Claim]:
    """The four that stand in sight: attention as a lens, the pool, training, the order of words."""
    lens = student_interval(attention_effect(scores).mean(axis=1))
    pools = np.abs(scores.batches(pool="trailing") - scores.batches()).max(axis=1)
    training = scores.of().mean() - scores.starts().mean(axis=1)
    order = scores.batches(kind="shuffled").mean(axis=1) - scores.batches().mean(axis=1)
    return [
        _row("a layer's score without its attention less with it", LENS, "above 0", lens, ABOVE),
        _row("largest change of a score, trailing for spatial pool", "slides, pooling", "robust",
             student_interval(pools), ROBUST, seen=True),
        _row("mean score, trained less random weights", OURS, "below 0", student_interval(training), BELOW, seen=True),
        _row("mean score, words shuffled less as written", OURS, "no change", student_interval(order), NO_CHANGE),
    ]  # fmt: skip


def minilm_weight_claims(scores: MiniLMScores) -> list[Claim]:
    """The size of the weights, the other pool, the lens before training, the laws of the inputs, and depth."""
    size = scores.of().mean() - scores.starts("rearranged").mean(axis=1)
    trailing = scores.of(pool="trailing").mean() - scores.starts(pool="trailing").mean(axis=1)
    tokens = attention_effect(scores, pool="tokens").mean(axis=1)
    before = attention_effect(scores, trained=False).mean(axis=1)
    laws = [score_from_means_and_spreads(layer) for layer in scores.layers["trained 0"]]
    worst = float(np.abs(np.array(laws) - scores.of()).max())
    rows = [
        _row("mean score, trained less rearranged weights", OURS, "below 0", student_interval(size), BELOW),
        _row("mean score, trained less random weights, trailing pool", OURS, "below 0", student_interval(trailing),
             BELOW),
        _row("a layer's score without its attention less with it, every token a sample", LENS, "above 0",
             student_interval(tokens), ABOVE, seen=True),
        _row("a layer's score without its attention less with it, random weights", OURS, "no change",
             student_interval(before), NO_CHANGE),
        Claim("largest distance of a layer's score from that of its means and spreads", OURS, "at most 0.05", worst,
              (0, 0.05), kind="own"),
    ]  # fmt: skip
    for pool in ("spatial", "trailing"):
        ranks = [float(stats.spearmanr(range(LAYERS), row).statistic) for row in scores.batches(pool=pool)]
        found = student_interval(ranks)
        found = Interval(found.mean, max(found.low, -1.0), min(found.high, 1.0))
        rows.append(_row(f"rank correlation of layer and score, {pool} pool", LENS, "above 0", found, (0.02, 1.0)))
    return rows


def minilm_pool_claims(scores: MiniLMScores) -> list[Claim]:
    """The first token, and every token a sample, beside the average over tokens."""
    first = (scores.batches(pool="first") - scores.batches()).mean(axis=1)
    # As many samples on both sides: 512 tokens, 512 texts. Both scores fall with the number of samples.
    tokens = scores.batches(pool="tokens").mean(axis=1) - scores.of().mean()
    return [
        _row("mean score, first token less spatial pool", OURS, "no change", student_interval(first), NO_CHANGE),
        _row("mean score, every token a sample less spatial pool", OURS, "no change", student_interval(tokens),
             NO_CHANGE, seen=True),
    ]  # fmt: skip


def minilm_text_claims(scores: MiniLMScores) -> list[Claim]:
    """Other kinds of text, other lengths, and padding that the pool is not told of."""
    english = scores.batches().mean(axis=1)
    rows = []
    for kind, what in (("code", "code"), ("random", "random tokens")):
        gap = scores.batches(kind=kind).mean(axis=1) - english
        rows.append(_row(f"mean score, {what} less English", OURS, "no change", student_interval(gap), NO_CHANGE))
    for pool in ("spatial", "trailing"):
        gap = (scores.batches(pool=pool, length=96) - scores.batches(pool=pool, length=8)).mean(axis=1)
        what = f"mean score, 96 less 8 tokens, {pool} pool"
        rows.append(_row(what, OURS, "no change", student_interval(gap), NO_CHANGE))
    gap = (scores.batches(length=0, change="padding counted") - scores.batches(length=0)).mean(axis=1)
    rows.append(_row("mean score, padding counted less masked", OURS, "no change", student_interval(gap), NO_CHANGE))
    start = {"weights": "random", "batch": "0"}
    start = {"weights": "random", "batch": "0"}
    starts = [
        float(np.mean([scores.of(kind=kind, seed=seed, **start).mean() for kind in ("code", "random")])
              - scores.of(seed=seed, **start).mean())
        for seed in START_SEEDS
    ]  # fmt: skip
    rows.append(_row("mean score, code and random tokens less English, random weights", OURS, "no change",
                     student_interval(starts), NO_CHANGE))  # fmt: skip
    return rows
