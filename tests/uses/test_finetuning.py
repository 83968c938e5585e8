"""Training after a removal: lines that learn, the runs, and the rules (E2 with fine-tuning)."""

import json
from pathlib import Path

import pytest
import torch
from scripts import load_script
from torch import nn

from affscore_book.decade.networks import build
from affscore_book.uses.replacing import ChannelLine, calls_of, fit_lines, run_replaced
from affscore_study.uses import finetuning
from affscore_study.uses.finetuning import (
    FINETUNED,
    TRAINED_ORDERS,
    TRAINED_SEEDS,
    Straightened,
    all_removals,
)
from affscore_study.uses.removal import order_of

BOOK = Path(__file__).parents[2] / "book"
IMAGES = torch.randn(32, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def network():
    """Its first ReLU is called twice and works in place."""
    torch.manual_seed(0)
    relu = nn.ReLU(inplace=True)
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), relu, nn.Conv2d(4, 4, 3), relu, nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 3)).eval()


def test_untrained_straightened_is_the_replaced_network(network):
    """Before training, the straightened network is the one with those calls replaced."""
    lines = fit_lines(network, IMAGES, calls_of(network, IMAGES), [1, 2])
    expected = run_replaced(network, IMAGES, lines)
    assert not torch.allclose(expected, network(IMAGES))
    torch.testing.assert_close(Straightened(network, lines)(IMAGES), expected)


def test_slopes_and_offsets_learn():
    line = ChannelLine(torch.tensor([0.5, 2.0]), torch.zeros(2), 1)
    straight, x = Straightened(nn.Sequential(nn.ReLU()), {0: line}), torch.tensor([[-1.0, 3.0], [2.0, 4.0]])
    straight(x).sum().backward()
    assert straight.slopes["0"].grad.tolist() == [1.0, 7.0] and straight.offsets["0"].grad.tolist() == [2.0, 2.0]


def test_a_line_for_a_call_that_is_not_made_is_refused(network):
    line = ChannelLine(torch.ones(4), torch.zeros(4), 1)
    with pytest.raises(ValueError, match=r"lines name call 3; the network makes 3 calls"):
        Straightened(network, {3: line})(IMAGES)


def made_up(of):
    """Runs of both networks; ``of(order, seed)`` is the accuracy after training in percent."""
    return {
        name: {
            (order, count): {
                seed: {"before": 0.5, "after": of(order, seed) / 100, "gone": [order, count]}
                for seed in range(TRAINED_SEEDS)
            }
            for order, count in all_removals(name)
        }
        for name in FINETUNED
    }


def test_mending_needs_every_network_and_orders_lead_in_mean():
    """Training mends only if it does so in each network, and an order leads if it does so in the mean."""
    leads = {"none": 90.0, "score": 89.5, "paired R²": 89.5, "sign entropy": 88.0, "latest first": 89.0, "random": 80.0}
    rows = finetuning.finetuned_claims(made_up(lambda order, seed: leads[order] + seed * (1 + 0.01 * len(order))))
    assert len(rows) == 2 * 2 * len(TRAINED_ORDERS)
    assert [row.verdict for row in rows[: len(TRAINED_ORDERS)]] == ["held", "failed", "held", "failed", "held"]
    wide = finetuning.finetuned_claims(made_up(lambda order, seed: leads[order] + seed * (order == "score")))
    assert [row.verdict for row in wide[1:3]] == ["undecided"] * 2  # an interval that holds the bar
    rows = finetuning.finetuned_claims(made_up(lambda order, seed: leads[order] - (order == "score" and seed == 1)))
    assert rows[0].verdict == "failed" and rows[0].ours == pytest.approx(-1.5)


def test_orders_that_take_the_same_calls_are_no_comparison():
    leads = {"none": 90.0, "score": 89.0, "paired R²": 89.0, "sign entropy": 88.0, "latest first": 87.0, "random": 80.0}
    runs = made_up(lambda order, seed: leads[order] + seed * (order != "latest first"))
    for run in runs["resnet18"]["paired R²", 4].values():
        run["gone"] = ["score", 4]
    rows = {row.what: row.verdict for row in finetuning.finetuned_claims(runs)}
    assert rows["resnet18, a quarter: score − paired R², the same calls in both, points"] == "not shown"
    gaps = {(row["network"], row["removed"], row["first to go"]): row for row in finetuning.finetuned_gaps(runs).rows()}
    assert gaps["resnet18", "4 of 17", "paired R²"]["score − this order"] == "same calls"
    assert gaps["resnet18", "4 of 17", "latest first"]["score − this order"] == "3.00 [0.52, 5.48]"
    assert gaps["resnet18", "4 of 17", "latest first"]["− no call removed"] == "-4.00 [-6.48, -1.52]"


def test_a_run_that_is_missing_or_failed_leaves_its_rules_open():
    runs = made_up(lambda order, seed: 90.0)
    del runs["resnet18"]["latest first", 4][2]
    runs["vgg16_bn"]["none", 0][0] = {"failed": "the loss of epoch 1 is not finite"}
    rows = {row.what: row for row in finetuning.finetuned_claims(runs)}
    unknown = [what for what, row in rows.items() if row.verdict == "not run here"]
    assert unknown == [
        "resnet18, a quarter: score − latest first, mean, points",
        "vgg16_bn, a quarter: score − no call removed, worst, points",
        "vgg16_bn, a half (secondary): score − no call removed, worst, points",
    ]
    table = finetuning.finetuned_table(runs, "vgg16_bn").rows()
    assert table[0]["networks"] == 2 and table[0]["EASIER"] == "93.5" and table[1]["EASIER"] == "-"


@pytest.mark.weekly  # measures and trains
@pytest.mark.parametrize("trains", [False, True])
def test_script_removes_calls_by_measure_from_equal_weights(tmp_path, monkeypatch, trains):
    """The script removes the calls that the measures name and starts from the same weights each time."""
    script = load_script(BOOK / "data" / "uses" / "finetune.py")
    if not trains:
        starts = BOOK / "data" / "uses" / "finetuning" / "starts" / "vgg16_bn-1.json"
        monkeypatch.setattr(script, "measure_costs", lambda *_: {"calls": json.loads(starts.read_text())["calls"]})
        monkeypatch.setattr(script, "trained", lambda name, seed, *_: build(name, seed).eval())
        monkeypatch.setattr(script, "fit_recipe", lambda *_, **__: [{"loss": 0.0}])
    monkeypatch.setattr(script, "all_removals", lambda name: [("none", 0), ("score", 15), ("random", 15)])
    options = f"--rules abc --out {tmp_path} --only vgg16_bn --seeds 1 --epochs 1 --smoke".split()
    script.main(options)
    check_runs(tmp_path)
    assert not list((tmp_path / "finetuning" / "work").glob("*.checkpoint"))
    file = tmp_path / "finetuning" / "results" / "vgg16_bn-score-15-1.json"
    first = json.loads(file.read_text())
    same = json.loads(file.with_name("vgg16_bn-random-15-1.json").read_text())
    assert same == first | {key: same[key] for key in ("order", "gone")}  # all calls are the same calls
    file.unlink()
    file.with_name("vgg16_bn-random-15-1.json").unlink()
    script.main(options)
    again = json.loads(file.read_text())
    assert again["history"][-1]["loss"] == first["history"][-1]["loss"] and again["after"] == first["after"]


def check_runs(folder):
    """Every run took out what its order says of the stored measures."""
    runs = finetuning.load_finetuned(folder)
    for name, removals in runs.items():
        for (order, count), found in removals.items():
            for seed, run in found.items():
                calls = json.loads((folder / "finetuning" / "starts" / f"{name}-{seed}.json").read_text())["calls"]
                named = f"random {seed}" if order == "random" else order
                gone = [calls[at]["position"] for at in order_of(named, calls)[:count]] if count else []
                assert len(calls) == FINETUNED[name] and run["gone"] == gone and 0 < run["after"] <= 1


def test_the_stored_runs_took_out_what_their_orders_say():
    check_runs(BOOK / "data" / "uses")


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no fine-tuned networks"):
        finetuning.load_finetuned(tmp_path)


def test_a_row_of_the_table_has_all_seeds():
    runs = made_up(lambda order, seed: 90.0 + seed)
    assert finetuning.finetuned_table(runs, "resnet18").rows()[1]["after"] == pytest.approx(91)
    del runs["resnet18"]["score", 4][0]
    assert finetuning.finetuned_table(runs, "resnet18").rows()[1]["first to go"] == "paired R²"
