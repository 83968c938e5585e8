"""Does a measure know the loss that training does not mend? Planted losses, the quarters and the runs (P2)."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from scripts import load_script
from torch import nn

from affscore_book.uses.mended import MENDED, load_measures, load_mended
from affscore_book.uses.replacing import ChannelLine, calls_of, fit_lines, run_replaced
from affscore_study.uses import mending, mending_tables
from affscore_study.uses.finetuning import Straightened
from affscore_study.uses.mending import (
    CONTROL_RUNS,
    FEWEST,
    LEAST_KNOWN,
    PREDICTORS,
    QUARTERS,
    quarters_of,
    removable,
)

USES = Path(__file__).parents[2] / "book" / "data" / "uses"
NAMES = list(PREDICTORS)


def made_up(weights, noise=0.0, quarters=QUARTERS, twins=False):
    """Networks of 16 calls; a removal loses the weighted sum of the predictors' ranks, and as much noise of ranks.

    ``weights(family, rng)`` gives the weights of score, R², divergence and position. With ``twins`` R² is the score.
    """
    found = {}
    for place, (name, family) in enumerate(MENDED.items()):
        rng = np.random.default_rng(place)
        score, r2, cost = rng.uniform(0.2, 0.9, (3, 16))
        r2 = score if twins else r2
        calls = [
            {"name": f"relu:relu[{at}]", "position": at, "score": score[at], "r2": r2[at], "kl": cost[at]}
            for at in range(16)
        ]
        gone = quarters_of(name, range(16))[:quarters]
        sums = np.array([[sum(of(calls[at]) for at in some) for some in gone] for of in PREDICTORS.values()])
        ranks = stats.rankdata(sums, axis=1) / len(gone)
        loss = weights(family, rng) @ ranks + noise * rng.uniform(size=len(gone))
        runs = [{"gone": some, "before": 0.5, "after": 0.9 - 0.01 * x} for some, x in zip(gone, loss, strict=True)]
        control = [{"before": 0.9, "after": 0.9 + 0.001 * at} for at in range(CONTROL_RUNS)]
        found[name] = {"calls": calls, "control": control, "quarters": runs}
    return found


def follows(at):
    return lambda family, rng: np.eye(4)[at]


def test_loss_that_follows_the_score_is_predicted_by_it():
    """A loss that follows the score is predicted by it, and less so by another measure."""
    runs = made_up(follows(0), noise=1.0)
    first, second = mending.mending_claims(runs)
    assert (first.verdict, second.verdict) == ("held", "held") and 0.4 < second.ours < first.ours < 1
    assert mending.mending_verdict(runs) == "the score knows the loss that training does not mend"


def test_independent_loss_fails_and_ends_the_questions():
    """If the loss is independent of the score, the first claim fails and the second is not asked."""
    runs = made_up(lambda family, rng: np.array([0, 0, 0, 0]), noise=1.0)
    first, second = mending.mending_claims(runs)
    assert (first.verdict, second.verdict) == ("failed", "not run here") and second.needs.startswith("the first")
    assert mending.mending_verdict(runs) == f"it does not (a mean below {LEAST_KNOWN} is shown)"


def test_families_that_do_not_agree_leave_it_undecided():
    runs = made_up(lambda family, rng: np.eye(4)[0] * (1 if family in ("VGG", "ResNet", "ViT", "Swin") else -1))
    found = mending.mending_claims(runs)[0]
    assert found.verdict == mending.mending_verdict(runs) == "undecided" and found.ours == pytest.approx(1 / 3)


def test_small_positive_mean_is_not_held():
    """A mean that is surely positive but smaller than what would be of use is not held.

    The loss is known to about .15 in each family, with little scatter, so its interval lies between 0 and the least.
    """
    runs = made_up(follows(0))
    for place, network in enumerate(runs.values()):
        order = np.argsort([-run["after"] for run in network["quarters"]])
        rng, goal = np.random.default_rng(place), 0.1 + 0.005 * place
        while abs(stats.spearmanr(shuffled := rng.permutation(QUARTERS), range(QUARTERS)).statistic - goal) > 0.005:
            pass
        for rank, at in zip(shuffled, order, strict=True):
            network["quarters"][at]["after"] = 0.9 - 0.001 * rank
    found = mending.mending_claims(runs)[0]
    assert found.verdict == "failed" and found.interval[0] > 0 and found.interval[1] < LEAST_KNOWN


def test_a_twin_of_the_score_is_not_told_apart_from_it():
    second = mending.mending_claims(made_up(follows(0), noise=1.0, twins=True))[1]
    assert second.ours == 0 and second.verdict == "not shown" and math.isnan(second.interval[0])


def test_a_familys_networks_are_averaged_and_families_count_once():
    runs = made_up(lambda family, rng: np.eye(4)[0])
    for name in ("vgg11", "vgg16"):
        for run in runs[name]["quarters"]:
            run["after"] = 1 - run["after"]
    expected = (5 + (1 - 1 - 1) / 3) / 6
    assert mending.mending_claims(runs)[0].ours == pytest.approx(expected)


def test_the_control_moves_no_correlation_and_all_losses():
    runs = made_up(follows(0), noise=1.0)
    before, table = mending.mending_claims(runs), mending_tables.loss_table(runs).rows()
    for run in runs["vit_8"]["control"]:
        run["after"] += 0.05
    after = {row["network"]: row for row in mending_tables.loss_table(runs).rows()}
    assert mending.mending_claims(runs) == before
    for row in table:
        moved = 5.0 * (row["network"] == "vit_8")
        assert after[row["network"]]["lost after"] == pytest.approx(row["lost after"] + moved)
        assert row["by order"] == pytest.approx(0.1) and after[row["network"]]["SD"] == pytest.approx(row["SD"])


def test_failed_trainings_are_counted_and_left_out():
    runs = made_up(follows(0))
    runs["swin"]["quarters"][3] = {"gone": [0, 1, 2, 3], "before": 0.1, "failed": "the loss of epoch 1 is not finite"}
    row = mending_tables.loss_table(runs).rows()[-1]
    assert (row["network"], row["quarters"], row["failed"]) == ("swin", QUARTERS - 1, 1)
    assert mending.mending_claims(runs)[0].ours == pytest.approx(1)


@pytest.mark.parametrize("there", [0, FEWEST - 1])
def test_too_few_quarters_are_not_judged(there):
    runs = made_up(follows(0))
    runs["vgg16"]["quarters"] = runs["vgg16"]["quarters"][:there]
    assert {row.verdict for row in mending.mending_claims(runs)} == {"not run here"}
    assert mending.mending_verdict(runs) == "not run yet"
    with pytest.raises(ValueError, match=f"runs has {there} quarters of each network"):
        mending_tables.predictor_table(runs)


def test_losses_need_two_controls():
    runs = made_up(follows(0))
    for network in runs.values():
        network["control"] = network["control"][:1]
    with pytest.raises(ValueError, match="runs has no network with two controls"):
        mending_tables.loss_table(runs)


def test_quarters_that_one_network_lacks_are_left_out_of_all():
    runs = made_up(follows(0))
    runs["vgg16"]["quarters"] = runs["vgg16"]["quarters"][:FEWEST]
    for run in runs["vit_8"]["quarters"][FEWEST:]:
        run["after"] = 1 - run["after"]
    found = mending.mending_claims(runs)[0]
    assert found.ours == pytest.approx(1) and found.what.endswith(f"(first {FEWEST} quarters)")


def test_each_predictor_has_a_row_for_each_network():
    """Each predictor is shown for each network and over families."""
    rows = mending_tables.predictor_table(made_up(follows(2), noise=0.5)).rows()
    assert [row["network"] for row in rows] == [*MENDED, "mean"]
    assert all(float(row["single divergence"]) > 0.8 for row in rows[:-1])
    assert rows[-1]["single divergence"].endswith("]")


def test_a_family_that_does_not_agree_shows_where_it_is_left_out():
    """The loss follows the score everywhere but in Swin, where it follows its opposite."""
    runs = made_up(follows(0))
    for run in runs["swin"]["quarters"]:
        run["after"] = 1 - run["after"]
    for network in runs.values():
        for run in network["quarters"]:
            run["cross_entropy"] = run["after"]
    means = {row["reading"]: float(row["mean"].split()[0]) for row in mending_tables.other_readings(runs).rows()}
    assert means["without Swin"] == pytest.approx(1) and means["without ViT"] == pytest.approx(0.6)
    assert means["over networks"] == pytest.approx(0.75) and means["cross-entropy after training"] < 0


@pytest.mark.parametrize("name", MENDED)
def test_quarters_differ_and_are_a_quarter(name):
    positions = [3, *range(5, 19)]
    found = quarters_of(name, positions)
    assert len({tuple(some) for some in found}) == QUARTERS and found == quarters_of(name, positions)
    assert all(some == sorted(set(some)) and len(some) == 4 and set(some) <= set(positions) for some in found)
    others = [quarters_of(other, positions) for other in MENDED if other != name]
    assert found not in others


def test_calls_are_drawn_alike_often():
    counts = np.bincount(np.concatenate([quarters_of(name, range(16)) for name in MENDED]).ravel(), minlength=16)
    assert stats.chisquare(counts).pvalue > 0.001


def test_seven_calls_have_too_few_quarters():
    with pytest.raises(ValueError, match=r"positions has 7 calls; they have no 30 different quarters"):
        quarters_of("vgg11", range(7))


def test_power_rises_with_the_true_effect():
    """The power rises with the true effect, and an absent effect is hardly ever found."""
    found = [row["held"] for row in mending_tables.mending_power((0.0, 0.2, 0.3, 0.4)).rows()]
    assert found == sorted(found) and found[0] < 0.025


def test_predictors_that_are_the_score_are_said_to_be_one():
    rows = mending_tables.overlap_table(made_up(follows(0), twins=True)).rows()
    assert all(row["1 − paired R²"] == 1 and row["go"] == 4 and abs(row["single divergence"]) < 0.9 for row in rows)


class Gated(nn.Module):
    """Modules of several kinds, one of them a gate, and a function at the end."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.gate = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 5)
        self.hard, self.swish, self.sigmoid = nn.Hardswish(inplace=True), nn.GELU(), nn.Hardsigmoid()

    def forward(self, x):
        x = self.hard(self.a(x))
        return nn.functional.relu(self.swish(self.b(x * self.sigmoid(self.gate(x)))))


def test_lines_learn_while_gates_and_functions_stay():
    """Lines in place of other activations learn, while gates and functions stay."""
    torch.manual_seed(0)
    network, x = Gated().eval(), torch.randn(64, 6)
    calls = calls_of(network, x)
    records = [{"name": call.name, "position": at} for at, call in enumerate(calls) if not call.gate]
    assert len(calls) == 4 and removable(records) == [0, 2]
    lines = fit_lines(network, x, calls, [0, 2])
    expected = run_replaced(network, x, lines)
    straight = Straightened(network, lines)
    torch.testing.assert_close(straight(x), expected)
    straight(x).sum().backward()
    assert all(slope.grad.any() for slope in straight.slopes.values())


def test_a_call_of_a_function_has_no_line_that_learns():
    line = ChannelLine(torch.ones(5), torch.zeros(5), 1)
    with pytest.raises(ValueError, match="lines name call 3; the network makes 3 calls"):
        Straightened(Gated(), {3: line})(torch.zeros(2, 6))


# ---------------------------------------------------------------------------------------------------- the script


@pytest.fixture
def script():
    return load_script(USES / "mend.py")


def test_networks_take_turns_and_the_first_control_comes_first(script):
    found = list(script.turns(["vgg11", "swin"]))
    assert found[:4] == [("vgg11", "control", 0), ("swin", "control", 0), ("vgg11", "quarters", 0),
                         ("swin", "quarters", 0)]  # fmt: skip
    assert len(set(found)) == len(found) == 2 * (QUARTERS + CONTROL_RUNS)
    assert [at for name, kind, at in found if (name, kind) == ("swin", "quarters")] == list(range(QUARTERS))


@pytest.mark.weekly  # ten trainings; one that fails is stored and gone on from every time, below
def test_a_stopped_script_goes_on_and_ends_with_the_same_runs(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "QUARTERS", 2)
    about = ["--smoke", "--rules", "abc", "--instrument", "def", "--only", "vgg11"]
    script.main([*about, "--measure", "--out", str(tmp_path)])
    whole, part = tmp_path / "whole", tmp_path / "part"
    for out in (whole, part):
        (out / "mending").mkdir(parents=True)
        (out / "mending" / "measures").symlink_to(tmp_path / "mending" / "measures")
    script.main([*about, "--out", str(whole)])
    script.main([*about, "--out", str(part), "--most", "1"])
    stored = part / "mending" / "results" / "vgg11.json"
    first = json.loads(stored.read_text())
    assert [len(first[kind]) for kind in ("control", "quarters")] == [1, 0]
    accuracy, original = script.fit_recipe, script.fit_recipe

    def stops_after_an_epoch(*args, **more):
        def stop(record):
            raise KeyboardInterrupt

        return accuracy(*args, **more, after_epoch=stop)

    monkeypatch.setattr(script, "fit_recipe", stops_after_an_epoch)
    with pytest.raises(KeyboardInterrupt):
        script.main([*about, "--out", str(part)])
    assert json.loads(stored.read_text()) == first and list((part / "mending" / "work").iterdir())
    monkeypatch.setattr(script, "fit_recipe", original)
    script.main([*about, "--out", str(part)])
    assert not list((part / "mending" / "work").iterdir())
    one, other = (json.loads((out / "mending" / "results" / "vgg11.json").read_text()) for out in (whole, part))
    assert without_seconds(one) == without_seconds(other) and other["control"][0] == first["control"][0]
    assert [run["order"] for run in one["control"]] == [2000, 2001, 2002]
    calls = json.loads((tmp_path / "mending" / "measures" / "vgg11.json").read_text())["calls"]
    assert [run["gone"] for run in one["quarters"]] == quarters_of("vgg11", removable(calls))[:2]
    assert (one["rules"], one["instrument"], one["family"]) == ("abc", "def", "VGG")


def without_seconds(value):
    """Stored runs less their times."""
    if isinstance(value, dict):
        return {key: without_seconds(each) for key, each in value.items() if key != "seconds"}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value


@pytest.mark.weekly  # trains
def test_diverging_training_is_stored_as_failed(script, tmp_path, monkeypatch):
    """A training that diverges is stored as failed and not repeated."""

    def diverges(*args, **more):
        raise ValueError("the loss of epoch 1 is not finite; the recipe does not fit this network.")

    about = f"--smoke --rules abc --instrument def --only vgg11 --most 1 --out {tmp_path}".split()
    monkeypatch.setattr(script, "fit_recipe", diverges)
    shutil.copytree(USES / "mending" / "measures", tmp_path / "mending" / "measures")
    script.main(about)
    found = json.loads((tmp_path / "mending" / "results" / "vgg11.json").read_text())
    assert found["control"][0]["failed"].startswith("the loss of epoch 1") and "after" not in found["control"][0]
    script.main(about)
    again = json.loads((tmp_path / "mending" / "results" / "vgg11.json").read_text())
    assert again["control"] == found["control"] and len(again["quarters"]) == 1


def test_a_run_names_the_rules_and_the_instrument(script, tmp_path):
    with pytest.raises(SystemExit, match="they should be commits"):
        script.main(["--out", str(tmp_path)])


def test_stored_measures_have_the_quarters_that_runs_removed():
    """The stored measures have thirty quarters of calls, and these are what the runs removed."""
    for name, record in load_mended(USES).items():
        assert record["network"] == name and len(quarters_of(name, removable(record["calls"]))) == QUARTERS
        gone = [run["gone"] for run in record["quarters"]]
        assert gone == quarters_of(name, removable(record["calls"]))[: len(gone)]


def test_a_folder_without_measures_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*vgg11.json"):
        load_measures(tmp_path)
