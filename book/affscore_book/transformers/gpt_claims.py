"""What the source says on transformers and on activations, asked of byte decoders.

The source has no language model. Its sentences on vision transformers and on activations become hypotheses here, each
with Student's interval over the seeds. A verdict needs the whole interval; one seed alone decides nothing, nor do seeds
that agree by being equal. What is higher or lower was set before any trained network was measured; that a difference
of scores counts from .02 on was set after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from scipy import stats

from affscore_book.kit.claims import HIGHER, LOWER, Claim
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.transformers.gpt import MLPS
from affscore_book.transformers.gpt_results import GPT_POOLS, Gpts, TrainedGpt

__all__ = [
    "gpt_bits_claims", "gpt_depth_claims", "gpt_level_claims", "gpt_norm_claims", "gpt_pool_claims",
    "gpt_training_claims",
]  # fmt: skip

#: Of correlations and bits; differences of scores have the book's floor.
BELOW, ABOVE = (-math.inf, 0.0), (0.0, math.inf)
#: Two rankings of five networks agree if at most two neighbours have changed places.
SAME_ORDER = (0.9, 1.0)
OURS = "ours, after CVPR 2025, "


def _row(
    what: str, after: str, theirs: str, gpts: Gpts, names: Sequence[str],
    number: Callable[[Mapping[str, TrainedGpt]], float], accept: tuple[float, float], ends: float = math.inf,
) -> Claim:  # fmt: skip
    """A number of the networks of one seed, over the seeds that all of them have; ``ends`` bounds its interval.

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


def _rank(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation, without its last bits: seeds of one order are to be equal."""
    return round(float(stats.spearmanr(one, other).statistic), 9)


def _gap(of: str, to: str, pool: str = "spatial") -> Callable[[Mapping[str, TrainedGpt]], float]:
    """Mean score of one trained network minus that of another."""
    return lambda networks: networks[of].mean(pool) - networks[to].mean(pool)


def gpt_training_claims(gpts: Gpts, pool: str = "spatial") -> list[Claim]:
    """Appendix D's focusing lens: does training bring the inputs of every activation to where it bends?"""

    def moved(name: str) -> Callable[[Mapping[str, TrainedGpt]], float]:
        return lambda networks: networks[name].mean(pool) - networks[name].mean(pool, 0)

    return [
        _row(f"{name}: mean score, {pool} pool, trained − start", OURS + "Appendix D, lens", "below 0", gpts, [name],
             moved(name), LOWER)
        for name in (*MLPS, "gelu without norm", "relu without norm")
    ]  # fmt: skip


def gpt_level_claims(gpts: Gpts) -> list[Claim]:
    """Figure 8: the order of the activations, now with the inputs that training gives them."""
    wanted = (("gelu", "relu"), ("silu", "relu"), ("relu2", "relu"), ("swiglu", "silu"))
    places = ("Figure 8: GELU's range is wide", "Figure 8: SiLU is stronger", "", "")
    return [
        _row(f"mean score, {of} − {to}", OURS + place if place else "ours", "below 0", gpts, [of, to], _gap(of, to),
             LOWER)
        for (of, to), place in zip(wanted, places, strict=True)
    ]  # fmt: skip


def gpt_pool_claims(gpts: Gpts) -> list[Claim]:
    """Does the pool change which activation is the most affine, and the level of one of them?"""

    def order(pool: str) -> Callable[[Mapping[str, TrainedGpt]], float]:
        def rank(networks: Mapping[str, TrainedGpt]) -> float:
            return _rank(*([network.mean(kind) for network in networks.values()] for kind in ("spatial", pool)))

        return rank

    rows = [
        _row(f"rank correlation of five activations, spatial and {pool} pool", "ours", "at least .9", gpts,
             list(MLPS), order(pool), SAME_ORDER, ends=1.0)
        for pool in GPT_POOLS[1:]
    ]  # fmt: skip
    for pool in GPT_POOLS[1:]:

        def lower(networks: Mapping[str, TrainedGpt], pool: str = pool) -> float:
            return networks["gelu"].mean(pool) - networks["gelu"].mean()

        after = OURS + "section 1" if pool == "trailing" else "ours"
        rows.append(_row(f"gelu: mean score, {pool} − spatial pool", after, "below 0", gpts, ["gelu"], lower, LOWER))
    return rows


def gpt_depth_claims(gpts: Gpts) -> list[Claim]:
    """Appendix D on ViT: early layers are the most non-linear, later ones more and more linear."""
    rows = []
    for name in ("gelu", "relu"):
        for pool in GPT_POOLS[:2]:

            def rise(networks: Mapping[str, TrainedGpt], name: str = name, pool: str = pool) -> float:
                scores = networks[name].scores[pool][-1]
                return float(scores[-1] - scores[0])

            rows.append(_row(f"{name}: score, {pool} pool, last − first call", OURS + "Appendix D, ViT", "above 0",
                             gpts, [name], rise, HIGHER))  # fmt: skip
    return rows


def gpt_norm_claims(gpts: Gpts) -> list[Claim]:
    """Without norm the stream grows and GELU's inputs leave the flat part of its bend; ReLU does not know scale."""
    pairs = {name: (f"{name} without norm", name) for name in ("gelu", "relu")}

    def more(networks: Mapping[str, TrainedGpt]) -> float:
        gelu, relu = (abs(_gap(*pairs[name])(networks)) for name in ("gelu", "relu"))
        return gelu - relu

    return [
        _row("gelu: mean score, without norm − with norm", "ours", "below 0", gpts, pairs["gelu"],
             _gap(*pairs["gelu"]), LOWER),
        _row("size of the change of the mean score without norm, gelu − relu", "ours", "above 0", gpts,
             [*pairs["gelu"], *pairs["relu"]], more, HIGHER),
    ]  # fmt: skip


def gpt_bits_claims(gpts: Gpts) -> list[Claim]:
    """Section 4: transformers get better by more non-linearity. Does the more non-linear activation predict better?"""

    def together(pool: str) -> Callable[[Mapping[str, TrainedGpt]], float]:
        def rank(networks: Mapping[str, TrainedGpt]) -> float:
            return _rank(*zip(*((each.mean(pool), each.bits[-1]) for each in networks.values()), strict=True))

        return rank

    def fewer(of: str) -> Callable[[Mapping[str, TrainedGpt]], float]:
        return lambda networks: float(networks[of].bits[-1] - networks["gelu"].bits[-1])

    return [
        *(_row(f"rank correlation of mean score and bits per byte, five activations, {pool} pool",
               OURS + "section 4", "above 0", gpts, list(MLPS), together(pool), ABOVE, ends=1.0)
          for pool in GPT_POOLS[:2]),
        *(_row(f"bits per byte, {of} − gelu", f"ours, after {paper}", "below 0", gpts, [of, "gelu"], fewer(of),
               BELOW)
          for of, paper in (("relu2", "So et al. 2021"), ("swiglu", "Shazeer 2020"))),
    ]  # fmt: skip
