"""The checks of the exercises: right answers pass, wrong ones are told why."""

from functools import partial

import pytest
import torch

from affscore_book.kit.networks import resnet20
from affscore_book.symmetries import exercises
from affscore_book.symmetries.action import sample_action


def said(capsys, check, *arguments):
    check(*arguments)
    return capsys.readouterr().out


def test_exercises_accept_right_answers_and_explain_wrong_ones(capsys):
    assert said(capsys, exercises.check_function, lambda x: x.abs() ** 3).startswith("Right")
    assert said(capsys, exercises.check_function, torch.square, 2).startswith("Right")
    assert said(capsys, exercises.check_function, torch.square, 3).startswith("Not yet")
    assert "odd" not in said(capsys, exercises.check_function, lambda x: x**3)
    assert said(capsys, exercises.check_function, torch.relu).startswith("Not yet: its group is 'positive scalings")
    assert "cannot be told" in said(capsys, exercises.check_function, torch.sqrt)
    torch.manual_seed(0)
    network = resnet20(2, channels=1).eval()
    assert said(capsys, exercises.check_ties, network, sample_action(network, 0), "block1.relu2").startswith("Right")
    alone = {"block1.relu2": sample_action(network, 0)["block1.relu2"]}
    assert "is added before" in said(capsys, exercises.check_ties, network, alone, "block1.relu2")
    assert "should not be the identity" in said(
        capsys, exercises.check_ties, network, {"block1.relu1": torch.eye(2)}, "block1.relu1"
    )
    assert "should have a matrix" in said(capsys, exercises.check_ties, network, {}, "block1.relu1")


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (lambda x: x.clamp(0, 1e6), "Right"),
        (lambda x: torch.relu(x) + torch.relu(x - 1e5), "Right"),
        (lambda x: torch.relu(x) * (x > 1e-9), "Right"),  # it bends near 0
        (torch.relu, "Not yet: its outputs double"),
        (torch.nn.ReLU6(), "Not yet: the detector finds 'permutations'"),
        (torch.nn.LeakyReLU(0.2), "Not yet: its outputs double"),
        (torch.sqrt, "Not yet: the detector cannot tell"),
    ],
)
def test_only_a_bend_that_the_detector_misses_fools_it(capsys, function, answer):
    assert said(capsys, exercises.check_fool, function).startswith(answer)


def moved(weights, biases, matrices, phi, *, undo="phi", before=True, shifts=True):
    """Proposition 3.4 written out, right unless something is changed."""
    first, second = matrices if before else [torch.eye(len(a), dtype=a.dtype) for a in matrices]
    kinds = [{"phi": phi(a), "a": a, "nothing": torch.eye(len(a), dtype=a.dtype)} for a in (first, second)]
    out = [torch.linalg.inv(kind[undo]) for kind in kinds]
    new = [first @ weights[0], second @ weights[1] @ out[0], weights[2] @ out[1]]
    return new, [first @ biases[0], second @ biases[1], biases[2]] if shifts else biases


@pytest.mark.parametrize(
    ("changed", "start"),
    [
        ({}, "Right: "),
        ({"undo": "a"}, "Not yet: with relu_squared the outputs move"),
        ({"undo": "nothing"}, "Not yet: with tanh the outputs move"),
        ({"shifts": False}, "Not yet: with tanh the outputs move"),
        ({"before": False}, "Not yet: the first weights"),
    ],
)
def test_a_network_that_was_moved(capsys, changed, start):
    assert said(capsys, exercises.check_build, partial(moved, **changed)).startswith(start)
