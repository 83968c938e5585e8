"""Claims on the learning rate, of planted runs; and the stored runs beside the decade's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted import FOLDER, stored, verdicts

from affscore_book.decade import recipe
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import FOLLOWED, RATES, SEEDS, RateRun, load_rates


def planted(by_rate: float, by_year: float) -> list[RateRun]:
    """Twelve runs a network; scores move by ``by_rate`` from rate to rate and by ``by_year`` from year to year."""
    generator, runs = np.random.default_rng(0), []
    for name in FOLLOWED:
        for at, rate in enumerate(RATES):
            for seed in range(SEEDS):
                score = 0.5 - by_rate * at + by_year * (SETTINGS[name].year - 2012) + generator.normal(0, 0.004)
                reached = 0.9 + 0.01 * at
                runs.append(RateRun(name, rate, seed, reached, np.array([0.1, reached]), np.array([score, score]),
                                    score, np.full(3, score)))  # fmt: skip
    return runs


def test_a_rate_that_moves_scores_holds_and_one_that_does_not_fails():
    assert verdicts(recipe.rung_claims(planted(0.05, 0.0))) == ["held", "held"]
    assert verdicts(recipe.rung_claims(planted(0.0, 0.05))) == ["failed", "failed"]


def test_the_history_is_taken_at_each_networks_own_best_rate():
    """Where a history is planted, its opposite, and one turned around at the best rate, here the highest, only."""
    assert set(verdicts(recipe.claims_by_rate(planted(0.0, 0.05)))) == {"held"}
    assert set(verdicts(recipe.claims_by_rate(planted(0.0, -0.05)))) == {"failed"}
    runs = [replace(run, scores=-run.scores, few=-run.few) if run.rate == RATES[-1] else run
            for run in planted(0.0, 0.05)]  # fmt: skip
    own, *others = recipe.claims_by_rate(runs)[::2]
    assert own.verdict == "failed" and [row.verdict for row in others] == ["held"] * 3 + ["failed"]


def test_the_rung_of_the_ladder_has_one_signature_a_rate_of_followed_networks():
    give = recipe.other_rates(load_rates(FOLDER, stored(), {}))
    for network in (stored()[name][0] for name in ("alexnet", "googlenet")):
        assert [len(scores) for scores in give(network)] == [len(network.end.calls)] * len(RATES)
    assert give(stored()["vit_8"][0]) == []


def test_the_table_has_the_best_rate_and_counts_the_runs():
    rows = {row["network"]: row for row in recipe.rate_table(planted(0.05, 0.0)).rows()}
    assert rows["vgg11"]["best rate"] == "0.008" and rows["vgg11"]["runs"] == len(RATES) * SEEDS
    assert rows["vgg11"]["0.001"] - rows["vgg11"]["0.008"] == pytest.approx(0.15, abs=0.02)


def test_power_grows_with_what_there_is_to_find():
    runs = planted(0.05, 0.0)
    nothing, little, much = (recipe.power_of_rung(runs, spread) for spread in (0.0, 0.03, 0.12))
    assert nothing == 0 and little < 0.9 < much


def test_choices_of_rates_are_all_that_validation_cannot_tell_apart():
    """Two networks have two equal rates, the others one: four choices, the book's among them."""
    runs = []
    for run in planted(0.05, 0.03):
        equal = run.name in ("alexnet", "resnet18") and run.rate >= RATES[-2]
        runs.append(replace(run, validation=np.array([0.1, 0.95])) if equal else run)
    found = recipe.choices_of_rates(runs)
    assert len(found) == 4
    assert np.abs(found - recipe.claims_by_rate(runs)[0].ours).min() < 1e-9
    (only,) = recipe.choices_of_rates(planted(0.05, 0.03))
    assert only == pytest.approx(recipe.claims_by_rate(planted(0.05, 0.03))[0].ours)
