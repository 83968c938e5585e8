"""Rungs of planted runs, and the script that makes the runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from planted import FOLDER, stored
from scripts import load_script

from affscore_book.decade.collection import END
from affscore_book.decade.equal import load_equal
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import (
    FEW,
    FOLLOWED,
    OTHERS,
    RATES,
    SEEDS,
    RateRun,
    as_good_rates,
    at_accuracy,
    best_rates,
    load_rates,
    recipe_distances,
    recipe_rung,
)
from affscore_book.kit.claims import FLOOR


def planted(of_rate: float, of_seed: float) -> list[RateRun]:
    """Runs whose scores move by these spreads, and rise with accuracy, which each reaches at another moment."""
    generator, runs = np.random.default_rng(1), []
    for name in FOLLOWED:
        shifts = generator.normal(0, of_rate / math.sqrt(2), len(RATES))
        for rate, shift in zip(RATES, shifts, strict=True):
            for seed in range(SEEDS):
                reached = generator.uniform(0.88, 0.93)
                validation = np.array([0.1, 0.5, reached])
                scores = 0.5 + 0.3 * validation + shift + generator.normal(0, of_seed / math.sqrt(2))
                runs.append(RateRun(name, rate, seed, reached, validation, scores, 0.5))
    return runs


def test_the_rung_of_planted_runs_is_what_was_planted():
    runs = planted(0.1, 0.01)
    rate, seed = np.mean(list(recipe_distances(runs).values()), axis=0)
    assert rate == pytest.approx(0.1, abs=0.03) and seed == pytest.approx(0.01, abs=0.004)
    found = recipe_rung(runs)
    assert found.mean == pytest.approx(rate - seed) and found.low > FLOOR
    found = recipe_rung(planted(0.0, 0.03))
    assert found.low < 0 < found.high < FLOOR


def test_a_difference_of_accuracy_alone_is_no_rung_at_equal_accuracy():
    equal, at_end = (recipe_distances(planted(0.0, 0.0), equal_accuracy=how) for how in (True, False))
    assert max(map(max, equal.values())) < 1e-12 < 0.005 < np.mean([rate for rate, _ in at_end.values()])


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


def test_each_network_has_its_own_best_rate_by_the_first_seed_and_others_that_are_as_good():
    runs = [
        RateRun("vgg11", rate, seed, 0.9, np.array([last]), np.array([0.5]), 0.5)
        for rate, seed, last in [(0.001, 0, 0.90), (0.002, 0, 0.92), (0.004, 0, 0.92), (0.008, 1, 0.99)]
    ]
    assert best_rates(runs) == {"vgg11": 0.002}
    failed = [replace(run, accuracy=0.5) if run.rate == 0.002 else run for run in runs]
    assert best_rates(failed) == {"vgg11": 0.004}
    # Of 5,000 images the standard error of .92 is .0038.
    ends = {0.001: 0.9155, 0.002: 0.92, 0.004: 0.9165, 0.008: 0.9}
    runs = [RateRun("vgg11", rate, 0, 0.9, np.array([last]), np.array([0.5]), 0.5) for rate, last in ends.items()]
    assert as_good_rates(runs) == {"vgg11": [0.002, 0.004]}


def test_the_networks_are_those_of_the_history():
    assert {name for name, each in SETTINGS.items() if each.year < 2020} - {"resnet18_no_skips"} == {*FOLLOWED, *OTHERS}


@pytest.fixture(scope="module")
def script():
    return load_script(FOLDER / "rates.py")


def test_the_script_has_each_run_once_and_the_decades_own_not_again(script, tmp_path):
    runs = [(files.network, files.rate, files.seed) for files in script.jobs(tmp_path)]
    assert len(runs) == len(set(runs)) == 3 * 3 * len(FOLLOWED) + 3 * (len(FOLLOWED) - 4) + 3 * len(OTHERS)
    for own in ("result", "checkpoint"):
        assert len({getattr(files, own) for files in script.jobs(tmp_path)}) == len(runs)


def test_a_run_is_stored_and_not_made_again(script, tmp_path, monkeypatch):
    given = ["--smoke", "--epochs", "1", "--out", str(tmp_path), "--only", "alexnet"]
    monkeypatch.setattr(script, "RATES", (0.001,))
    monkeypatch.setattr(script, "SEEDS", 1)
    script.main(given)
    (run,) = load_rates(tmp_path, {}, {})
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
    (run,) = load_rates(tmp_path, {}, {})
    assert run.failed


def test_the_decades_own_runs_join(tmp_path, script):
    with pytest.raises(FileNotFoundError, match=r"rates\.py writes them"):
        load_rates(tmp_path, {}, {})
    files = next(iter(script.jobs(tmp_path)))
    files.result.write_text('{"network": "alexnet", "learning_rate": 0.001, "seed": 0, "failed": "not finite"}')
    equal = load_equal(FOLDER)
    runs = load_rates(tmp_path, stored(), equal)
    own = {(run.name, run.seed): run for run in runs if run.rate == 0.004}
    assert len(own) == len(runs) - 1 and ("densenet28", 1) in own and ("vgg13", 0) not in own
    assert all(len(run.validation) > 5 for run in runs if run.name == "alexnet" and not run.failed)
    assert own["vgg11", 0].few == pytest.approx(np.nanmean(equal["vgg11"].channels[END, FEW]))
    assert np.nanmean(own["vgg11", 0].end) == pytest.approx(own["vgg11", 0].scores[-1])
