"""Trainings towards a mean score: the penalty's gradients, the outcomes, and the rules (E4)."""

import math
import re
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from striped import stripes
from torch import nn

from affscore import affinity_score, signature
from affscore_book.decade.training import ColourData
from affscore_book.kit.training import accuracy
from affscore_book.uses import targets
from affscore_book.uses.figures import plot_targets
from affscore_book.uses.targets import COMPARED_TARGETS, TARGET_SEEDS, TARGETS, Aim
from affscore_study.uses import target_claims
from affscore_study.uses.outcomes import calibration_error, measured_mean, outcomes_of
from affscore_study.uses.penalty import (
    TargetPenalty,
    mean_score,
    slopes_for_relus,
    watched_pairs,
)
from affscore_study.uses.target_claims import LEVEL


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


DATA = Path(__file__).parents[2] / "book" / "data"
IMAGES = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(64) % 3

DECADE = Path(__file__).resolve().parents[2] / "book" / "data" / "decade"


def gradients(network, way, step, target=0.5):
    """By parameter: of the loss alone, of the penalty alone, and what the penalised step leaves."""
    names, parameters = zip(*network.named_parameters(), strict=True)

    def of(value):
        return torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)

    with watched_pairs(network) as pairs:
        loss = nn.functional.cross_entropy(network(IMAGES), LABELS)
        plain, added = of(loss), of(3 * (mean_score(pairs) - 0.5) ** 2)
        TargetPenalty(network, pairs, target=target, strength=3.0, way=way).backward(step, loss)
    return list(zip(names, plain, added, [parameter.grad for parameter in parameters], strict=True))


def test_every_parameter_or_biases_alone_feel_the_penalty(network):
    for way in ("all", "shifts"):
        network.zero_grad()
        for name, plain, added, found in gradients(network, way, 2):
            torch.testing.assert_close(found, plain + added * (way == "all" or name.endswith("bias")))
    with watched_pairs(network) as pairs, pytest.raises(ValueError, match="has no slopes"):
        TargetPenalty(network, pairs, target=0.5, strength=1.0, way="slopes")


def test_slopes_feel_the_penalty_alone_and_nothing_else_does(network):
    before = network(IMAGES)
    assert torch.equal(slopes_for_relus(network)(IMAGES), before)  # of slope 0 they are ReLUs
    rows = gradients(network, "slopes", 2)
    slopes = [name for name, parameter in network.named_parameters() if parameter.shape == (1,)]
    assert len(slopes) == 2
    for name, plain, added, found in rows:
        torch.testing.assert_close(found, added if name in slopes else plain)
    network.zero_grad()
    rows = gradients(network, "slopes", 1)  # at the steps between, it does not move
    assert all(not found.any() for name, *_, found in rows if name in slopes)


@pytest.mark.parametrize(("step", "target"), [(1, 0.5), (2, None)])
def test_without_the_penalty_it_is_the_backward_pass_of_the_loss(network, step, target):
    for _, plain, _, found in gradients(network, "all", step, target):
        torch.testing.assert_close(found, plain)


def test_module_run_twice_makes_two_pooled_pairs():
    """A module that runs twice makes two pairs, which are averaged over positions."""
    relu = nn.ReLU(inplace=True)
    network = nn.Sequential(nn.Conv2d(1, 3, 1), relu, nn.Conv2d(3, 3, 2), relu)
    with torch.no_grad(), watched_pairs(network) as pairs:
        for _ in range(2):
            network(IMAGES.view(64, 1, 2, 3))
    assert len(pairs) == 2 and all(float(x.min()) < 0 for x, _ in pairs)  # the input, not what overwrote it
    scores = [affinity_score(x.mean((2, 3)), y.mean((2, 3))).item() for x, y in pairs]
    assert mean_score(pairs).item() == pytest.approx(np.mean(scores))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def test_calibration_is_the_weighted_gap_of_each_bin():
    generator = torch.Generator().manual_seed(0)
    logits, labels = 3 * torch.randn(500, 4, generator=generator), torch.randint(0, 4, (500,), generator=generator)
    confidence, answer = logits.double().softmax(1).max(1)
    error = 0.0
    for low, high in pairwise(np.linspace(0, 1, 16)):
        some = (confidence > low) & (confidence <= high)
        if some.any():
            gap = (answer == labels)[some].double().mean() - confidence[some].mean()
            error += float(some.double().mean() * gap.abs())
    assert calibration_error(logits, labels) == pytest.approx(error, abs=1e-9)
    sure_as_right = torch.log(torch.tensor([[0.75, 0.25]])).repeat(400, 1)
    assert calibration_error(sure_as_right, torch.tensor([0, 0, 0, 1]).repeat(100)) == pytest.approx(0, abs=1e-7)


def test_outcomes_are_of_test_and_scores_of_validation_images():
    """The outcomes are those of the test images, and the mean score is that of the validation images."""
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 5, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten()
    network = nn.Sequential(*layers, nn.Linear(6 * 64, 2))
    parts = [stripes(n, seed) for seed, n in enumerate((64, 256, 60))]
    data = ColourData("stripes", *parts, torch.tensor([0.2]), torch.tensor([0.2]))
    found = outcomes_of(network, data)
    assert found["accuracy"] == accuracy(network, data, data.test) and list(found["noise"]) == ["0.1", "0.2", "0.3"]
    loss = nn.functional.cross_entropy(network(data.standardise(data.test.images)), data.test.labels)
    assert found["cross_entropy"] == pytest.approx(loss.item(), abs=1e-6)
    assert len(found["straightened"]) == 6 and all(0 < value <= 100 for value in found["straightened"].values())
    scores = signature(network, data.standardise(data.validation.images).split(128)).mean
    assert measured_mean(network, data) == pytest.approx(scores.mean(), abs=1e-5)


def run(accuracy, target=None, mean=None):
    noise = dict.fromkeys(("0.1", "0.2", "0.3"), accuracy)
    return {"target": target, "mean": 0.6 if mean is None else mean, "accuracy": accuracy, "noise": noise,
            "calibration": 0.01, "straightened": {"latest first": 50.0, "random 0": 40.0}}  # fmt: skip


def made_up(gap, reached=True):
    """One network whose accuracy is ``gap`` higher with each penalty, but for a scatter by seed that pairs share."""
    found = {Aim(None, "all"): {seed: run(0.9 + 0.01 * seed) for seed in range(TARGET_SEEDS)}}
    for target in TARGETS:
        mean = target if reached else target + 0.1
        found[Aim(target, "all")] = {
            seed: run(0.9 + 0.01 * seed + gap + 0.0001 * (-1) ** seed, target, mean) for seed in range(TARGET_SEEDS)
        }
    return {"vgg11": found}


def test_accuracy_is_flat_or_not_judged_if_targets_missed():
    """Accuracy is flat if it does not move, and it is not judged where targets were missed."""
    for gap, verdict in ((0.0, "held"), (0.02, "failed")):
        rows = [row for row in target_claims.target_claims(made_up(gap)) if row.what.endswith("vgg11")]
        assert len(rows) == 4 + 2 * len(COMPARED_TARGETS) and {row.verdict for row in rows[:4]} == {verdict}
    rows = target_claims.target_claims(made_up(0.0, reached=False))
    assert {(row.verdict, row.needs) for row in rows[:4]} == {
        ("not run here", "runs that end near the target: 5 trainings did not")
    }
    runs = made_up(0.0)
    del runs["vgg11"][Aim(0.7, "all")][3]
    assert target_claims.target_claims(runs)[1].needs == "the trainings of all five seeds"


def test_seeds_are_paired_and_level_allows_for_four_targets():
    """Seeds are paired, and the level of the interval allows for four targets."""
    runs = made_up(0.0)["vgg11"]
    found = target_claims.paired_difference(runs, Aim(0.7, "all"), Aim(None, "all"), "accuracy")
    unpaired = 100 * 0.01 * math.sqrt(2.5)  # the spread between seeds, in points
    assert found.high - found.low < unpaired / 10 and pytest.approx(0.9875) == LEVEL


@pytest.mark.usefixtures("figures_closed")
def test_missed_targets_are_counted_with_hollow_marks():
    """Trainings that missed their target are counted, and their marks are hollow."""
    runs = made_up(0.0)
    runs["vgg11"][Aim(0.7, "all")][0]["mean"] = 0.75
    assert [row["near"][0] for row in target_claims.outcome_table(runs, "vgg11").rows()] == ["5", "5", "4", "5", "5"]
    some = {aim: dict(seeds) for aim, seeds in runs["vgg11"].items()}
    del some[Aim(0.6, "all")][3]  # seeds are compared that have all
    near = [row["near"] for row in target_claims.outcome_table({"vgg11": some}, "vgg11").rows()]
    assert near[:3] == ["4 of 4", "4 of 4", "3 of 4"]
    plot_targets(runs, "vgg11")
    marks = plt.gca().lines[2:]  # after the two edges
    assert len(marks) == TARGET_SEEDS * (1 + len(TARGETS))
    assert [float(mark.get_xdata()[0]) for mark in marks if mark.get_markerfacecolor() == "none"] == [0.75]


def test_outcomes_and_time_are_compared_without_penalty():
    """Each outcome and the time are compared with and without the penalty."""
    runs = made_up(0.02)
    rows = {row["outcome"]: row for row in target_claims.change_table(runs, "vgg11").rows()}
    assert rows["accuracy"]["0.7 − none"].startswith("2.0 [")
    assert rows["straightened, latest first"]["0.9 − 0.6"] == "0.0 [not estimable]"  # equal in all seeds
    for aim, seeds in runs["vgg11"].items():
        for found in seeds.values():
            found["history"] = [{"seconds": 30.0 if aim.target is None else 45.0}] * 2
    assert target_claims.slowdown(runs["vgg11"]) == pytest.approx(1.5)


def test_stored_runs_are_read_and_an_empty_folder_refused(tmp_path):
    """Stored runs are read back, and a folder without any is refused."""
    for runs in targets.load_targets(DATA / "uses").values():
        assert all(run["seed"] == seed and run["way"] == aim.way for aim, seeds in runs.items()
                   for seed, run in seeds.items())  # fmt: skip
    with pytest.raises(FileNotFoundError, match="has no trainings"):
        targets.load_targets(tmp_path)


def test_control_keeps_its_slopes_and_needs_all_seeds(network):
    """The control keeps its slopes, and its row asks for all seeds."""
    fixed = slopes_for_relus(network, 0.25, learn=False)
    fixed(IMAGES).sum().backward()
    slopes = [parameter for parameter in fixed.parameters() if parameter.shape == (1,)]
    assert [slope.item() for slope in slopes] == [0.25] * 2 and all(slope.grad is None for slope in slopes)
    runs = made_up(0.0)
    for lead, verdict in ((10.0, "held"), (-10.0, "failed")):
        for aim, level in ((Aim(0.8, "slopes"), 40.0 + lead), (Aim(None, "leak"), 40.0)):
            runs["vgg11"][aim] = {seed: run(0.9, aim.target, 0.8) for seed in range(TARGET_SEEDS)}
            for seed, found in runs["vgg11"][aim].items():
                found["straightened"]["random 0"] = level + 0.1 * seed * (aim.target is None)
        assert target_claims.leak_claim(runs).verdict == verdict
    del runs["vgg11"][Aim(None, "leak")][4]
    assert target_claims.leak_claim(runs).needs == "the trainings of all five seeds"


def test_planted_slope_over_targets_is_found():
    """A planted slope over targets is found, and a flat outcome has none.

    In these runs noise costs 3 points for each tenth of the score, and accuracy only scatters.
    """

    def run(target, seed):
        extra = seed * target  # so that no two seeds have one slope
        noise = {"0.1": 0.9 - 0.3 * target + 0.004 * extra, "0.2": 0.5 + 0.01 * extra, "0.3": 0.4 - 0.02 * extra}
        accuracy = 0.9 + 0.001 * ((7 * seed + round(10 * target)) % 3 - 1)
        straightened = {"random 0": 50.0 + extra, "latest first": 40.0 - extra}
        return {"target": target, "mean": target, "way": "all", "accuracy": accuracy, "noise": noise,
                "calibration": 0.1 + 0.01 * extra, "straightened": straightened}  # fmt: skip

    aims = {
        targets.Aim(target, "all"): {seed: run(target, seed) for seed in range(targets.TARGET_SEEDS)}
        for target in targets.TARGETS
    }
    rows = {row["outcome"]: row for row in targets.slope_over_targets({"vgg11": aims}).rows()}
    assert rows["with noise of .1"]["points per +.1"].startswith("-2.9 [-3.0, -2.8]")
    assert rows["with noise of .1"]["by Holm"] < 0.001 < 0.05 < rows["accuracy"]["by Holm"]
    assert all(row["by Holm"] >= row["p"] for row in rows.values() if row["p"] == row["p"])
    shown = {row["points per +.1"]: row["vgg11"] for row in targets.main_slopes({"vgg11": aims}).rows()}
    assert len(shown) == 5 and shown["with noise of .1"].endswith("]*") and shown["accuracy"].endswith("]")


def test_accuracy_spread_is_of_supervised_architectures():
    """The spread of accuracy is that of the architectures that are trained with labels."""
    found = targets.accuracy_spread(DECADE)
    over, within = (float(number) for number in re.findall(r"(\d\.\d\d)", found))
    assert 0.5 < over < 2 and within < 0.5  # networks taught without labels are 8 points lower
    assert "18 architectures" in found  # those that the decade lists to 2019, without the twin that has no skips


def test_call_scores_are_means_beside_a_gentler_rate():
    """The scores of calls are means over seeds, beside those of a gentler rate."""
    runs = {"vgg11": {targets.Aim(t, "all"): {s: {"scores": [t or 0.1, s / 10] * 5} for s in range(3)}
                      for t in (None, *targets.TARGETS)}}  # fmt: skip
    rows = {row["target"]: row for row in target_claims.call_table(runs, "vgg11", DECADE).rows()}
    assert (rows["0.7"]["call 1"], rows["0.7"]["call 2"]) == pytest.approx((0.7, 0.1))
    assert rows["none"]["call 1"] == pytest.approx(0.1) and rows["none, gentler rate"]["call 10"] > 0
