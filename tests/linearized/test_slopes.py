"""Conversion to channel-wise PReLUs, survivors, and the symmetry group of partly linear networks."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
from grids import each
from torch import nn
from torch.nn import functional

from affscore_book.kit.networks import mlp, myrtle, resnet
from affscore_book.linearized.slopes import (
    channel_prelus,
    effective_size,
    freeze,
    linearize,
    prior,
    survivors,
    symmetry_dimension,
    transform,
    with_slopes,
)
from affscore_book.symmetries.groups import PReLUGroup
from affscore_book.symmetries.norms import fold_norm

DOUBLE = torch.float64


class Mixed(nn.Module):
    """Every way to call ReLU; one module twice."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 6), nn.Linear(6, 6)
        self.relu = nn.ReLU()
        self.inner = Functional()

    def forward(self, x):
        x = self.relu(self.first(x))
        x = self.relu(self.second(x)) + x
        x = functional.relu(1.5 * x) - torch.relu(0.2 - x)
        return self.inner((x - 0.1).relu())


class Functional(nn.Module):
    def forward(self, x):
        return functional.relu(x - 0.1, inplace=True)


class Overwriting(nn.Module):
    """Reads the input of an in-place ReLU after the call."""

    def __init__(self, how):
        super().__init__()
        self.linear, self.last, self.how = nn.Linear(5, 6), nn.Linear(6, 3), how
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.linear(x)
        if self.how == "view":
            part = x[:, :3]
            part.relu_()
            return self.last(x)
        before = 2 * x
        if self.how == "module":
            self.relu(x)
        elif self.how == "method":
            x.relu_()
        else:
            functional.relu(x, inplace=True) if self.how == "relu" else torch.relu_(x)
        return self.last(x) + self.last(before) + self.last(functional.relu(before))


def networks():
    torchvision = pytest.importorskip("torchvision")
    return {
        "mlp": (mlp(8, 3, side=4), (2, 1, 4, 4)),
        "cnn": (myrtle(4, channels=1), (2, 1, 32, 32)),
        "plain": (resnet(4, (1, 1), channels=1, residual=False), (2, 1, 8, 8)),
        "residual": (resnet(4, (1, 1), channels=1), (2, 1, 8, 8)),
        "torchvision": (torchvision.models.resnet18(num_classes=5), (2, 3, 32, 32)),
        "mixed": (Mixed(), (4, 5)),
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


@each("kind", ["mlp", "cnn", "plain", "residual", "torchvision", "mixed"])
@each("dtype", [torch.float32, DOUBLE])
def test_slope_0_changes_nothing(kind, dtype):
    network, shape = networks()[kind]
    network = shaken(network, 0).to(dtype)
    x = torch.randn(shape, dtype=dtype)
    state = torch.get_rng_state()
    result = linearize(network, torch.zeros(shape, dtype=dtype))
    assert torch.equal(torch.get_rng_state(), state), "conversion draws no random numbers"
    assert torch.equal(result(x), network(x))
    mine = {name + part for name in channel_prelus(result) for part in (".weight", ".linear")}
    assert set(result.state_dict()) == set(network.state_dict()) | mine
    assert not any(isinstance(module, nn.ReLU) for module in result.modules())
    assert not any(module.training for module in result.modules())


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_kept_and_the_network_is_not_touched(training):
    network = mlp(8, 2, side=4).train(training)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    result = linearize(network, torch.zeros(2, 1, 4, 4))
    assert all(module.training is training for module in [*network.modules(), *result.modules()])
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(torch.equal(value, before[name]) for name, value in result.state_dict().items() if name in before)


@each("seed", range(3))
@each("kind", ["mlp", "plain", "residual", "torchvision", "mixed"])
def test_slope_1_is_affine(kind, seed):
    """f(s x + t y + (1 - s - t) z) is the same combination of outputs: the definition of an affine function."""
    network, shape = networks()[kind]
    if kind == "torchvision":
        network.maxpool = nn.Identity()
    torch.manual_seed(seed)
    result = linearize(shaken(network, seed), torch.zeros(shape, dtype=DOUBLE))
    x, y, z = (torch.randn(shape, dtype=DOUBLE) for _ in range(3))
    s, t = 0.7, -1.9
    before = result(s * x + t * y + (1 - s - t) * z) - (s * result(x) + t * result(y) + (1 - s - t) * result(z))
    for layer in channel_prelus(result).values():
        layer.set_linear(torch.ones(len(layer.weight), dtype=torch.bool))
    after = result(s * x + t * y + (1 - s - t) * z) - (s * result(x) + t * result(y) + (1 - s - t) * result(z))
    scale = result(x).abs().max()
    assert after.abs().max() < 1e-12 * max(1, scale)
    assert before.abs().max() > 1e-6 * scale, "with slope 0 it is not affine"


def test_names_of_calls():
    result = linearize(Mixed(), torch.zeros(4, 5))
    assert list(channel_prelus(result)) == ["relu", "relu_2", "relu_3", "relu_4", "relu_5", "inner.relu"]
    torchvision = pytest.importorskip("torchvision")
    names = list(channel_prelus(linearize(torchvision.models.resnet18(), torch.zeros(1, 3, 32, 32))))
    assert names[:4] == ["relu", "layer1.0.relu", "layer1.0.relu_2", "layer1.1.relu"] and len(names) == 17


def test_a_new_name_never_takes_the_place_of_something_else():
    class Crowded(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu, self.relu_2 = nn.ReLU(), nn.Linear(5, 5)
            self.relu_3 = nn.Parameter(torch.ones(5))

        def forward(self, x):
            return torch.relu(self.relu(self.relu_2(self.relu(x))) - self.relu_3)

    network = Crowded()
    result = linearize(network, torch.zeros(2, 5))
    assert list(channel_prelus(result)) == ["relu", "relu_4", "relu_5"]
    x = torch.randn(7, 5)
    assert torch.equal(result(x), network(x))
    assert set(network.state_dict()) < set(result.state_dict())


@pytest.mark.parametrize("how", ["module", "method", "relu", "relu_", "view"])
def test_reading_what_an_in_place_relu_has_written_is_refused(how):
    with pytest.raises(ValueError, match=r"Overwriting computes something else .* in place"):
        linearize(Overwriting(how), torch.zeros(2, 5))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        return self.part(x)


def test_networks_that_cannot_be_converted_are_refused_by_name():
    with pytest.raises(ValueError, match=r"input of part\.1 has shape \(2, 3, 4\); it should be \(n, channels\)"):
        linearize(Tokens(), torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="Sequential calls no ReLU"):
        linearize(nn.Sequential(nn.Linear(2, 2), nn.GELU()), torch.zeros(1, 2))

    class Depends(nn.Module):
        def forward(self, x):
            return torch.relu(x) if x.sum() > 0 else x

    with pytest.raises(ValueError, match="module 1 fails on symbolic values"):
        linearize(nn.Sequential(nn.Linear(2, 2), Depends()), torch.zeros(1, 2))


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


@each("layers", [1, 3, 7])
@each("width", [1, 5])
def test_effective_size_of_equal_layers(layers, width):
    assert effective_size([width] * layers + [0, 0]) == (width, layers)


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


def test_a_slope_that_is_1_and_not_fixed_has_no_gradient():
    result = linearize(mlp(2, 1, side=2), torch.zeros(2, 1, 2, 2))
    layer = channel_prelus(result)["relu1"]
    layer.weight.data = torch.tensor([1.0, 0.0])
    prior(result, 1.0).backward()
    assert layer.weight.grad.tolist() == [0.0, -0.5]


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


def test_symmetry_dimension_grows_with_every_linear_channel():
    sizes = [symmetry_dimension([1.0] * m + [0.0] * (8 - m)) for m in range(9)]
    assert sizes[0] == sizes[1] == 8 and sizes[8] == 64
    assert all(b > a for a, b in itertools.pairwise(sizes[1:]))


@each("seed", range(4))
@each("kind", ["mlp", "plain", "residual"])
def test_acting_with_the_group_keeps_the_function(kind, seed):
    network, shape = networks()[kind]
    network = shaken(network, seed)
    result = random_slopes(linearize(network, torch.zeros(shape, dtype=DOUBLE)), seed)
    same = with_slopes(network, result)
    x = torch.randn(shape, dtype=DOUBLE)
    expected = result(x).detach()
    assert type(same) is nn.Sequential
    torch.testing.assert_close(same(x), expected, rtol=1e-12, atol=1e-12)
    other, matrices = transform(same, seed)
    torch.testing.assert_close(other(x), expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))
    layers = channel_prelus(result)
    assert set(matrices) == ({name for name in layers if name.endswith("relu1")} if kind == "residual" else set(layers))
    mixing = [a for name, a in matrices.items() if int((layers[name].weight == 1).sum()) > 1]
    assert any(int((a != 0).sum()) > len(a) for a in mixing), "linear channels are mixed"
    bare = fold_norm(same)
    changed = [(p - q).abs().max() for p, q in zip(bare.parameters(), other.parameters(), strict=True) if p.ndim > 1]
    assert max(changed) > 0.1


def test_with_slopes_needs_one_module_for_every_relu():
    network = nn.Sequential(Functional(), nn.Linear(5, 5), nn.ReLU())
    result = linearize(network, torch.zeros(2, 5))
    with pytest.raises(ValueError, match=r"no ReLU called 0\.relu"):
        with_slopes(network, result)
