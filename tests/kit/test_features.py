"""Inputs and outputs of modules, kept without changing the network."""

from collections import OrderedDict

import pytest
import torch
from torch import nn

from affscore_book.kit.features import features, layer_outputs


def test_what_a_module_takes_and_gives():
    network, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(5, 3)
    with torch.no_grad(), features(network, ["0", "1"]) as seen:
        y = network(x)
    hidden = network[0](x)
    assert set(seen) == {"0", "1"}
    assert torch.equal(seen["0"].input, x) and torch.equal(seen["0"].output, hidden)
    assert torch.equal(seen["1"].input, hidden) and torch.equal(seen["1"].output, hidden.relu())
    assert torch.equal(network(x), y) and not any(module._forward_hooks for module in network.modules())


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.lost = nn.ReLU()

    def forward(self, x):
        return self.relu(self.relu(x) - 1)


def test_layer_outputs_survive_later_in_place_layers():
    """The outputs of a layer are its own, even if a later layer works in place."""
    network = nn.Sequential(OrderedDict(conv=nn.Conv2d(1, 3, 3), relu=nn.ReLU(inplace=True), pool=nn.MaxPool2d(2)))
    images = torch.randn(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    found = layer_outputs(network, ["pool", "conv"], images, batch_size=3)
    assert network.training
    with torch.no_grad():
        conv = network.conv(images)
        torch.testing.assert_close(found["conv"], conv)
        torch.testing.assert_close(found["pool"], network.pool(conv.relu()))


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        (["relu", "relu7"], "no module 'relu7'; there are relu, lost"),
        (["relu"], "'relu' runs more than once"),
        (["lost"], "'lost' did not run"),
    ],
)
def test_layers_without_one_output_are_named(layers, text):
    """A layer that gives no single output is named in the error, and no hook is left behind."""
    network = Shared()
    with pytest.raises(ValueError, match=text):
        layer_outputs(network, layers, torch.ones(2, 3))
    assert network.training and not any(module._forward_hooks for module in network.modules())
