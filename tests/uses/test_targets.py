"""Trainings towards a mean score: the penalty's gradients, the outcomes, and the rules (E4)."""

import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch import nn

from affscore_book.uses.figures import plot_targets
from affscore_book.uses.outcomes import calibration_error
from affscore_book.uses.penalty import TargetPenalty, mean_score, slopes_for_relus, watched_pairs
from affscore_book.uses.targets import (
    COMPARED_TARGETS,
    LEVEL,
    TARGET_SEEDS,
    TARGETS,
    Aim,
    change_table,
    load_targets,
    outcome_table,
    paired_difference,
    slowdown,
    target_claims,
)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


IMAGES = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(64) % 3


def gradients(network, way, step, target=0.5):
    """Of the loss alone, of the penalty alone, and what the penalised step leaves."""
    parameters = list(network.parameters())
    with watched_pairs(network) as pairs:
        loss = nn.functional.cross_entropy(network(IMAGES), LABELS)
        of_loss = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        penalty = 3 * (mean_score(pairs) - 0.5) ** 2
        of_penalty = torch.autograd.grad(penalty, parameters, retain_graph=True, allow_unused=True)
        TargetPenalty(network, pairs, target=target, strength=3.0, way=way).backward(step, loss)
    zero = [torch.zeros_like(parameter) for parameter in parameters]
    plain, added = (
        [blank if each is None else each for each, blank in zip(found, zero, strict=True)]
        for found in (of_loss, of_penalty)
    )
    names = [name for name, _ in network.named_parameters()]
    return list(zip(names, plain, added, [parameter.grad for parameter in parameters], strict=True))


def test_every_parameter_feels_loss_and_penalty(network):
    for _, plain, added, found in gradients(network, "all", 2):
        torch.testing.assert_close(found, plain + added)


def test_biases_alone_feel_the_penalty(network):
    for name, plain, added, found in gradients(network, "shifts", 2):
        torch.testing.assert_close(found, plain + added * name.endswith("bias"))


def test_slopes_feel_the_penalty_alone_and_nothing_else_does(network):
    rows = gradients(slopes_for_relus(network), "slopes", 2)
    slopes = [name for name, parameter in network.named_parameters() if parameter.shape == (1,)]
    assert len(slopes) == 2
    for name, plain, added, found in rows:
        torch.testing.assert_close(found, added if name in slopes else plain)


def test_a_slope_does_not_move_at_the_steps_between(network):
    assert all(not found.any() for *_, found in gradients(slopes_for_relus(network), "slopes", 1)[2:3])


@pytest.mark.parametrize(("step", "target"), [(1, 0.5), (2, None)])
def test_without_the_penalty_it_is_the_backward_pass_of_the_loss(network, step, target):
    for _, plain, _, found in gradients(network, "all", step, target):
        torch.testing.assert_close(found, plain)


def test_a_network_without_slopes_is_refused(network):
    with watched_pairs(network) as pairs, pytest.raises(ValueError, match="has no slopes"):
        TargetPenalty(network, pairs, target=0.5, strength=1.0, way="slopes")


def test_prelus_of_slope_0_compute_what_relus_do(network):
    before = network(IMAGES)
    assert torch.equal(slopes_for_relus(network)(IMAGES), before)


def test_a_module_that_runs_twice_makes_two_pairs():
    relu = nn.ReLU(inplace=True)
    network = nn.Sequential(nn.Linear(6, 6), relu, nn.Linear(6, 6), relu)
    with watched_pairs(network) as pairs:
        network(IMAGES)
        network(IMAGES)
    assert len(pairs) == 2
    assert all(float(x.detach().min()) < 0 for x, _ in pairs)  # the input, not what overwrote it


def test_calibration_of_answers_that_are_as_sure_as_right():
    logits = torch.log(torch.tensor([[0.75, 0.25]])).repeat(400, 1)
    labels = torch.tensor([0, 0, 0, 1]).repeat(100)
    assert calibration_error(logits, labels) == pytest.approx(0, abs=1e-7)


def test_calibration_is_the_weighted_gap_of_each_bin():
    generator = torch.Generator().manual_seed(0)
    logits, labels = 3 * torch.randn(500, 4, generator=generator), torch.randint(0, 4, (500,), generator=generator)
    confidence, answer = logits.double().softmax(1).max(1)
    error = 0.0
    for low, high in pairwise(np.linspace(0, 1, 11)):
        some = (confidence > low) & (confidence <= high)
        if some.any():
            gap = (answer == labels)[some].double().mean() - confidence[some].mean()
            error += float(some.double().mean() * gap.abs())
    assert calibration_error(logits, labels, 10) == pytest.approx(error, abs=1e-9)


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


def verdicts(runs):
    return [row.verdict for row in target_claims(runs)][: len(TARGETS)]


def test_accuracy_that_does_not_move_is_flat():
    assert verdicts(made_up(0.0)) == ["held"] * 4


def test_accuracy_that_moves_by_two_points_is_not_flat():
    assert verdicts(made_up(0.02)) == ["failed"] * 4


def test_targets_that_were_missed_are_not_judged():
    rows = target_claims(made_up(0.0, reached=False))
    assert {(row.verdict, row.needs) for row in rows[:4]} == {("not run here", "runs that end near the target")}


def test_a_missing_seed_is_asked_for():
    runs = made_up(0.0)
    del runs["vgg11"][Aim(0.7, "all")][3]
    assert target_claims(runs)[1].needs == "the trainings of all five seeds"


def test_seeds_are_paired():
    runs = made_up(0.0)["vgg11"]
    found = paired_difference(runs, Aim(0.7, "all"), Aim(None, "all"), "accuracy")
    unpaired = 100 * 0.01 * math.sqrt(2.5)  # the spread between seeds, in points
    assert found.high - found.low < unpaired / 10


def test_the_interval_allows_for_four_targets():
    assert pytest.approx(0.9875) == LEVEL
    rows = [row for row in target_claims(made_up(0.0)) if row.what.endswith("vgg11")]
    assert len(rows) == len(TARGETS) + 2 * len(COMPARED_TARGETS)


def test_the_table_counts_the_trainings_near_their_target():
    runs = made_up(0.0)
    runs["vgg11"][Aim(0.7, "all")][0]["mean"] = 0.75
    assert [row["near"] for row in outcome_table(runs, "vgg11").rows()] == ["5 of 5", "5 of 5", "4 of 5", "5 of 5",
                                                                           "5 of 5"]  # fmt: skip


def test_each_outcome_is_compared_at_each_target():
    rows = {row["outcome"]: row for row in change_table(made_up(0.02), "vgg11").rows()}
    assert rows["accuracy"]["0.7 − none"].startswith("2.0 [")
    assert rows["straightened, latest first"]["0.9 − 0.6"] == "0.0 [not estimable]"  # equal in all seeds


def test_the_slowdown_is_that_of_the_processor_time():
    runs = made_up(0.0)["vgg11"]
    for aim, seeds in runs.items():
        for found in seeds.values():
            found["history"] = [{"seconds": 30.0 if aim.target is None else 45.0}] * 2
    assert slowdown(runs) == pytest.approx(1.5)


def test_each_training_has_its_mark_and_those_that_missed_are_hollow():
    runs = made_up(0.0)
    runs["vgg11"][Aim(0.7, "all")][0]["mean"] = 0.75
    plot_targets(runs, "vgg11")
    marks = plt.gca().lines[2:]  # after the two edges
    assert len(marks) == TARGET_SEEDS * (1 + len(TARGETS))
    assert [float(mark.get_xdata()[0]) for mark in marks if mark.get_markerfacecolor() == "none"] == [0.75]
    plt.close("all")


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no trainings"):
        load_targets(tmp_path)
