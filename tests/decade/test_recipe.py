"""Claims on the learning rate, of planted runs; and the stored runs beside the decade's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from affscore_book.decade import recipe
from affscore_book.decade.collection import END, load_decade
from affscore_book.decade.equal import load_equal
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import FEW, FOLLOWED, RATES, SEEDS, RateRun, load_rates

FOLDER = Path(__file__).parents[2] / "book" / "data" / "decade"
DECADE = load_decade(FOLDER)


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


def verdicts(claims) -> list[str]:
    return [claim.verdict for claim in claims]


def test_a_rate_that_moves_scores_holds_and_one_that_does_not_fails():
    assert verdicts(recipe.rung_claims(planted(0.05, 0.0))) == ["held", "held"]
    assert verdicts(recipe.rung_claims(planted(0.0, 0.05))) == ["failed", "failed"]


def test_a_planted_history_is_held_at_every_rate_and_its_opposite_fails():
    assert set(verdicts(recipe.claims_by_rate(planted(0.0, 0.05)))) == {"held"}
    assert set(verdicts(recipe.claims_by_rate(planted(0.0, -0.05)))) == {"failed"}


def test_the_history_is_taken_at_each_networks_own_best_rate():
    """Only at the best rate, the highest here, the order of the years is turned around."""
    runs = [replace(run, scores=-run.scores, few=-run.few) if run.rate == RATES[-1] else run
            for run in planted(0.0, 0.05)]  # fmt: skip
    own, *others = recipe.claims_by_rate(runs)[::2]
    assert own.verdict == "failed" and [row.verdict for row in others] == ["held"] * 3 + ["failed"]


def test_the_rung_of_the_ladder_has_one_signature_a_rate_of_followed_networks():
    give = recipe.other_rates(load_rates(FOLDER, DECADE))
    for name in ("alexnet", "googlenet"):
        found = give(DECADE[name][0])
        assert len(found) == len(RATES)
        assert {len(scores) for scores in found} == {len(DECADE[name][0].signatures[END, "spatial"].calls)}
    assert give(DECADE["vit_8"][0]) == []


def test_the_decades_own_runs_bring_their_scores_with_few_channels():
    equal = load_equal(FOLDER)
    (run,) = (run for run in load_rates(FOLDER, DECADE, equal) if (run.name, run.rate, run.seed) == ("vgg11", 0.004, 0))
    assert run.few == pytest.approx(np.nanmean(equal["vgg11"].channels[END, FEW]))
    assert np.nanmean(run.end) == pytest.approx(run.scores[-1])


def test_the_table_has_the_best_rate_and_counts_the_runs():
    rows = {row["network"]: row for row in recipe.rate_table(planted(0.05, 0.0)).rows()}
    assert rows["vgg11"]["best rate"] == "0.008" and rows["vgg11"]["runs"] == len(RATES) * SEEDS
    assert rows["vgg11"]["0.001"] - rows["vgg11"]["0.008"] == pytest.approx(0.15, abs=0.02)


def test_power_grows_with_what_there_is_to_find():
    runs = planted(0.05, 0.0)
    assert recipe.power_of_rung(runs, 0.0) < recipe.power_of_rung(runs, 0.12)


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
