"""The graph of a network computes what the network computes, and tracing leaves the network alone."""

import pytest
import torch
from torch import fx, nn

from affscore_book.kit.networks import resnet
from affscore_book.linearized.graph import function_name, node_name, traced_graph


def test_tracing_leaves_the_network_as_it_was():
    network = resnet(2, (1, 1)).train()
    network.norm.eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    modes = [module.training for module in network.modules()]
    traced = traced_graph(network, torch.randn(2, 3, 32, 32))
    assert modes == [module.training for module in network.modules()] and sum(modes) == len(modes) - 1
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert traced.get_submodule("block1.relu1") is network.block1.relu1
    x = -torch.ones(1, 4)
    traced_graph(nn.ReLU(inplace=True), x)
    assert (x == -1).all(), "inputs are not written into"


def test_node_is_named_by_its_module_or_call():
    """A node is named by its module, or by what it calls and where."""

    class Inner(nn.Module):
        def forward(self, x):
            return torch.relu(x).abs()

    nodes: list[fx.Node] = list(traced_graph(nn.Sequential(nn.Linear(2, 2), Inner()), torch.zeros(1, 2)).graph.nodes)
    named = {function_name(node): node_name(node) for node in nodes[1:-1]}
    assert named == {
        "0": "module 0", "relu": "relu (node relu in module 1)", "abs": "abs (node abs_1 in module 1)",
    }  # fmt: skip


def test_what_is_no_network_or_no_tensor_is_named():
    with pytest.raises(TypeError, match="network is a builtin"):
        traced_graph(torch.relu, torch.ones(1, 2))
    with pytest.raises(TypeError, match="inputs is a list; it should be a Tensor"):
        traced_graph(nn.ReLU(), [1.0])
