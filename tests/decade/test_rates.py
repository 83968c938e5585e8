"""Rungs of planted runs, the power of the rule, and the script that makes the runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripts import load_script

from affscore_book.decade.collection import load_decade
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import (
    FOLLOWED,
    OTHERS,
    RATES,
    SEEDS,
    RateRun,
    as_good_rates,
    at_accuracy,
    best_rates,
    load_rates,
    power,
    recipe_rung,
    year_correlation,
)
from affscore_book.kit.claims import FLOOR

FOLDER = Path(__file__).parents[2] / "book" / "data" / "decade"


def planted(of_rate: float, of_seed: float, names=FOLLOWED) -> list[RateRun]:
    """Runs whose scores move by these spreads, and rise with accuracy, which each reaches at another moment."""
    generator, runs = np.random.default_rng(1), []
    for name in names:
        shifts = generator.normal(0, of_rate / math.sqrt(2), len(RATES))
        for rate, shift in zip(RATES, shifts, strict=True):
            for seed in range(SEEDS):
                reached = generator.uniform(0.88, 0.93)
                validation = np.array([0.1, 0.5, reached])
                scores = 0.5 + 0.3 * validation + shift + generator.normal(0, of_seed / math.sqrt(2))
                runs.append(RateRun(name, rate, seed, reached, validation, scores, 0.5))
    return runs


def test_the_rung_of_planted_runs_is_what_was_planted():
    found = recipe_rung(planted(0.1, 0.01))
    assert found["rate"].mean == pytest.approx(0.1, abs=0.03) and found["seed"].mean == pytest.approx(0.01, abs=0.004)
    assert found["rate − seed"].low > FLOOR


def test_without_an_effect_of_the_rate_the_rung_is_that_of_a_seed():
    found = recipe_rung(planted(0.0, 0.03))["rate − seed"]
    assert found.low < 0 < found.high < FLOOR


def test_a_difference_of_accuracy_alone_is_no_rung_at_equal_accuracy():
    runs = planted(0.0, 0.0)
    assert recipe_rung(runs)["rate"].mean < 1e-12 < 0.005 < recipe_rung(runs, equal_accuracy=False)["rate"].mean


def test_failed_runs_are_left_out():
    runs = planted(0.02, 0.02)
    broken = replace(runs[0], accuracy=0.5, validation=np.array([0.1, 0.1, 0.1]), scores=np.ones(3))
    nothing = replace(runs[1], accuracy=math.nan, validation=np.zeros(0), scores=np.zeros(0))
    assert broken.failed and nothing.failed
    assert recipe_rung([broken, nothing, *runs[2:]]) == recipe_rung(runs[2:])
    with pytest.raises(ValueError, match="no network with two rates and two seeds"):
        recipe_rung([broken, nothing])


def test_an_accuracy_that_is_never_reached_has_no_score():
    run = RateRun("alexnet", 0.001, 0, 0.9, np.array([0.2, 0.9]), np.array([0.5, 0.7]), math.nan)
    assert math.isnan(at_accuracy(run, 0.91)) and at_accuracy(run, 0.1) == 0.5 and at_accuracy(run, 0.9) == 0.7


def test_each_network_has_its_own_best_rate_by_the_first_seed():
    runs = [
        RateRun("vgg11", rate, seed, 0.9, np.array([last]), np.array([0.5]), 0.5)
        for rate, seed, last in [(0.001, 0, 0.90), (0.002, 0, 0.92), (0.004, 0, 0.92), (0.008, 1, 0.99)]
    ]
    assert best_rates(runs) == {"vgg11": 0.002}
    failed = [replace(run, accuracy=0.5) if run.rate == 0.002 else run for run in runs]
    assert best_rates(failed) == {"vgg11": 0.004}


def test_rates_within_the_standard_error_of_the_best_are_as_good():
    runs = [
        RateRun("vgg11", rate, 0, 0.9, np.array([last]), np.array([0.5]), 0.5)
        for rate, last in [(0.001, 0.8950), (0.002, 0.8965), (0.004, 0.9), (0.008, 0.8955)]
    ]  # of 5,000 images the standard error is 0.0042
    assert as_good_rates(runs) == {"vgg11": [0.002, 0.004]}
    assert as_good_rates(runs, 10**6) == {"vgg11": [0.004]}


def test_a_planted_history_is_found_and_a_shuffled_one_is_not():
    names = FOLLOWED + OTHERS
    years = {name: SETTINGS[name].year for name in names}
    rates = dict.fromkeys(names, 0.001)
    runs = [
        RateRun(name, 0.001, 0, 0.9, np.array([0.9]), np.array([0.01 * years[name]]), 0.5 + 0.1 * (len(name) % 3))
        for name in names
    ]
    found = year_correlation(runs, years, rates, lambda run: run.scores[-1])
    assert found.mean == pytest.approx(1) and (math.isnan(found.low) or found.low > 0)
    other = year_correlation(runs, years, rates, lambda run: run.few)
    assert other.low < 0 < other.high <= 1


def test_the_rule_has_power_and_does_not_find_what_is_not_there():
    spreads = [0.005, 0.01]
    assert power(spreads, 0.0, floor=FLOOR, draws=100) == 0
    assert power(spreads, 0.03, floor=FLOOR, draws=100) < power(spreads, 0.06, floor=FLOOR, draws=100)
    assert power(spreads, 0.12, floor=FLOOR, draws=100) > 0.9


def test_the_networks_are_those_of_the_history():
    assert {name for name, each in SETTINGS.items() if each.year < 2020} - {"resnet18_no_skips"} == {*FOLLOWED, *OTHERS}


@pytest.fixture(scope="module")
def script():
    return load_script(FOLDER / "rates.py")


def test_the_script_has_each_run_once_and_the_decades_own_not_again(script, tmp_path):
    runs = [(files.network, files.rate, files.seed) for files in script.jobs(tmp_path)]
    assert len(runs) == len(set(runs)) == 3 * 3 * len(FOLLOWED) + 3 * (len(FOLLOWED) - 4) + 3 * len(OTHERS)
    assert len({files.result for files in script.jobs(tmp_path)}) == len(runs)
    assert len({files.checkpoint for files in script.jobs(tmp_path)}) == len(runs)


def test_a_run_is_stored_and_not_made_again(script, tmp_path, monkeypatch):
    given = ["--smoke", "--epochs", "2", "--out", str(tmp_path), "--only", "alexnet"]
    monkeypatch.setattr(script, "RATES", (0.001,))
    monkeypatch.setattr(script, "SEEDS", 1)
    script.main(given)
    (run,) = load_rates(tmp_path, {})
    assert (run.name, run.rate, run.seed) == ("alexnet", 0.001, 0) and run.failed
    assert len(run.validation) == len(run.scores) > 3 and 0 < run.few < 1
    assert list((tmp_path / "rates" / "work").iterdir()) == []
    monkeypatch.setattr(script, "run", lambda *_: pytest.fail("made again"))
    script.main(given)


def test_a_loss_that_is_not_finite_is_a_failed_run(script, tmp_path, monkeypatch):
    def diverged(*_, **__):
        raise ValueError("the loss of epoch 1 is not finite; the recipe does not fit this network.")

    monkeypatch.setattr(script, "fit_recipe", diverged)
    files = next(iter(script.jobs(tmp_path)))
    script.run(files, script.colour_data(train=300), 1)
    assert "not finite" in json.loads(files.result.read_text())["failed"]
    (run,) = load_rates(tmp_path, {})
    assert run.failed


def test_the_decades_own_runs_join(tmp_path, script):
    files = next(iter(script.jobs(tmp_path)))
    files.result.write_text('{"network": "alexnet", "learning_rate": 0.001, "seed": 0, "failed": "not finite"}')
    runs = load_rates(tmp_path, load_decade(FOLDER))
    own = [(run.name, run.seed) for run in runs if run.rate == 0.004]
    assert own.count(("alexnet", 0)) == 1 and ("densenet28", 1) in own and ("vgg13", 0) not in own
    assert all(len(run.validation) > 5 for run in runs if run.name == "alexnet" and not run.failed)


def test_missing_runs_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"rates\.py writes them"):
        load_rates(tmp_path, {})
