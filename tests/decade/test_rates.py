"""The learning rate: rungs and claims of planted runs, the stored runs, and the script that makes them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from planted_decade import FOLDER, stored, verdicts
from scripts import load_script

from affscore_book.decade import rates
from affscore_book.decade.collection import END
from affscore_book.decade.equal import load_equal
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import FOLLOWED, OTHERS, RATES, SEEDS, RateRun, load_rates
from affscore_book.decade.training import colour_data
from affscore_study.decade import recipe
from affscore_study.kit.claims import FLOOR


def scattered(of_rate: float, of_seed: float) -> list[RateRun]:
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


def rising(by_rate: float, by_year: float) -> list[RateRun]:
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


# --------------------------------------------------------------------------------------------------- the rung


def test_the_rung_of_planted_runs_is_what_was_planted():
    runs = scattered(0.1, 0.01)
    rate, seed = np.mean(list(recipe.recipe_distances(runs).values()), axis=0)
    assert rate == pytest.approx(0.1, abs=0.03) and seed == pytest.approx(0.01, abs=0.004)
    found = recipe.recipe_rung(runs)
    assert found.mean == pytest.approx(rate - seed) and found.low > FLOOR
    found = recipe.recipe_rung(scattered(0.0, 0.03))
    assert found.low < 0 < found.high < FLOOR


def test_accuracy_alone_gives_no_distance_at_equal_accuracy():
    """A difference of accuracy alone gives no distance at equal accuracy."""
    equal, at_end = (recipe.recipe_distances(scattered(0.0, 0.0), equal_accuracy=how) for how in (True, False))
    assert max(map(max, equal.values())) < 1e-12 < 0.005 < np.mean([rate for rate, _ in at_end.values()])


def test_failed_runs_are_left_out():
    runs = scattered(0.02, 0.02)
    broken = replace(runs[0], accuracy=0.5, validation=np.array([0.1, 0.1, 0.1]), scores=np.ones(3))
    nothing = replace(runs[1], accuracy=math.nan, validation=np.zeros(0), scores=np.zeros(0))
    assert broken.failed and nothing.failed
    assert recipe.recipe_rung([broken, nothing, *runs[2:]]) == recipe.recipe_rung(runs[2:])
    with pytest.raises(ValueError, match="no network with two rates and two seeds"):
        recipe.recipe_rung([broken, nothing])


def test_an_accuracy_that_is_never_reached_has_no_score():
    run = RateRun("alexnet", 0.001, 0, 0.9, np.array([0.2, 0.9]), np.array([0.5, 0.7]), math.nan)
    assert math.isnan(recipe.at_accuracy(run, 0.91))
    assert recipe.at_accuracy(run, 0.1) == 0.5 and recipe.at_accuracy(run, 0.9) == 0.7


def test_rate_that_moves_scores_holds_and_other_fails():
    """A rate that moves the scores holds, and one that does not fails."""
    assert verdicts(recipe.rung_claims(rising(0.05, 0.0))) == ["held", "held"]
    assert verdicts(recipe.rung_claims(rising(0.0, 0.05))) == ["failed", "failed"]


def test_power_grows_with_what_there_is_to_find():
    runs = rising(0.05, 0.0)
    nothing, little, much = (recipe.power_of_rung(runs, spread) for spread in (0.0, 0.03, 0.12))
    assert nothing == 0 and little < 0.9 < much


# ------------------------------------------------------------------------------------------------ the best rate


def test_best_rate_is_by_the_first_seed_with_ties():
    """Each network has its own best rate by the first seed, and others within the standard error are as good."""

    def of(*ends: tuple[float, int, float]) -> list[RateRun]:
        return [RateRun("vgg11", rate, seed, 0.9, np.array([last]), np.array([0.5]), 0.5) for rate, seed, last in ends]

    runs = of((0.001, 0, 0.90), (0.002, 0, 0.92), (0.004, 0, 0.92), (0.008, 1, 0.99))
    assert recipe.best_rates(runs) == {"vgg11": 0.002}
    assert recipe.best_rates([replace(runs[1], accuracy=0.5), *runs[2:]]) == {"vgg11": 0.004}
    # Of 5,000 images the standard error of .92 is .0038.
    runs = of((0.001, 0, 0.9155), (0.002, 0, 0.92), (0.004, 0, 0.9165), (0.008, 0, 0.9))
    assert recipe.as_good_rates(runs) == {"vgg11": [0.002, 0.004]}


def test_the_history_is_taken_at_each_networks_own_best_rate():
    """Where a history is planted, its opposite, and one turned around at the best rate, here the highest, only."""
    assert set(verdicts(recipe.claims_by_rate(rising(0.0, 0.05)))) == {"held"}
    assert set(verdicts(recipe.claims_by_rate(rising(0.0, -0.05)))) == {"failed"}
    runs = [replace(run, scores=-run.scores, few=-run.few) if run.rate == RATES[-1] else run
            for run in rising(0.0, 0.05)]  # fmt: skip
    own, *others = recipe.claims_by_rate(runs)[::2]
    assert own.verdict == "failed" and verdicts(others) == ["held"] * 3 + ["failed"]


def test_the_rise_of_a_year_is_what_was_planted_at_each_rate():
    found = recipe.rise_by_rate(rising(0.05, 0.03))
    assert list(found) == list(RATES) and list(found.values()) == pytest.approx([0.03] * len(RATES), abs=0.002)
    gentle = [replace(run, scores=run.scores * 0) if run.rate == RATES[0] else run for run in rising(0.0, 0.03)]
    assert recipe.rise_by_rate(gentle)[RATES[0]] == 0


def test_history_has_networks_trained_at_every_rate():
    """The history has the networks that were trained at every rate."""
    more = [RateRun("resnet34", rate, 0, 0.9, np.array([0.9]), np.array([0.5]), 0.5) for rate in RATES]
    failed = replace(more[-1], accuracy=0.1)
    assert recipe.history_networks(rising(0.0, 0.05) + more[:-1]) == list(FOLLOWED)
    runs = [*rising(0.0, 0.05), *more[:-1], failed]
    assert recipe.history_networks(runs) == [*FOLLOWED, "resnet34"]
    counts = [row.what.split(" networks")[0].split()[-1] for row in recipe.claims_by_rate(runs)[::2]]
    assert counts == ["12", "12", "12", "12", "11"]  # at its own best rate it is there, at the failed one it is not


def test_choices_of_rates_are_those_validation_cannot_tell():
    """The choices of rates are all those that validation cannot tell apart.

    Two networks have two equal rates and the others have one, which makes four choices, the book's among them.
    """
    runs = []
    for run in rising(0.05, 0.03):
        equal = run.name in ("alexnet", "resnet18") and run.rate >= RATES[-2]
        runs.append(replace(run, validation=np.array([0.1, 0.95])) if equal else run)
    found = recipe.choices_of_rates(runs)
    assert len(found) == 4
    assert np.abs(found - recipe.claims_by_rate(runs)[0].ours).min() < 1e-9


def test_the_table_has_the_best_rate_and_counts_the_runs():
    row = recipe.rate_table(rising(0.05, 0.0)).row("vgg11")
    assert row["best rate"] == "0.008" and row["runs"] == len(RATES) * SEEDS
    assert row["0.001"] - row["0.008"] == pytest.approx(0.15, abs=0.02)


# ------------------------------------------------------------------------------- the stored runs and the script


@pytest.fixture(scope="module")
def script():
    return load_script(FOLDER / "rates.py")


def test_script_has_each_run_once(script, tmp_path):
    """The script has each run of the history's networks once, and none that the decade has already."""
    assert {name for name, each in SETTINGS.items() if each.year < 2020} - {"resnet18_no_skips"} == {*FOLLOWED, *OTHERS}
    runs = [(files.network, files.rate, files.seed) for files in script.jobs(tmp_path)]
    assert len(runs) == len(set(runs)) == 3 * 3 * len(FOLLOWED) + 3 * (len(FOLLOWED) - 4) + 3 * len(OTHERS)
    for own in ("result", "checkpoint"):
        assert len({getattr(files, own) for files in script.jobs(tmp_path)}) == len(runs)


def test_gpu_runs_have_files_of_their_own(script, tmp_path):
    """On a GPU, the script has all runs of part one in files of its own."""
    files = {job.result for job in script.jobs(tmp_path, "cuda")}
    assert len(files) == len(FOLLOWED) * len(RATES) * SEEDS
    assert not files & {job.result for job in script.jobs(tmp_path)}


def test_gpu_run_is_preferred_unless_cpu_is_asked_for():
    """Of two runs the one on the GPU is loaded, unless those of the processor are asked for."""
    with_gpu, without = (load_rates(FOLDER, stored(), {}, gpu=gpu) for gpu in (True, False))
    keys = [(run.name, run.rate, run.seed) for run in with_gpu]
    assert len(keys) == len(set(keys)) and len({run.device for run in with_gpu}) == 2
    assert {run.device for run in without} == {"cpu"} and {(run.name, run.rate, run.seed) for run in without} < {*keys}
    count, apart = recipe.device_distance(with_gpu, without)
    assert count == sum(run.device != "cpu" for run in with_gpu) - (len(with_gpu) - len(without)) and 0 < apart < 0.02
    assert recipe.device_distance(without, without)[0] == 0


@pytest.mark.weekly  # what it calls is tested beside it, and the decade's script trains every time
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


def test_diverged_run_is_stored_as_failed(script, tmp_path, monkeypatch):
    """A loss that is not finite is a failed run, and the decade's own runs join."""

    def diverged(*_, **__):
        raise ValueError("the loss of epoch 1 is not finite; the recipe does not fit this network.")

    monkeypatch.setattr(script, "fit_recipe", diverged)
    files = next(iter(script.jobs(tmp_path)))
    script.run(files, colour_data(train=300), 1)
    assert "not finite" in json.loads(files.result.read_text())["failed"]
    equal = load_equal(FOLDER)
    made, *runs = load_rates(tmp_path, stored(), equal)
    assert made.failed and (made.name, made.rate, made.seed) == ("alexnet", 0.001, 0)
    own = {(run.name, run.seed): run for run in runs if run.rate == 0.004}
    assert len(own) == len(runs) and ("densenet28", 1) in own and ("vgg13", 0) not in own
    assert all(len(own["alexnet", seed].validation) > 5 for seed in range(SEEDS))
    assert own["vgg11", 0].few == pytest.approx(np.nanmean(equal["vgg11"].channels[END, rates.FEW]))
    assert np.nanmean(own["vgg11", 0].end) == pytest.approx(own["vgg11", 0].scores[-1])


def test_ladder_has_one_signature_a_rate():
    """The ladder has one signature for each rate, of followed networks alone."""
    give = rates.other_rates(load_rates(FOLDER, stored(), {}))
    for network in (stored()[name][0] for name in ("alexnet", "googlenet")):
        assert [len(scores) for scores in give(network)] == [len(network.end.calls)] * len(RATES)
    assert give(stored()["vit_8"][0]) == []
