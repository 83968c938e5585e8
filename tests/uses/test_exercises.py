"""The checks of the exercises, the widget and the penalty: right answers pass, the usual wrong ones do not."""

import numpy as np
import pytest
import torch
from torch import nn

from affscore import affinity_score
from affscore_book.kit.networks import mlp
from affscore_book.uses import exercises
from affscore_book.uses.penalty import mean_score, watched_pairs
from affscore_book.uses.widget import CallsRemoved


def affine(network, layer, images, before_hook=True):
    kept = {}

    def note(module, inputs):
        kept["x"] = inputs[0].clone()

    def replace(module, inputs, output):
        x = kept["x"] if before_hook else inputs[0]
        mean_x, mean_y = x.mean((0, 2, 3), keepdim=True), output.mean((0, 2, 3), keepdim=True)
        slope = ((x - mean_x) * (output - mean_y)).sum((0, 2, 3), keepdim=True)
        slope = slope / (x - mean_x).square().sum((0, 2, 3), keepdim=True)
        return slope * (x - mean_x) + mean_y

    module = network.get_submodule(layer)
    hooks = [module.register_forward_pre_hook(note), module.register_forward_hook(replace)]
    found = network(images)
    for hook in hooks:
        hook.remove()
    return found


def said(capsys, check, *answer):
    check(*answer)
    return capsys.readouterr().out.startswith("Right")


def test_a_hook_that_survives_work_in_place_is_right(capsys):
    assert said(capsys, exercises.check_affine, affine)


def test_a_hook_that_reads_what_was_overwritten_is_not(capsys):
    assert not said(capsys, exercises.check_affine, lambda *given: affine(*given, before_hook=False))


def test_the_network_as_it_is_is_not(capsys):
    assert not said(capsys, exercises.check_affine, lambda network, layer, images: network(images))


def test_a_network_that_is_left_changed_is_not(capsys):
    def leaves_hooks(network, layer, images):
        found = affine(network, layer, images)
        network.get_submodule(layer).register_forward_hook(lambda module, inputs, output: output + 1)
        return found

    assert not said(capsys, exercises.check_affine, leaves_hooks)


def test_a_block_has_a_score_and_its_flat_maps_another(capsys):
    images = torch.randn(60, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    before, after = exercises.block_and_images(nn.Sequential(nn.Identity(), nn.ReLU()), images, "1")
    right = affinity_score(before.mean((2, 3)), after.mean((2, 3)))
    wrong = affinity_score(before.flatten(1), after.flatten(1))
    assert said(capsys, exercises.check_block, right, before, after)
    assert not said(capsys, exercises.check_block, wrong, before, after)


def test_the_bar_of_no_false_alarm_is_the_largest_clean_distance(capsys):
    clean, wrong = exercises.distances_of(4)
    assert said(capsys, exercises.check_threshold, np.mean(wrong > clean.max()), clean, wrong)
    assert not said(capsys, exercises.check_threshold, np.mean(wrong > np.median(clean)), clean, wrong)


def test_the_widget_draws_the_calls_that_are_gone():
    paths = [{"order": "a", "title": "A", "gone": [1, 0], "accuracy": [0.9, 0.5, 0.1]}]
    widget = CallsRemoved(calls=["first", "second"], paths=paths, order="a", count=1)
    assert widget.score() == 0.5
    assert widget.fallback().count('class="image-dot"') == 1
    assert "last made affine: second" in widget.fallback()


def test_descending_the_penalty_moves_the_score_to_its_target():
    torch.manual_seed(0)
    network, images = mlp(16, 2).eval(), torch.randn(128, 1, 32, 32)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    with watched_pairs(network) as pairs:
        for _ in range(60):
            network(images)
            optimizer.zero_grad()
            ((mean_score(pairs) - 0.9) ** 2).backward()
            optimizer.step()
        network(images)
    assert mean_score(pairs).item() == pytest.approx(0.9, abs=0.01)


def test_the_mean_score_is_that_of_averages_over_positions():
    network, images = exercises.small_network()
    network[1].inplace = False
    network = nn.Sequential(network[0])
    network.relu1 = nn.ReLU()
    with torch.no_grad(), watched_pairs(network) as pairs:
        network(images)
    ((x, y),) = pairs
    assert mean_score(pairs).item() == pytest.approx(affinity_score(x.mean((2, 3)), y.mean((2, 3))).item())


def test_watching_leaves_no_hooks():
    network = mlp(8, 2)
    with watched_pairs(network):
        pass
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def entropy_of_signs(x, logarithm=np.log2):
    shares = [share for p in (x > 0).mean(axis=0) for share in (p, 1 - p) if share > 0]
    return -sum(share * logarithm(share) for share in shares) / x.shape[1]


def test_the_entropy_of_the_sign_is_in_bits(capsys):
    assert said(capsys, exercises.check_entropy, entropy_of_signs)
    assert not said(capsys, exercises.check_entropy, lambda x: entropy_of_signs(x, np.log))
