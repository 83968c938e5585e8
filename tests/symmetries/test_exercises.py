"""The checks of the exercises: right answers pass, wrong ones are told why."""

import torch

from affscore_book.kit.networks import resnet20
from affscore_book.symmetries import exercises
from affscore_book.symmetries.action import sample_action


def said(capsys, check, *arguments):
    check(*arguments)
    return capsys.readouterr().out


def test_exercises_accept_right_answers_and_explain_wrong_ones(capsys):
    assert said(capsys, exercises.check_function, lambda x: x.abs() ** 3).startswith("Right")
    assert "odd" not in said(capsys, exercises.check_function, lambda x: x**3)
    assert said(capsys, exercises.check_function, torch.relu).startswith("Not yet: its group is 'positive scalings")
    assert "cannot be told" in said(capsys, exercises.check_function, torch.sqrt)
    right = torch.tensor([[2.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, -1], [0, 0, -3, 0]])
    for matrix in (right, right.tolist()):
        assert said(capsys, exercises.check_prelu, matrix).startswith("Right")
    shear = right.clone()
    shear[1, 0] = 0
    assert said(capsys, exercises.check_prelu, shear).startswith("Right")  # one new channel is made of both
    apart = shear.clone()
    apart[0, 1] = 0
    swapped = right.clone()
    swapped[:2, :2] = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    for unmixed in (apart, swapped, torch.eye(4)):
        assert said(capsys, exercises.check_prelu, unmixed).startswith("Not yet: it belongs")
    assert "needs equal slopes" in said(capsys, exercises.check_prelu, right.abs())
    torch.manual_seed(0)
    network = resnet20(2, channels=1).eval()
    assert said(capsys, exercises.check_ties, network, sample_action(network, 0), "block1.relu2").startswith("Right")
    alone = {"block1.relu2": sample_action(network, 0)["block1.relu2"]}
    assert "is added before" in said(capsys, exercises.check_ties, network, alone, "block1.relu2")
    assert "should not be the identity" in said(
        capsys, exercises.check_ties, network, {"block1.relu1": torch.eye(2)}, "block1.relu1"
    )
    assert "should have a matrix" in said(capsys, exercises.check_ties, network, {}, "block1.relu1")
    assert said(capsys, exercises.check_count, 3840).startswith("Right")
    assert said(capsys, exercises.check_count, 120).startswith("Not yet")
