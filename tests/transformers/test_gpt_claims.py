"""Each rule agrees with networks that are as it says, disagrees with their contrary, and one seed decides nothing."""

from collections.abc import Callable

import numpy as np
import pytest

from affscore_book.transformers.gpt import GPTS
from affscore_book.transformers.gpt_results import GPT_POOLS, TrainedGpt
from affscore_study.transformers import gpt_claims as claims

#: Mean scores of trained networks of which every rule holds.
LEVELS = {"gelu": 0.5, "relu": 0.55, "silu": 0.52, "relu2": 0.4, "swiglu": 0.45, "gelu without norm": 0.3,
          "relu without norm": 0.54}  # fmt: skip
LOWER = {"spatial": 0.0, "trailing": 0.1, "last": 0.05, "tokens": 0.15}


def planted(name: str, seed: int, levels=LEVELS, lower=LOWER, start: float = 0.9, rise: float = 0.1) -> TrainedGpt:
    draw = np.random.default_rng([sum(map(ord, name)), seed])
    calls = np.linspace(-rise / 2, rise / 2, 4)
    scores = {
        pool: np.array([np.full(4, start), levels[name] - lower[pool] + calls + 0.001 * draw.normal(size=4)])
        for pool in GPT_POOLS
    }
    bits = np.array([8.0, 2 + levels[name] + 0.001 * draw.normal()])
    return TrainedGpt(name, seed, 500_000, np.array([0, 800]), bits, scores)


def every(seeds: int = 3, **how) -> dict[str, dict[int, TrainedGpt]]:
    return {name: {seed: planted(name, seed, **how) for seed in range(seeds)} for name in GPTS}


TABLES: list[Callable] = [
    claims.gpt_training_claims, claims.gpt_level_claims, claims.gpt_pool_claims, claims.gpt_depth_claims,
    claims.gpt_norm_claims, claims.gpt_bits_claims,
]  # fmt: skip


def decided(table: Callable, gpts) -> list:
    """The rows of a table but for those of ranks, which three seeds share."""
    return [claim for claim in table(gpts) if "rank correlation" not in claim.what]


@pytest.mark.parametrize("table", TABLES)
def test_rules_hold_for_planted_networks_and_fail_reversed(table):
    """Networks made after the rules hold all of them, and networks made contrary to them fail all."""
    found = decided(table, every())
    assert {claim.what: claim.verdict for claim in found} == {claim.what: "held" for claim in found}
    contrary = {name: 1 - level for name, level in LEVELS.items()} | {"relu without norm": 0.9}
    upside_down = {pool: -each for pool, each in LOWER.items()}
    gpts = every() if table is claims.gpt_bits_claims else every(
        levels=contrary, lower=upside_down, start=0.1, rise=-0.1)  # fmt: skip
    for name, seeds in gpts.items():
        for network in seeds.values():
            if table is claims.gpt_pool_claims:  # its own contrary: the other pools see another order
                network.scores["spatial"][:] += 2 * LEVELS[name] - 1.2
            if table is claims.gpt_bits_claims:
                network.bits[-1] = 3 - network.mean()
    found = decided(table, gpts)
    assert {claim.what: claim.verdict for claim in found} == {claim.what: "failed" for claim in found}


def test_lowest_rank_of_the_seeds_decides():
    """The lowest rank correlation of the seeds decides, and the rule can be held and can fail.

    Ranks of five take few values: .9 in every seed, or .9 among 1s, is what the rule allows.
    """

    def last(gpts):
        return next(row for row in claims.gpt_pool_claims(gpts) if "spatial and last" in row.what)

    same = claims.gpt_pool_claims(every())[:3]
    assert all(row.ours == pytest.approx(1) and row.interval is None and row.verdict == "held" for row in same)
    gpts = every()
    gpts["silu"][0].scores["last"][:] += 0.04  # above relu in one seed
    assert last(gpts).ours == pytest.approx(0.9) and last(gpts).verdict == "held"
    for name in claims.MLPS:
        gpts[name][0].scores["last"][:] *= -1  # the other way round in one seed
    assert last(gpts).ours < 0.9 and last(gpts).verdict == "failed"


@pytest.mark.parametrize("table", TABLES)
def test_one_seed_decides_nothing_and_missing_networks_are_named(table):
    """One seed leaves every claim undecided, and networks that are not trained are named."""
    found = table(every(seeds=1))
    assert {claim.verdict for claim in found} == {"undecided"}
    for claim in found:  # correlations keep their bounds
        assert claim.interval == ((-1, 1) if "rank correlation" in claim.what else (-np.inf, np.inf))
    for claim in table({}):
        assert claim.verdict == "not run here" and "trained networks: " in claim.needs


def test_only_seeds_that_all_networks_have_are_compared():
    gpts = every()
    del gpts["relu"][2]
    (row, *_) = claims.gpt_level_claims(gpts)
    expected = [planted("gelu", seed).mean() - planted("relu", seed).mean() for seed in (0, 1)]
    assert row.ours == pytest.approx(np.mean(expected), abs=1e-12)
