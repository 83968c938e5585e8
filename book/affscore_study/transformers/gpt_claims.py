"""Tests of the source's sentences on transformers and activations with byte decoders.

``claims.toml`` has the hypotheses and the rules. A number has Student's interval over the seeds. One seed alone decides
nothing, and neither do seeds with equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from scipy import stats

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.transformers.gpt import GPTS, MLPS
from affscore_book.transformers.gpt_results import GPT_POOLS, Gpts, TrainedGpt
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "gpt_bits_claims", "gpt_depth_claims", "gpt_level_claims", "gpt_norm_claims", "gpt_pool_claims",
    "gpt_training_claims",
]  # fmt: skip

Networks = Mapping[str, TrainedGpt]
#: A function that returns a number of the networks of one seed.
Number = Callable[[Networks], float]


def _seeds(gpts: Gpts, names: Iterable[str]) -> list[int]:
    return sorted(set.intersection(*(set(gpts.get(name, {})) for name in names)))


def _over_seeds(gpts: Gpts, names: Sequence[str], number: Number, ends: float = math.inf) -> Interval | str:
    """The mean of a number over the seeds that all of the networks have, with Student's interval cut to ±``ends``.

    If the networks have no seed in common, it is the words for the missing networks. Equal numbers give no interval,
    because ranks of five networks have few values, and three seeds may be equal by chance.
    """
    found = [number({name: gpts[name][seed] for name in names}) for seed in _seeds(gpts, names)]
    if not found:
        return f"trained networks: {', '.join(names)}"
    mean, low, high = student_interval(found) if len(found) > 1 else Interval(found[0], -math.inf, math.inf)
    return Interval(mean, max(low, -ends), min(high, ends)) if not math.isnan(low) else Interval(mean, low, high)


def _in_every_seed(gpts: Gpts, number: Number) -> Worded:
    """The lowest number over the seeds that all activations have, without an interval."""
    names = list(MLPS)
    seeds = _seeds(gpts, names)
    if len(seeds) < 2:
        return Worded(_over_seeds(gpts, names, number, ends=1.0), {"seeds": ""})
    lowest = min(number({name: gpts[name][seed] for name in names}) for seed in seeds)
    return Worded(lowest, {"seeds": f": the lowest of {len(seeds)} seeds"})


def _mean(name: str, pool: str = "spatial", moment: int = -1) -> Number:
    return lambda networks: networks[name].mean(pool, moment)


def _call(name: str, pool: str, at: int) -> Number:
    return lambda networks: float(networks[name].scores[pool][-1][at])


def _bits(name: str) -> Number:
    return lambda networks: float(networks[name].bits[-1])


def _minus(one: Number, other: Number) -> Number:
    return lambda networks: one(networks) - other(networks)


def _rank(one: Callable[[str], Number], other: Callable[[str], Number]) -> Number:
    """Spearman's correlation of two numbers over the activations, rounded so that equal orders give equal numbers."""

    def rank(networks: Networks) -> float:
        columns = ([of(name)(networks) for name in MLPS] for of in (one, other))
        return round(float(stats.spearmanr(*columns).statistic), 9)

    return rank


def gpt_training_claims(gpts: Gpts, pool: str = "spatial") -> list[Claim]:
    """Tests of Appendix D's focusing lens: the change of the mean score of each network by training."""
    found = {name: _over_seeds(gpts, [name], _minus(_mean(name, pool), _mean(name, pool, 0))) for name in GPTS}
    return judged("transformers", "gpt_training", {"lens": found}, pool=pool)


def gpt_level_claims(gpts: Gpts) -> list[Claim]:
    """Tests of the order of the activations in Figure 8, with the inputs that training gives them."""
    pairs = (("gelu", "relu"), ("silu", "relu"), ("relu2", "relu"), ("swiglu", "silu"))
    found = {f"{of} − {to}": _over_seeds(gpts, [of, to], _minus(_mean(of), _mean(to))) for of, to in pairs}
    return judged("transformers", "gpt_levels", {"mean": found})


def gpt_pool_claims(gpts: Gpts) -> list[Claim]:
    """Tests of whether the pool changes the order of the activations, and the level of GELU."""
    pools = GPT_POOLS[1:]
    found = {
        "order": {pool: _in_every_seed(gpts, _rank(_mean, partial(_mean, pool=pool))) for pool in pools},
        "level": {pool: _over_seeds(gpts, ["gelu"], _minus(_mean("gelu", pool), _mean("gelu"))) for pool in pools},
    }
    return judged("transformers", "gpt_pools", found)


def gpt_depth_claims(gpts: Gpts) -> list[Claim]:
    """Tests of Appendix D's sentence that later layers of ViT are more linear: the last layer minus the first."""
    found = {
        f"{name}: score, {pool}": _over_seeds(gpts, [name], _minus(_call(name, pool, -1), _call(name, pool, 0)))
        for name in ("gelu", "relu")
        for pool in GPT_POOLS[:2]
    }
    return judged("transformers", "gpt_depth", {"last": found})


def gpt_norm_claims(gpts: Gpts) -> list[Claim]:
    """Tests of the effect of removing the norm on the score of GELU, alone and compared with that on ReLU."""
    gelu, relu = (_minus(_mean(f"{name} without norm"), _mean(name)) for name in ("gelu", "relu"))
    names = ["gelu without norm", "gelu", "relu without norm", "relu"]
    size = _over_seeds(gpts, names, lambda networks: abs(gelu(networks)) - abs(relu(networks)))
    return judged("transformers", "gpt_norm", {"gelu": _over_seeds(gpts, names[:2], gelu), "size": size})


def gpt_bits_claims(gpts: Gpts) -> list[Claim]:
    """Tests of section 4's sentence that transformers improve by non-linearity: scores and bits per byte."""
    ranks = {pool: _rank(partial(_mean, pool=pool), _bits) for pool in GPT_POOLS[:2]}
    found = {
        "rank": {pool: _over_seeds(gpts, list(MLPS), rank, ends=1.0) for pool, rank in ranks.items()},
        "bits": {of: _over_seeds(gpts, [of, "gelu"], _minus(_bits(of), _bits("gelu"))) for of in ("relu2", "swiglu")},
    }
    return judged("transformers", "gpt_bits", found)
