"""Folded networks compute the same function in float64, and the account says what stayed."""

from __future__ import annotations

import copy

import pytest
import torch
from grids import each
from torch import nn

from affscore_book.kit.networks import mlp, resnet
from affscore_book.linearized.folding import fold
from affscore_book.linearized.slopes import ChannelPReLU, channel_prelus, linearize, survivors

DOUBLE = torch.float64


def prepared(network, shape, seed, shares=(0.5,)):
    """Linearised float64 network with lively batch norms; layer i has a share ``shares[i]`` of linear channels."""
    generator = torch.Generator().manual_seed(seed)
    network = copy.deepcopy(network).double().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            for value in (module.weight, module.bias, module.running_mean, module.running_var):
                if value is not None:
                    value.data = torch.rand(value.shape, generator=generator, dtype=DOUBLE) + 0.2
    result = linearize(network, torch.zeros(shape, dtype=DOUBLE))
    for i, layer in enumerate(channel_prelus(result).values()):
        n = len(layer.weight)
        layer.weight.data = 2 * torch.rand(n, generator=generator, dtype=DOUBLE) - 1
        layer.set_linear(torch.randperm(n, generator=generator) < round(n * shares[i % len(shares)]))
    return result


def assert_same(core, network, shape, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE) * 3
    expected = network.eval()(x)
    torch.testing.assert_close(core(x), expected, rtol=0, atol=1e-10 * max(1.0, expected.detach().abs().max().item()))


def linear_left(network):
    return sum(of - core for core, of in survivors(network).values())


PLAIN_MLP = nn.Sequential(
    nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 8, bias=False), nn.Dropout(), nn.ReLU(), nn.Identity(), nn.Linear(8, 6),
    nn.ReLU(), nn.Dropout(), nn.Linear(6, 3), nn.Linear(3, 4),
)  # fmt: skip
NORM_AFTER = nn.Sequential(
    nn.Linear(5, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 7), nn.BatchNorm1d(7, affine=False), nn.ReLU(),
    nn.Linear(7, 2),
)  # fmt: skip


@each("shares", [(0.5,), (0.9, 0.3), (1.0,), (1.0, 0.5, 0.2)])
@each("kind", ["plain", "norm", "norm after"])
def test_every_linear_unit_of_an_mlp_folds(kind, shares):
    network, shape = {
        "plain": (PLAIN_MLP, (6, 7)),
        "norm": (mlp(12, 4, side=3), (6, 1, 3, 3)),
        "norm after": (NORM_AFTER, (6, 5)),
    }[kind]
    network = prepared(network, shape, 0, shares)
    before = survivors(network)
    core, account = fold(network, torch.zeros(shape, dtype=DOUBLE))
    assert_same(core, network, shape)
    assert linear_left(network) > 0
    assert [(row.name, row.channels, row.channels - row.folded) for row in account] == [
        (name, of, left) for name, (left, of) in before.items()
    ]
    assert all(row.folded == row.linear for row in account)
    widths = {name: len(layer.weight) for name, layer in core.named_modules() if isinstance(layer, ChannelPReLU)}
    assert widths == {name: left for name, (left, _) in before.items() if left}

    assert not any(isinstance(module, nn.BatchNorm1d) for module in core.modules())
    if not widths and kind == "norm":
        assert len(list(core.children())) == 2, "the flattening, and one map"


def test_one_direct_map_lies_beside_the_core_units():
    """y = W[:, core] a(V[core] x) + (W[:, linear] V[linear]) x, term by term."""
    network = prepared(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)), (2, 4), 1)
    linear = network.get_submodule("1").weight == 1
    first, last = network.get_submodule("0"), network.get_submodule("2")
    core, _ = fold(network, torch.zeros(2, 4, dtype=DOUBLE))
    inner, made = core.get_submodule("0"), core.get_submodule("2")
    torch.testing.assert_close(inner.weight, first.weight[~linear], rtol=0, atol=1e-15)
    direct = last.weight[:, linear] @ first.weight[linear]
    torch.testing.assert_close(made.weight, torch.cat([direct, last.weight[:, ~linear]], 1), rtol=0, atol=1e-14)
    torch.testing.assert_close(made.bias, last.bias + last.weight[:, linear] @ first.bias[linear], rtol=0, atol=1e-14)


CONVOLUTIONAL = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Flatten(),
    nn.Linear(4 * 64, 6), nn.ReLU(), nn.Linear(6, 3),
)  # fmt: skip


@each("kind", ["plain", "residual", "flattened"])
def test_convolutions_stay_as_they_are(kind):
    network = CONVOLUTIONAL if kind == "flattened" else resnet(4, (1, 1), channels=1, residual=kind == "residual")
    network = prepared(network, (2, 1, 8, 8), 0)
    core, account = fold(network, torch.zeros(1, 1, 8, 8, dtype=DOUBLE))
    if kind == "flattened":
        assert_same(core, network, (2, 1, 8, 8))
        assert [row.folded for row in account] == [0, 0, 3]
    else:
        x = torch.randn(2, 1, 8, 8, dtype=DOUBLE)
        assert torch.equal(core(x), network(x)), "what is not folded is not touched"
        assert all(row.folded == 0 for row in account)
        assert str(account[0]).startswith("relu: 0 of 2 linear channels folded, 4 left; its input comes from norm")


class Read(nn.Module):
    """Values that something else reads, too; and a layer that is called twice."""

    def __init__(self, how):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
        self.relu, self.relu2, self.how = nn.ReLU(), nn.ReLU(), how

    def forward(self, x):
        if self.how == "twice":
            return self.c(self.relu(self.b(self.relu2(self.b(x)))))
        y = self.a(x)
        z = self.relu(y)
        if self.how == "before":
            return self.b(z) + y
        if self.how == "after":
            return self.b(z) + self.c(z)
        if self.how == "tokens":
            return self.b(z.unflatten(1, (1, 4)))
        return z if self.how == "output" else self.b(z.flip(1))


@each(
    ("how", "reason"),
    [
        ("before", "its input is also read by add"),
        ("after", "2 layers read it"),
        ("output", "it is followed by output, which is no linear layer"),
        ("flip", "it is followed by flip, which is no linear layer"),
        ("tokens", "it is followed by unflatten, which is no linear layer"),
        ("twice", ""),
    ],
)
def test_values_that_are_needed_elsewhere_stay_with_a_reason(how, reason):
    network = prepared(Read(how), (2, 4), 0)
    core, account = fold(network, torch.zeros(2, 4, dtype=DOUBLE))
    assert_same(core, network, (5, 4))
    assert [row.reason for row in account] == ([reason] if reason else ["", ""])
    assert all(row.folded == (0 if reason else 2) for row in account)


def test_float32_modes_and_the_original_are_left_alone():
    network = linearize(mlp(6, 2, side=3), torch.zeros(2, 1, 3, 3)).train()
    channel_prelus(network)["relu1"].set_linear(torch.arange(6) < 4)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    core, _ = fold(network, torch.zeros(2, 1, 3, 3))
    assert torch.equal(torch.get_rng_state(), state), "folding draws no random numbers"
    assert all(module.training for module in network.modules()) and not any(m.training for m in core.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(value.dtype == torch.float32 for value in core.parameters())
    assert all(value.requires_grad for value in core.parameters())
    x = torch.randn(5, 1, 3, 3)
    torch.testing.assert_close(core(x), network.eval()(x), rtol=1e-4, atol=1e-5)
    smaller, _ = fold(copy.deepcopy(core), x)
    assert torch.equal(smaller(x), core(x)), "a folded network has nothing more to fold"


def test_networks_without_slopes_are_refused():
    with pytest.raises(ValueError, match="Sequential has no ChannelPReLU; linearize makes them"):
        fold(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.zeros(1, 2))
