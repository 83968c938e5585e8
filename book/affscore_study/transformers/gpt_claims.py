"""What the source says on transformers and on activations, asked of byte decoders.

The source has no language model. Its sentences on vision transformers and on activations become hypotheses here, each
with Student's interval over the seeds. A verdict needs the whole interval; one seed alone decides nothing, nor do seeds
that agree by being equal. What is higher or lower was set before any trained network was measured; that a difference
of scores counts from .02 on was set after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from scipy import stats

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.transformers.gpt import GPTS, MLPS
from affscore_book.transformers.gpt_results import GPT_POOLS, Gpts, TrainedGpt
from affscore_study.kit.claims import HIGHER, LOWER, Claim

__all__ = [
    "gpt_bits_claims", "gpt_depth_claims", "gpt_level_claims", "gpt_norm_claims", "gpt_pool_claims",
    "gpt_training_claims",
]  # fmt: skip

#: Of correlations and bits; differences of scores have the book's floor.
BELOW, ABOVE = (-math.inf, 0.0), (0.0, math.inf)
#: Two rankings of five networks agree if at most two neighbours have changed places. That is asked of every seed: ranks
#: of five take few values, so that no interval over three seeds would lie in here unless all are 1.
SAME_ORDER = (0.9, 1.0)
OURS = "ours, after CVPR 2025, "


Networks = Mapping[str, TrainedGpt]
#: A number of the networks of one seed.
Number = Callable[[Networks], float]


def _row(
    what: str, after: str, theirs: str, gpts: Gpts, names: Sequence[str], number: Number, accept: tuple[float, float],
    ends: float = math.inf,
) -> Claim:  # fmt: skip
    """A number over the seeds that all of the networks have; ``ends`` bounds its interval.

    Equal numbers give no interval: ranks of five networks take few values, and three seeds are equal by chance.
    """
    seeds = sorted(set.intersection(*(set(gpts.get(name, {})) for name in names)))
    if not seeds:
        return Claim(what, after, theirs, None, accept, needs=f"trained networks: {', '.join(names)}", kind="own")
    found = [number({name: gpts[name][seed] for name in names}) for seed in seeds]
    mean, low, high = student_interval(found) if len(found) > 1 else Interval(found[0], -math.inf, math.inf)
    if not math.isnan(low):
        low, high = max(low, -ends), min(high, ends)
    return Claim(what, after, theirs, mean, accept, interval=(low, high), kind="own", seen=accept in (HIGHER, LOWER))


def _in_every_seed(
    what: str, theirs: str, gpts: Gpts, names: Sequence[str], number: Number, accept: tuple[float, float]
) -> Claim:
    """The lowest number of the seeds, which has no interval; a rule that was set when the numbers were known."""
    row = _row(what, "ours", theirs, gpts, names, number, accept, ends=1.0)
    seeds = sorted(set.intersection(*(set(gpts.get(name, {})) for name in names)))
    if len(seeds) < 2:
        return row
    lowest = min(number({name: gpts[name][seed] for name in names}) for seed in seeds)
    return replace(row, what=f"{what}: the lowest of {len(seeds)} seeds", ours=lowest, interval=None, seen=True)


def _mean(name: str, pool: str = "spatial", moment: int = -1) -> Number:
    return lambda networks: networks[name].mean(pool, moment)


def _call(name: str, pool: str, at: int) -> Number:
    return lambda networks: float(networks[name].scores[pool][-1][at])


def _bits(name: str) -> Number:
    return lambda networks: float(networks[name].bits[-1])


def _minus(one: Number, other: Number) -> Number:
    return lambda networks: one(networks) - other(networks)


def _rank(one: Callable[[str], Number], other: Callable[[str], Number]) -> Number:
    """Spearman's correlation of two numbers over the activations, without its last bits: equal orders are equal."""

    def rank(networks: Networks) -> float:
        columns = ([of(name)(networks) for name in MLPS] for of in (one, other))
        return round(float(stats.spearmanr(*columns).statistic), 9)

    return rank


def gpt_training_claims(gpts: Gpts, pool: str = "spatial") -> list[Claim]:
    """Appendix D's focusing lens: does training bring the inputs of every activation to where it bends?"""
    return [
        _row(f"{name}: mean score, {pool} pool, trained − start", OURS + "Appendix D, lens", "below 0", gpts, [name],
             _minus(_mean(name, pool), _mean(name, pool, 0)), LOWER)
        for name in GPTS
    ]  # fmt: skip


def gpt_level_claims(gpts: Gpts) -> list[Claim]:
    """Figure 8: the order of the activations, now with the inputs that training gives them."""
    wide, stronger = OURS + "Figure 8: GELU's range is wide", OURS + "Figure 8: SiLU is stronger"
    wanted = (("gelu", "relu", wide), ("silu", "relu", stronger), ("relu2", "relu", "ours"), ("swiglu", "silu", "ours"))
    return [
        _row(f"mean score, {of} − {to}", source, "below 0", gpts, [of, to], _minus(_mean(of), _mean(to)), LOWER)
        for of, to, source in wanted
    ]


def gpt_pool_claims(gpts: Gpts) -> list[Claim]:
    """Does the pool change which activation is the most affine, and the level of one of them?"""
    pools = GPT_POOLS[1:]
    return [
        *(_in_every_seed(f"rank correlation of five activations, spatial and {pool} pool", "at least .9", gpts,
                         list(MLPS), _rank(_mean, partial(_mean, pool=pool)), SAME_ORDER) for pool in pools),
        *(_row(f"gelu: mean score, {pool} − spatial pool", OURS + "section 1" if pool == "trailing" else "ours",
               "below 0", gpts, ["gelu"], _minus(_mean("gelu", pool), _mean("gelu")), LOWER) for pool in pools),
    ]  # fmt: skip


def gpt_depth_claims(gpts: Gpts) -> list[Claim]:
    """Appendix D on ViT: early layers are the most non-linear, later ones more and more linear."""
    return [
        _row(f"{name}: score, {pool} pool, last − first call", OURS + "Appendix D, ViT", "above 0", gpts, [name],
             _minus(_call(name, pool, -1), _call(name, pool, 0)), HIGHER)
        for name in ("gelu", "relu") for pool in GPT_POOLS[:2]
    ]  # fmt: skip


def gpt_norm_claims(gpts: Gpts) -> list[Claim]:
    """Without norm the stream grows and GELU's inputs leave the flat part of its bend; ReLU does not know scale."""
    gelu, relu = (_minus(_mean(f"{name} without norm"), _mean(name)) for name in ("gelu", "relu"))
    names = ["gelu without norm", "gelu", "relu without norm", "relu"]
    return [
        _row("gelu: mean score, without norm − with norm", "ours", "below 0", gpts, names[:2], gelu, LOWER),
        _row("size of the change of the mean score without norm, gelu − relu", "ours", "above 0", gpts, names,
             lambda networks: abs(gelu(networks)) - abs(relu(networks)), HIGHER),
    ]  # fmt: skip


def gpt_bits_claims(gpts: Gpts) -> list[Claim]:
    """Section 4: transformers get better by more non-linearity. Does the more non-linear activation predict better?"""
    return [
        *(_row(f"rank correlation of mean score and bits per byte, five activations, {pool} pool",
               OURS + "section 4", "above 0", gpts, list(MLPS), _rank(partial(_mean, pool=pool), _bits), ABOVE,
               ends=1.0) for pool in GPT_POOLS[:2]),
        *(_row(f"bits per byte, {of} − gelu", f"ours, after {paper}", "below 0", gpts, [of, "gelu"],
               _minus(_bits(of), _bits("gelu")), BELOW)
          for of, paper in (("relu2", "So et al. 2021"), ("swiglu", "Shazeer 2020"))),
    ]  # fmt: skip
