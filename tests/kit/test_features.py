"""Inputs and outputs of modules, kept without changing the network."""

from collections import OrderedDict

import pytest
import torch
from grids import each
from torch import nn

from affscore_book.kit.features import features, layer_outputs


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.act(x))


def test_what_a_module_takes_and_gives():
    network, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(5, 3)
    with torch.no_grad(), features(network, ["0", "1"]) as seen:
        y = network(x)
    hidden = network[0](x)
    assert set(seen) == {"0", "1"}
    assert torch.equal(seen["0"].input, x) and torch.equal(seen["0"].output, hidden)
    assert torch.equal(seen["1"].input, hidden) and torch.equal(seen["1"].output, hidden.relu())
    assert torch.equal(network(x), y) and not any(module._forward_hooks for module in network.modules())


def test_unknown_modules_and_second_runs_are_errors_and_leave_no_hook():
    network = Twice()
    with pytest.raises(ValueError, match=r"no module 'relu'; there are act"), features(network, ["act", "relu"]):
        pass
    with pytest.raises(ValueError, match="runs more than once"), features(network, ["act"]):
        network(torch.ones(2))
    assert not network.act._forward_hooks


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.lost = nn.ReLU()

    def forward(self, x):
        return self.relu(self.relu(x) - 1)


def test_layer_outputs_are_what_the_layers_give_also_where_later_ones_work_in_place():
    network = nn.Sequential(OrderedDict(conv=nn.Conv2d(1, 3, 3), relu=nn.ReLU(inplace=True), pool=nn.MaxPool2d(2)))
    images = torch.randn(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    found = layer_outputs(network, ["pool", "conv"], images, batch_size=3)
    assert network.training
    with torch.no_grad():
        conv = network.conv(images)
        torch.testing.assert_close(found["conv"], conv)
        torch.testing.assert_close(found["pool"], network.pool(conv.relu()))


@each(
    ("network", "layers", "text"),
    [
        (nn.Sequential(nn.ReLU()).eval(), ["relu7"], "no module 'relu7'; there are 0"),
        (Shared().eval(), ["relu"], "'relu' runs more than once"),
        (Shared().eval(), ["lost"], "'lost' did not run"),
    ],
)
def test_layers_that_give_no_single_output_are_named(network, layers, text):
    with pytest.raises(ValueError, match=text):
        layer_outputs(network, layers, torch.ones(2, 3))
