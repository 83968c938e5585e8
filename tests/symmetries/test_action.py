"""The action of a group on the weights keeps the function; what would change it is refused."""

import copy

import pytest
import torch
from small_networks import ARCHITECTURES, change, disturbed, inputs_for
from torch import nn

from affscore_book.kit.draws import random_rotation
from affscore_book.kit.networks import myrtle, resnet20
from affscore_book.symmetries.action import act, mix_channels, sample_action
from affscore_book.symmetries.layers import hidden_layers
from affscore_book.symmetries.table import intertwiner
from affscore_study.symmetries.norms import fold_norm


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_action_keeps_the_function(name):
    torch.manual_seed(0)
    network = disturbed(ARCHITECTURES[name]())
    before = copy.deepcopy(network.state_dict())
    matrices = sample_action(network, 0)
    assert set(matrices) == {layer.name for layer in hidden_layers(network)}
    other = act(network, matrices)
    x = inputs_for(network)
    assert change(network, other, x) < 1e-10
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items()), "the input is kept"
    moved = [not torch.allclose(before[key], value) for key, value in other.state_dict().items() if "weight" in key]
    assert all(moved), "every layer's weights change"
    if "MLP" not in name:  # dropout
        assert change(network.train(), other.train(), x) < 1e-10
        network.eval()
    assert change(network.float(), act(network.float(), matrices), x.float()) < 1e-4


def test_features_are_multiplied_by_phi():
    """The first half of Proposition 3.4: f'_{<= m} = phi(A_m) f_{<= m}; here with signs, where phi is not A."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    matrices = sample_action(network, 0)
    other = act(network, matrices)
    x = inputs_for(network)
    for name, stop in (("1", 2), ("3", 4)):
        phi = intertwiner(network[int(name)]).phi(matrices[name])
        torch.testing.assert_close(other[:stop](x), network[:stop](x) @ phi.T, rtol=1e-10, atol=1e-10)


def test_two_actions_are_one():
    torch.manual_seed(0)
    network = disturbed(resnet20(4, channels=1))
    one, two = sample_action(network, 1), sample_action(network, 2)
    twice = act(act(network, one), two)
    once = act(network, {name: two[name] @ one[name] for name in one})
    for key, value in twice.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, once.state_dict()[key], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layer", ["block1.relu2", "block4.relu2", "relu"])
def test_a_broken_residual_tie_changes_the_function(layer):
    torch.manual_seed(0)
    network = disturbed(resnet20(4, channels=1))
    channels = {hidden.name: hidden.channels for hidden in hidden_layers(network)}[layer]
    matrices = {layer: intertwiner("relu").sample(channels, 0)}
    with pytest.raises(ValueError, match="is added before"):
        act(network, matrices)
    assert change(network, act(network, matrices, check_ties=False), inputs_for(network)) > 1e-3
    plain = disturbed(resnet20(4, channels=1, residual=False))
    assert change(plain, act(plain, matrices), inputs_for(plain)) < 1e-10


def test_mixing_channels_is_the_first_half_of_the_action():
    torch.manual_seed(0)
    network = myrtle(4, channels=1, norm=False).double().eval()
    x = inputs_for(network)
    a = intertwiner("relu").sample(8, 0)
    mixed = mix_channels(network, "relu2", a)
    features, moved = (torch.relu(net[:3](x)) for net in (network, mixed))
    torch.testing.assert_close(moved, torch.einsum("ij,njhw->nihw", a, features), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(mixed.linear.weight, network.linear.weight)
    with pytest.raises(ValueError, match="follows a batch norm"):
        mix_channels(myrtle(4), "relu2", a)
    with pytest.raises(ValueError, match="relu2 has 8 channels"):
        mix_channels(network, "relu2", a[:3, :3])
    with pytest.raises(ValueError, match="layer is 'conv1'"):
        mix_channels(network, "conv1", a)


def test_act_names_what_it_cannot_do():
    relu = intertwiner("relu")
    small = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    cases = [
        (small, {"0": relu.sample(3, 0)}, ValueError, "'0', which is not a hidden activation: 1"),
        (small, {"1": relu.sample(2, 0)}, ValueError, "1 has 3 channels"),
        (small, {"1": random_rotation(3, 0)}, ValueError, "is not in the group of ReLU"),
        (small, {"1": [[1.0]]}, TypeError, "it should be a real floating-point tensor"),
        (myrtle(2, slope=1.0), {"relu1": random_rotation(2, 0)}, ValueError, "the batch norm before relu1 does not"),
        (myrtle(2, slope=1.0, norm=False), {"relu2": random_rotation(4, 0)}, ValueError, "the max-pooling after relu2"),
        (nn.Linear(2, 2), {}, TypeError, "network is a Linear; it should be an nn.Sequential"),
        (nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), {}, ValueError, "network.0 should follow a linear"),
        (nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), {}, TypeError, "network.1 is a LayerNorm"),
        (nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=1)), {}, TypeError, "network.1 is a Softmax"),
        (nn.Sequential(nn.Conv2d(4, 4, 1, groups=2), nn.ReLU()), {}, ValueError, "a convolution with groups"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.ReLU()), {}, ValueError, "lies between a layer and"),
        (nn.Sequential(nn.BatchNorm1d(2)), {}, ValueError, "network.0 should follow"),
    ]
    for network, matrices, error, message in cases:
        with pytest.raises(error, match=message):
            act(network, matrices)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["Myrtle", "ResNet20", "MLP, identity"])
def test_the_action_on_a_gpu(name):
    torch.manual_seed(0)
    network = disturbed(ARCHITECTURES[name]())
    matrices = sample_action(network, 0)
    x = inputs_for(network)
    with torch.no_grad():
        expected = network(x)
    network.cuda()
    other = act(network, matrices)
    for changed in (other, fold_norm(other)):
        assert next(changed.parameters()).is_cuda
        with torch.no_grad():
            torch.testing.assert_close(changed(x.cuda()).cpu(), expected, rtol=1e-10, atol=1e-10)


def test_tanh_before_max_pooling_may_be_permuted_and_not_turned():
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2)).double()
    x = torch.randn(4, 1, 6, 6, dtype=torch.float64)
    matrices = sample_action(network, 0)
    assert (matrices["1"] >= 0).all()
    assert change(network, act(network, matrices), x) < 1e-10
    with pytest.raises(ValueError, match="turns signs"):
        act(network, {"1": -matrices["1"]})
