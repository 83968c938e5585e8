"""Batch norm: folded away, and blind to scales, as corrected and not as printed."""

import pytest
import torch
from small_networks import change, disturbed, inputs_for, mlp
from torch import nn

from affscore_book.kit.networks import myrtle, resnet20
from affscore_book.symmetries.action import act, sample_action
from affscore_book.symmetries.layers import hidden_layers
from affscore_study.symmetries.norms import fold_norm, invariant_draws, scale_before_norm


@pytest.mark.parametrize("build", [lambda: myrtle(4, channels=1), lambda: resnet20(4, channels=1),
                                   lambda: mlp(nn.ReLU, norm=True)])  # fmt: skip
def test_folding_batch_norm_keeps_the_function(build):
    torch.manual_seed(0)
    network = disturbed(build())
    folded = fold_norm(network)
    assert not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in folded.modules())
    assert [layer.channels for layer in hidden_layers(folded)] == [layer.channels for layer in hidden_layers(network)]
    assert change(network, folded, inputs_for(network)) < 1e-10
    assert change(network, act(folded, sample_action(folded, 0)), inputs_for(network)) < 1e-10


def test_scaling_before_batch_norm_is_taken_out_up_to_eps():
    torch.manual_seed(0)
    network = disturbed(myrtle(4, channels=1))
    scales = {"relu2": torch.linspace(0.2, 5, 8), "relu3": torch.linspace(3, 0.5, 16)}
    x = inputs_for(network)
    with_eps = change(network, scale_before_norm(network, scales), x)
    assert 1e-10 < with_eps < 1e-2
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-30
    for mode in (network.eval(), network.train()):
        assert change(mode, scale_before_norm(mode, scales), x) < 1e-10


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="should hold 2 positive, finite factors"):
        scale_before_norm(myrtle(2), {"relu1": torch.tensor([1.0, -1.0])})
    with pytest.raises(ValueError, match="not a hidden activation with batch norm"):
        scale_before_norm(mlp(nn.ReLU), {"1": torch.ones(7)})


def test_what_a_norm_does_not_see_is_counted():
    assert invariant_draws(nn.BatchNorm1d(5, eps=1e-30, affine=False, dtype=torch.float64)) == 10
    assert invariant_draws(nn.LayerNorm(5, dtype=torch.float64)) == 0
    assert invariant_draws(nn.BatchNorm1d(5, eps=1e-5, affine=False, dtype=torch.float64)) == 0
