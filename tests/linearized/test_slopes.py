"""Conversion to channel-wise PReLUs, survivors, and the symmetry group of partly linear networks."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from affscore_book.kit.networks import mlp, myrtle, resnet
from affscore_book.linearized.slopes import channel_prelus, effective_size, linearize, survivors, symmetry_dimension
from affscore_book.symmetries.groups import PReLUGroup
from affscore_study.linearized.training import freeze, prior

DOUBLE = torch.float64


def networks():
    return {
        "mlp": (mlp(8, 3, side=4), (2, 1, 4, 4)),
        "cnn": (myrtle(4, channels=1), (2, 1, 32, 32)),
        "plain": (resnet(4, (1, 1), channels=1, residual=False), (2, 1, 8, 8)),
        "residual": (resnet(4, (1, 1), channels=1), (2, 1, 8, 8)),
    }


def shaken(network, seed):
    """Float64, evaluation mode, with batch norms that do something."""
    generator = torch.Generator().manual_seed(seed)
    network = copy.deepcopy(network).double().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            for value in (module.weight, module.bias, module.running_mean, module.running_var):
                value.data = torch.rand(value.shape, generator=generator, dtype=DOUBLE) + 0.2
    return network


def random_slopes(network, seed):
    """Half of the channels linear, the others with slopes of their own or 0."""
    generator = torch.Generator().manual_seed(seed)
    for layer in channel_prelus(network).values():
        n = len(layer.weight)
        layer.weight.data = torch.rand(n, generator=generator, dtype=DOUBLE) * torch.randint(
            2, (n,), generator=generator
        ).to(layer.weight)
        layer.set_linear(torch.randperm(n, generator=generator) < n // 2)
    return network


@pytest.mark.parametrize("kind", ["mlp", "cnn", "plain", "residual"])
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_slope_0_changes_nothing_and_the_network_is_not_touched(kind, dtype):
    network, shape = networks()[kind]
    network = shaken(network, 0).to(dtype)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    result = linearize(network, torch.zeros(shape, dtype=dtype))
    assert torch.equal(torch.get_rng_state(), state), "conversion draws no random numbers"
    x = torch.randn(shape, dtype=dtype)
    assert torch.equal(result(x), network(x)) and type(result) is type(network)
    mine = {name + part for name in channel_prelus(result) for part in (".weight", ".linear")}
    assert set(result.state_dict()) == set(before) | mine
    for values in (network.state_dict(), result.state_dict()):
        assert all(torch.equal(values[name], value) for name, value in before.items())
    assert not any(isinstance(module, nn.ReLU) or module.training for module in result.modules())
    assert all(module.training for module in linearize(network.train(), x).modules())


@pytest.mark.parametrize("kind", ["mlp", "plain", "residual"])
def test_slope_1_is_affine(kind):
    """f(s x + t y + (1 - s - t) z) is the same combination of outputs: the definition of an affine function."""
    network, shape = networks()[kind]
    torch.manual_seed(0)
    result = linearize(shaken(network, 0), torch.zeros(shape, dtype=DOUBLE))
    x, y, z = (torch.randn(shape, dtype=DOUBLE) for _ in range(3))
    s, t = 0.7, -1.9
    before = result(s * x + t * y + (1 - s - t) * z) - (s * result(x) + t * result(y) + (1 - s - t) * result(z))
    for layer in channel_prelus(result).values():
        layer.set_linear(torch.ones(len(layer.weight), dtype=torch.bool))
    after = result(s * x + t * y + (1 - s - t) * z) - (s * result(x) + t * result(y) + (1 - s - t) * result(z))
    scale = result(x).abs().max()
    assert after.abs().max() < 1e-12 * max(1, scale)
    assert before.abs().max() > 1e-6 * scale, "with slope 0 it is not affine"


class Written(nn.Module):
    """A forward method given as a function of the module and its input."""

    def __init__(self, forward):
        super().__init__()
        self.linear, self.relu, self.written = nn.Linear(4, 4), nn.ReLU(inplace=True), forward

    def forward(self, x):
        return self.written(self, x)


def test_networks_that_cannot_be_converted_are_refused_by_name():
    def reads_again(self, x):
        """Goes on with what the in-place ReLU has left."""
        x = self.linear(x)
        self.relu(x)
        return self.linear(x)

    apart = r"should be a module of its own and called once"
    flat, tokens, text = torch.zeros(2, 4), torch.zeros(2, 3, 4), r"it should be \(n, channels\)"
    cases = [
        (Written(reads_again), flat, "Written computes something else .* in place"),
        (Written(lambda self, x: x[:, :3].relu_()), flat, rf"relu_ \(node relu_\) {apart}"),
        (Written(lambda self, x: self.relu(functional.relu(x))), flat, rf"relu \(node relu\) {apart}"),
        (Written(lambda self, x: self.relu(self.linear(self.relu(x)))), flat, f"module relu {apart}"),
        (nn.Sequential(nn.Linear(4, 4), nn.ReLU()), tokens, rf"input of 1 has shape \(2, 3, 4\); {text}"),
        (nn.Sequential(nn.Linear(4, 4), nn.GELU()), flat, "Sequential calls no ReLU"),
        (Written(lambda self, x: torch.relu(x) if x.sum() > 0 else x), flat, "fails on symbolic values"),
    ]
    for network, inputs, message in cases:
        with pytest.raises(ValueError, match=message):
            linearize(network, inputs)


def test_survivors_count_slopes_that_are_not_1():
    result = linearize(mlp(4, 2, side=2), torch.zeros(2, 1, 2, 2))
    layers = channel_prelus(result)
    layers["relu1"].weight.data = torch.tensor([0.0, 0.999, 1.001, 1.0])
    layers["relu2"].weight.data = torch.tensor([1.0, -1.0, 1.0, 1.0])
    assert survivors(result) == {"relu1": (3, 4), "relu2": (1, 4)}
    freeze(result)
    assert survivors(result) == {"relu1": (1, 4), "relu2": (1, 4)}
    with pytest.raises(ValueError, match="Linear has no ChannelPReLU"):
        survivors(nn.Linear(2, 2))


@pytest.mark.parametrize("seed", range(5))
def test_effective_size_multiplies_to_the_survivors(seed):
    counts = np.random.default_rng(seed).integers(0, 20, 9)
    width, depth = effective_size(counts)
    assert width * depth == pytest.approx(counts.sum())
    assert depth <= (counts > 0).sum() + 1e-9 and width <= counts.max() + 1e-9


def test_prior_is_the_sum_of_roots_and_pulls_harder_near_1():
    result = linearize(mlp(3, 1, side=2), torch.zeros(2, 1, 2, 2))
    layer = channel_prelus(result)["relu1"]
    layer.weight.data = torch.tensor([0.0, 0.75, 0.99])
    value = prior(result, 2.0)
    value.backward()
    assert value.item() == pytest.approx(2 * (1 + 0.5 + 0.1), rel=1e-5)
    torch.testing.assert_close(layer.weight.grad, -torch.tensor([1.0, 2.0, 10.0]), rtol=1e-4, atol=0)
    freeze(result)
    layer.weight.grad = None
    prior(result, 2.0).backward()
    assert layer.weight.grad.tolist() == pytest.approx([-1.0, -2.0, 0.0])
    layer.weight.grad, layer.weight.data[0] = None, 1.0  # at 1, though not fixed there
    prior(result, 2.0).backward()
    assert layer.weight.grad.tolist() == pytest.approx([0.0, -2.0, 0.0])


@pytest.mark.parametrize("m", range(5))
def test_symmetry_dimension_is_the_rank_of_the_sampled_group(m):
    """Independent of the formula: the tangent space at an element, from differences of samples that keep its zeros."""
    a = torch.tensor([1.0] * m + [0.0, 0.3, 0.6, 0.9][: 4 - m] + [0.1])
    group = PReLUGroup(tuple(a.double().tolist()))
    pattern = [group.sample(5, seed, spread=0.1) for seed in range(60)]
    free = torch.stack([(sample != 0) for sample in pattern]).any(0)
    assert symmetry_dimension(a) == int(free.sum()), "slopes all different: no permutation, so entries are parameters"
    basis = torch.stack([sample.flatten() for sample in pattern])
    assert torch.linalg.matrix_rank(basis) == symmetry_dimension(a)
