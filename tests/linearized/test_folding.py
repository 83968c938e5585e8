"""Folded networks compute the same function in float64, and the account says what stayed and why."""

from __future__ import annotations

import copy
import statistics

import pytest
import torch
from torch import nn

from affscore_book.kit.networks import mlp, myrtle, resnet
from affscore_book.linearized.folding import AffineSum, _compose, _map_of, _merges, fold
from affscore_book.linearized.slopes import channel_prelus, linearize, survivors

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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shares", [(0.5,), (0.9, 0.3), (1.0,), (1.0, 0.5, 0.2)])
@pytest.mark.parametrize("kind", ["plain", "norm", "norm after"])
def test_every_linear_unit_of_an_mlp_folds(kind, shares, seed):
    network, shape = {
        "plain": (PLAIN_MLP, (6, 7)),
        "norm": (mlp(12, 4, side=3), (6, 1, 3, 3)),
        "norm after": (NORM_AFTER, (6, 5)),
    }[kind]
    network = prepared(network, shape, seed, shares)
    before = survivors(network)
    core, account = fold(network, torch.zeros(shape, dtype=DOUBLE))
    assert_same(core, network, shape, seed)
    assert linear_left(network) > 0
    assert [(row.name, row.channels, row.channels - row.folded) for row in account] == [
        (name, of, left) for name, (left, of) in before.items()
    ]
    assert all(row.folded == row.linear and not row.reason for row in account)
    # Width of the folded network: exactly the units that were not linear.
    widths = {name: len(layer.weight) for name, layer in channel_prelus(core).items()}
    assert widths == {name: left for name, (left, _) in before.items() if left}
    if widths:
        assert statistics.mean(widths.values()) == statistics.mean(left for left, _ in before.values() if left)
    assert not any(isinstance(module, nn.BatchNorm1d) for module in core.modules())


def test_a_wholly_linear_network_is_one_map():
    network = prepared(PLAIN_MLP[:-1], (2, 7), 0, (1.0,))
    core, _ = fold(network, torch.zeros(2, 7, dtype=DOUBLE))
    left = [module for module in core.modules() if not list(module.children())]
    assert [type(module) for module in left] == [nn.Linear] and (left[0].in_features, left[0].out_features) == (7, 3)


def test_one_direct_map_lies_beside_the_core_units():
    """y = W[:, core] a(V[core] x) + (W[:, linear] V[linear]) x, term by term."""
    network = prepared(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)), (2, 4), 1)
    linear = network.get_submodule("1").weight == 1
    first, last = network.get_submodule("0"), network.get_submodule("2")
    core, _ = fold(network, torch.zeros(2, 4, dtype=DOUBLE))
    assert isinstance(core.get_submodule("2"), AffineSum)
    inner, made = core.get_submodule("0"), core.get_submodule("2")
    torch.testing.assert_close(inner.weight, first.weight[~linear], rtol=0, atol=1e-15)
    by_shape = {tuple(part.weight.shape): part.weight for part in made.maps}
    torch.testing.assert_close(by_shape[3, 4], last.weight[:, linear] @ first.weight[linear], rtol=0, atol=1e-14)
    torch.testing.assert_close(by_shape[3, 3], last.weight[:, ~linear], rtol=0, atol=1e-15)
    torch.testing.assert_close(
        made.bias[0], last.bias + last.weight[:, linear] @ first.bias[linear], rtol=0, atol=1e-14
    )


# ------------------------------------------------------------------------------------------------ convolutions


def convolutional(*layers):
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * 6, 3))


def pair(first, second, *between, norm=True):
    """conv, norm, relu, conv, norm, then something that is not linear, so that the last relu does not matter."""
    norms = (nn.BatchNorm2d(5), nn.BatchNorm2d(6)) if norm else (nn.Identity(), nn.Identity())
    return convolutional(first, norms[0], nn.ReLU(), *between, second, norms[1], nn.ReLU(), nn.MaxPool2d(2))


MERGING = {
    "point after padded": (nn.Conv2d(2, 5, 3, padding=1), nn.Conv2d(5, 6, 1)),
    "padded after point": (nn.Conv2d(2, 5, 1), nn.Conv2d(5, 6, 3, padding=1)),
    "padded after point, strides": (nn.Conv2d(2, 5, 1, stride=2), nn.Conv2d(5, 6, 3, padding=2, stride=2)),
    "padded after point, stride 3": (nn.Conv2d(2, 5, 1, stride=3), nn.Conv2d(5, 6, (3, 1), padding=(1, 0))),
    "point, strides": (nn.Conv2d(2, 5, 5, padding=2, stride=2, bias=False), nn.Conv2d(5, 6, 1, stride=2)),
    "unpadded after padded": (nn.Conv2d(2, 5, 3, padding=1, stride=2), nn.Conv2d(5, 6, (2, 3))),
    "dilated": (nn.Conv2d(2, 5, 3, padding=2, dilation=2), nn.Conv2d(5, 6, 2, dilation=3)),
    "reflecting first": (nn.Conv2d(2, 5, 3, padding=1, padding_mode="reflect"), nn.Conv2d(5, 6, 3)),
    "circular second": (nn.Conv2d(2, 5, 1), nn.Conv2d(5, 6, 3, padding=1, padding_mode="circular")),
    "same": (nn.Conv2d(2, 5, 3, padding="same"), nn.Conv2d(5, 6, 3, padding="valid")),
    "second same": (nn.Conv2d(2, 5, 1), nn.Conv2d(5, 6, 3, padding="same", dilation=2)),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("share", [0.4, 1.0])
@pytest.mark.parametrize("kind", MERGING)
def test_convolutions_that_merge(kind, share, seed):
    torch.manual_seed(seed)
    network = prepared(pair(*copy.deepcopy(MERGING[kind])), (3, 2, 17, 14), seed, (share, 0.5))
    core, account = fold(network, torch.zeros(1, 2, 17, 14, dtype=DOUBLE))
    assert_same(core, network, (3, 2, 17, 14), seed)
    assert [(row.linear, row.folded) for row in account] == [(round(5 * share), round(5 * share)), (3, 0)]
    assert "MaxPool2d" in account[1].reason


KEPT = {
    "padded after padded": (nn.Conv2d(2, 5, 3, padding=1), nn.Conv2d(5, 6, 3, padding=1)),
    "padded after unpadded": (nn.Conv2d(2, 5, 3), nn.Conv2d(5, 6, 3, padding=1)),
    "padded after padded point": (nn.Conv2d(2, 5, 1, padding=1), nn.Conv2d(5, 6, 3, padding=1)),
    "reflecting after strides": (
        nn.Conv2d(2, 5, 1, stride=2),
        nn.Conv2d(5, 6, 3, padding=1, padding_mode="reflect"),
    ),
}


@pytest.mark.parametrize("kind", KEPT)
def test_convolutions_that_would_differ_at_the_border_stay(kind):
    network = prepared(pair(*KEPT[kind]), (2, 2, 10, 10), 0, (1.0,))
    core, account = fold(network, torch.zeros(1, 2, 10, 10, dtype=DOUBLE))
    x = torch.randn(2, 2, 10, 10, dtype=DOUBLE)
    assert torch.equal(core(x), network(x)), "what is not folded is not touched"
    assert account[0].folded == 0 and "differ at the border" in account[0].reason
    assert set(core.state_dict()) == set(network.state_dict())


def test_average_pooling_between_convolutions_is_named():
    network = pair(nn.Conv2d(2, 5, 1), nn.Conv2d(5, 6, 1), nn.AvgPool2d(2))
    network = prepared(network, (2, 2, 9, 9), 0)
    core, account = fold(network, torch.zeros(1, 2, 9, 9, dtype=DOUBLE))
    assert_same(core, network, (2, 2, 9, 9))
    assert account[0].folded == 0 and account[0].reason == "3 (AvgPool2d) lies between it and the convolution 4"


def test_the_border_would_indeed_differ():
    """Two padded convolutions: the unpadded composition agrees inside and not at the border, so the refusal is due."""
    first, second = (conv.double() for conv in copy.deepcopy(KEPT["padded after padded"]))
    first.bias.data.zero_()
    second.bias.data.zero_()
    outer, inner = _map_of(second), _map_of(first)
    assert not _merges(outer, inner)
    x = torch.randn(1, 2, 10, 10, dtype=DOUBLE)
    difference = (second(first(x)) - nn.functional.conv2d(x, _compose(outer, inner).weight, padding=2)).abs()
    assert difference[..., 2:-2, 2:-2].max() < 1e-12 < 1e-3 < difference.max()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("between", [(), (nn.AvgPool2d(2),), (nn.BatchNorm2d(6), nn.Dropout2d()), (nn.MaxPool2d(2),)])
def test_the_last_convolution_before_a_linear_layer(between, seed):
    torch.manual_seed(seed)
    network = convolutional(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), *between)
    network = prepared(network, (3, 2, 8, 8), seed)
    core, account = fold(network, torch.zeros(1, 2, 8, 8, dtype=DOUBLE))
    assert_same(core, network, (3, 2, 8, 8), seed)
    folds = not any(isinstance(module, nn.MaxPool2d) for module in between)
    assert account[0].folded == 3 * folds and len(channel_prelus(core)["2"].weight) == 6 - 3 * folds


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_of_point_convolutions_keeps_only_the_core(seed):
    torch.manual_seed(seed)
    layers = [nn.Conv2d(2, 6, 3, padding=1), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Conv2d(6, 6, 1), nn.BatchNorm2d(6), nn.ReLU()]
    network = prepared(convolutional(*layers), (3, 2, 6, 6), seed, (0.5, 1.0, 0.2))
    core, account = fold(network, torch.zeros(1, 2, 6, 6, dtype=DOUBLE))
    assert_same(core, network, (3, 2, 6, 6), seed)
    assert [row.channels - row.folded for row in account] == [3, 0, 5, 3]
    assert [len(layer.weight) for layer in channel_prelus(core).values()] == [3, 5, 3]


@pytest.mark.parametrize("seed", range(2))
def test_batch_norm_after_the_activation_and_before_a_padded_convolution(seed):
    """The shift of the batch norm does not reach the border; the bias of the merged map is an image."""
    torch.manual_seed(seed)
    network = pair(nn.Conv2d(2, 5, 1), nn.Conv2d(5, 6, 3, padding=1), nn.BatchNorm2d(5), norm=False)
    network = prepared(network, (3, 2, 9, 7), seed)
    core, account = fold(network, torch.zeros(1, 2, 9, 7, dtype=DOUBLE))
    assert account[0].folded == 2
    assert_same(core, network, (3, 2, 9, 7), seed)


# ------------------------------------------------------------------------------------- what is left alone, and why


def test_residual_networks_stay_with_a_reason():
    network = prepared(resnet(4, (1, 1), channels=1), (2, 1, 8, 8), 0)
    core, account = fold(network, torch.zeros(1, 1, 8, 8, dtype=DOUBLE))
    x = torch.randn(2, 1, 8, 8, dtype=DOUBLE)
    assert torch.equal(core(x), network(x))
    reasons = {row.name: row.reason for row in account}
    assert "2 nodes read it" in reasons["relu"] and "differ at the border" in reasons["block1.relu1"]
    assert reasons["block1.relu2"] == "its input comes from add, which is no linear map by itself"
    assert all(row.folded == 0 for row in account)
    assert "block1.relu2: 0 of 2 linear channels folded, 4 left; its input comes from add" in str(account[2])


@pytest.mark.parametrize("kind", ["plain", "myrtle"])
def test_chapter_networks_keep_their_function(kind):
    shape = (2, 1, 8, 8) if kind == "plain" else (2, 1, 32, 32)
    network = resnet(4, (1, 1), channels=1, residual=False) if kind == "plain" else myrtle(4, channels=1)
    network = prepared(network, shape, 0)
    core, account = fold(network, torch.zeros(shape, dtype=DOUBLE))
    assert_same(core, network, shape)
    folded = {row.name: row.folded for row in account}
    assert folded == (
        {"relu": 0, "block1.relu1": 0, "block1.relu2": 0, "block2.relu1": 0, "block2.relu2": 4}
        if kind == "plain"
        else dict.fromkeys(("relu1", "relu2", "relu3", "relu4"), 0)
    )


class Read(nn.Module):
    """Values that something else reads, too; and a layer that is called twice."""

    def __init__(self, how):
        super().__init__()
        self.a, self.b, self.c, self.relu, self.how = *(nn.Linear(4, 4) for _ in range(3)), nn.ReLU(), how

    def forward(self, x):
        if self.how == "twice":
            return self.c(self.relu(self.b(torch.relu(self.b(x)))))
        y = self.a(x)
        z = self.relu(y)
        if self.how == "before":
            return self.b(z) + y
        if self.how == "after":
            return self.b(z) + self.c(z)
        return z if self.how == "output" else self.b(z.flip(1))


@pytest.mark.parametrize(
    "how, reason",
    [
        ("before", "its input is also read by add"),
        ("after", "2 nodes read it: b (Linear), c (Linear)"),
        ("output", "it is followed by the output of the network, which is not affine by itself"),
        ("flip", "it is followed by flip, which is not affine by itself"),
        ("twice", ""),
    ],
)
def test_values_that_are_needed_elsewhere(how, reason):
    network = prepared(Read(how), (2, 4), 0)
    core, account = fold(network, torch.zeros(2, 4, dtype=DOUBLE))
    assert_same(core, network, (5, 4))
    assert [row.reason for row in account] == ([reason] if reason else ["", ""])
    assert all(row.folded == (0 if reason else 2) for row in account)


def test_groups_and_layers_on_the_last_axis_are_no_linear_maps_here():
    network = nn.Sequential(nn.Conv2d(2, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1, groups=2), nn.ReLU(), nn.Linear(6, 3))
    network = prepared(network, (2, 2, 6, 6), 0)
    core, account = fold(network, torch.zeros(2, 2, 6, 6, dtype=DOUBLE))
    assert_same(core, network, (2, 2, 6, 6))
    assert "2 (Conv2d), which is not affine by itself" in account[0].reason
    assert "comes from 2 (Conv2d)" in account[1].reason


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
