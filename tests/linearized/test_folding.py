"""Folded networks compute the same function in float64, with the units that are not linear and no others."""

from __future__ import annotations

import copy

import pytest
import torch
from grids import each
from torch import nn

from affscore_book.kit.networks import mlp, resnet
from affscore_book.linearized.folding import fold
from affscore_book.linearized.slopes import channel_prelus, linearize, survivors

DOUBLE = torch.float64


def prepared(network, shape, shares):
    """Linearised float64 network with lively batch norms; layer i has a share ``shares[i]`` of linear channels."""
    generator = torch.Generator().manual_seed(0)
    network = copy.deepcopy(network).double().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            for value in (module.weight, module.bias, module.running_mean, module.running_var):
                if value is not None:
                    value.data = torch.rand(value.shape, generator=generator, dtype=DOUBLE) + 0.2
    result = linearize(network, torch.zeros(shape, dtype=DOUBLE))
    for i, layer in enumerate(channel_prelus(result).values()):
        n = len(layer.weight)
        layer.weight.data = 2 * torch.rand(n, generator=generator, dtype=DOUBLE) - 1
        layer.set_linear(torch.randperm(n, generator=generator) < round(n * shares[i % len(shares)]))
    return result


NETWORKS = {
    "plain": (
        nn.Sequential(
            nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 8, bias=False), nn.ReLU(), nn.Identity(), nn.Linear(8, 6),
            nn.Sequential(nn.ReLU(), nn.Dropout()), nn.Linear(6, 3), nn.Linear(3, 4),
        ), (6, 7),
    ),
    "norm": (mlp(12, 4, side=3), (6, 1, 3, 3)),
    "norm without gains": (
        nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8, affine=False), nn.ReLU(), nn.Linear(8, 2)), (6, 5)
    ),
}  # fmt: skip


@each("shares", [(0.5,), (0.9, 0.3), (1.0,), (1.0, 0.5, 0.2), (0.0,)])
@each("kind", NETWORKS)
def test_every_linear_unit_of_a_perceptron_folds(kind, shares):
    network, shape = NETWORKS[kind]
    network = prepared(network, shape, shares)
    core = fold(network)
    x = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    expected = network(x).detach()
    torch.testing.assert_close(core(x), expected, rtol=0, atol=1e-10 * max(1.0, expected.abs().max().item()))
    widths = [len(activation.weight) for activation in core.activations]
    assert widths == [left for left, _ in survivors(network).values() if left]
    assert all((activation.weight != 1).all() for activation in core.activations)


def test_one_direct_map_lies_beside_the_core_units():
    """y = W[:, core] a(V[core] x) + (W[:, linear] V[linear]) x, term by term."""
    network = prepared(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)), (2, 4), (0.5,))
    first, slopes, last = network
    linear = slopes.weight == 1
    inner, made = fold(network).layers
    torch.testing.assert_close(inner.weight, first.weight[~linear], rtol=0, atol=1e-15)
    direct = last.weight[:, linear] @ first.weight[linear]
    torch.testing.assert_close(made.weight, torch.cat([direct, last.weight[:, ~linear]], 1), rtol=0, atol=1e-14)
    torch.testing.assert_close(made.bias, last.bias + last.weight[:, linear] @ first.bias[linear], rtol=0, atol=1e-14)


def test_precision_mode_and_the_original_are_left_alone():
    network = linearize(mlp(6, 2, side=3), torch.zeros(2, 1, 3, 3)).train()
    network.relu1.set_linear(torch.arange(6) < 4)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    core = fold(network)
    assert torch.equal(torch.get_rng_state(), state), "folding draws no random numbers"
    assert all(module.training for module in network.modules()) and not any(m.training for m in core.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(value.dtype == torch.float32 and value.requires_grad for value in core.parameters())
    x = torch.randn(5, 1, 3, 3)
    torch.testing.assert_close(core(x), network.eval()(x), rtol=1e-4, atol=1e-5)


def test_what_is_no_linearised_perceptron_is_refused():
    after = linearize(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.BatchNorm1d(2), nn.Linear(2, 1)), torch.zeros(1, 2))
    for network, message in (
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "Sequential has no ChannelPReLU; linearize makes them"),
        (linearize(resnet(2, (1,), channels=1), torch.zeros(1, 1, 8, 8)), "network holds a Conv2d"),
        (after, "network.2 should follow a linear"),
    ):
        with pytest.raises(ValueError, match=message):
            fold(network)
