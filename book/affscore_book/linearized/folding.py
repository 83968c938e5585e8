"""Remove the linear channels of a network: what is left is its core, the units that are not linear.

A channel whose activation is the identity, between two linear layers, needs no unit: with V before and W after a layer,

    W a(V x) = W[:, core] a(V[core] x) + (W[:, linear] V[linear]) x,

so the linear channels become one direct map beside the core units. In a chain of such layers the direct maps go on
composing, and the core units of a layer end up with one map from the core units of each earlier layer and one from the
input, side by side in one linear layer. If all channels of a layer are linear, the maps before and after it become one.

Convolutions stay as they are. Two of them become one, exactly, only if the second does not pad: otherwise it pads with
zeros what the first would have continued, and the two differ at the border.

Folding is our addition to Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn

from affscore_book.linearized.graph import traced_graph
from affscore_book.linearized.slopes import ChannelPReLU, channel_prelus

__all__ = ["FoldedLayer", "fold"]


@dataclass(frozen=True)
class FoldedLayer:
    """What :func:`fold` did to one :class:`~affscore_book.linearized.slopes.ChannelPReLU`.

    Attributes
    ----------
    name, channels, linear, folded
        Of the layer; number of its channels, how many have slope 1, and how many of these are gone.
    reason
        Why linear channels stayed, or "".
    """

    name: str
    channels: int
    linear: int
    folded: int
    reason: str = ""

    def __str__(self) -> str:
        said = f"{self.name}: {self.folded} of {self.linear} linear channels folded, {self.channels - self.folded} left"
        return f"{said}; {self.reason}" if self.reason else said


@dataclass(frozen=True)
class _Affine:
    """A value of the network, (n, features), as an affine function of nodes of the new graph, in float64."""

    maps: dict[fx.Node, Tensor]  # (features, features of the node) each
    bias: Tensor
    layer: str  # the linear layer that computes it; "" for the output of a folded activation, which waits for one

    def then(self, weight: Tensor, bias: Tensor, layer: str) -> _Affine:
        """The value after a linear layer."""
        maps = {node: weight @ before for node, before in self.maps.items()}
        return _Affine(maps, weight @ self.bias + bias, layer)


class _Folder:
    """Writes the new graph, node by node."""

    def __init__(self, traced: fx.GraphModule):
        self.traced = traced
        self.modules = dict(copy.deepcopy(traced).double().named_modules())
        self.calls = Counter(node.target for node in traced.graph.nodes if node.op == "call_module")
        self.graph = fx.Graph()
        self.values: dict[fx.Node, fx.Node | _Affine] = {}
        self.account: list[FoldedLayer] = []

    def run(self) -> fx.GraphModule:
        for node in self.traced.graph.nodes:
            self.values[node] = self.step(node)
        self.traced.graph = self.graph
        self.traced.delete_all_unused_submodules()
        self.traced.recompile()
        return self.traced

    def step(self, node: fx.Node) -> fx.Node | _Affine:
        """The value of a node of the old graph."""
        module = self.module(node)
        source = node.all_input_nodes[0] if len(node.all_input_nodes) == 1 else None
        before = self.values[source] if source else None
        if source and self.is_linear(node):
            weight = module.weight.detach()
            bias = weight.new_zeros(len(weight)) if module.bias is None else module.bias.detach()
            if isinstance(before, _Affine) and not before.layer:
                return before.then(weight, bias, str(node.target))
            return _Affine({self.node(source): weight}, bias, str(node.target))
        if source and isinstance(module, ChannelPReLU):
            linear = module.weight.detach() == 1
            count = int(linear.sum())
            reason = self.obstacle(node, source) if count else ""
            self.account.append(FoldedLayer(str(node.target), len(linear), count, 0 if reason else count, reason))
            if count and not reason:
                return self.activation(node, linear)
        if source and isinstance(before, _Affine) and len(source.users) == 1 and self.is_elementwise(node):
            shift = module(torch.zeros_like(before.bias)[None])[0]
            gain = module(torch.ones_like(before.bias)[None])[0] - shift
            return before.then(gain.diag(), shift, before.layer)
        return self.graph.node_copy(node, self.node)

    def module(self, node: fx.Node) -> Any:
        return self.modules[str(node.target)] if node.op == "call_module" else None

    def is_linear(self, node: fx.Node) -> bool:
        return isinstance(self.module(node), nn.Linear) and len(node.meta["tensor_meta"].shape) == 2

    def is_elementwise(self, node: fx.Node) -> bool:
        """Whether the module of a node is affine in evaluation mode, channel by channel."""
        module = self.module(node)
        fixed = isinstance(module, nn.BatchNorm1d) and module.running_mean is not None
        return fixed or isinstance(module, (nn.Identity, nn.Dropout))

    def obstacle(self, node: fx.Node, source: fx.Node) -> str:
        """Why the linear channels of an activation cannot be folded, or ""."""
        if len(source.users) > 1:
            return f"its input is also read by {', '.join(str(user) for user in source.users if user is not node)}"
        if not isinstance(self.values[source], _Affine):
            return f"its input comes from {source}, which is no linear layer"
        while len(node.users) == 1:
            (node,) = node.users
            if self.is_linear(node):
                return ""
            if not self.is_elementwise(node):
                return f"it is followed by {node}, which is no linear layer"
        return f"{len(node.users)} layers read it"

    def activation(self, node: fx.Node, linear: Tensor) -> _Affine:
        """Its linear channels as a function of what its input depends on, beside the other channels."""
        before = self.values[node.all_input_nodes[0]]
        assert isinstance(before, _Affine)
        everything = torch.eye(len(linear)).to(before.bias)
        straight = before.then(everything * linear, torch.zeros_like(before.bias), "")
        if bool(linear.all()):
            return straight
        slopes = self.module(node).weight.detach()[~linear]
        small = ChannelPReLU(len(slopes)).to(slopes.device)
        small.weight.data = slopes.clone()
        bent = self.emit(before.then(everything[~linear], torch.zeros_like(slopes), before.layer))
        core = self.call(str(node.target), small, bent)
        return replace(straight, maps=straight.maps | {core: everything[:, ~linear]})

    def node(self, old: fx.Node) -> fx.Node:
        """The node of the new graph for a node of the old one."""
        value = self.values[old]
        if isinstance(value, _Affine):
            value = self.values[old] = self.emit(value)
        return value

    def emit(self, value: _Affine) -> fx.Node:
        weight, sources = torch.cat(list(value.maps.values()), 1), list(value.maps)
        made = nn.utils.skip_init(nn.Linear, weight.shape[1], len(weight))
        made.weight, made.bias = nn.Parameter(weight), nn.Parameter(value.bias)
        joined = self.graph.call_function(torch.cat, (sources, 1)) if len(sources) > 1 else sources[0]
        return self.call(value.layer, made, joined)

    def call(self, name: str, module: nn.Module, source: fx.Node) -> fx.Node:
        """Call a new module, under its old name unless others use that."""
        if self.calls[name] != 1:
            name = next(n for n in (f"{name}_{i}" for i in itertools.count(2)) if n not in self.modules)
            self.modules[name] = module
        self.traced.add_submodule(name, module.eval().to(next(self.traced.parameters()).dtype))
        return self.graph.call_module(name, (source,))


@torch.no_grad()
def fold(network: nn.Module, inputs: Tensor) -> tuple[fx.GraphModule, list[FoldedLayer]]:
    """A copy of a network in evaluation mode without the linear channels that can be removed, and an account.

    It computes the same function up to rounding (weights are multiplied in float64), for inputs of the size of
    ``inputs``. A layer with linear channels is folded if its input is a linear layer, with or without batch norm, that
    nothing else reads, and its output goes to one linear layer, with only batch norm and dropout between. Batch norm
    and dropout after a linear layer disappear, so that the copy is not for training. What is left of a layer keeps its
    name.

    Path lengths belong to the network before folding: folding turns linear channels into skips. Units go, but weights
    may become more: every layer is then joined to all earlier ones.

    Parameters
    ----------
    network
        With layers of :class:`~affscore_book.linearized.slopes.ChannelPReLU`, of any class that can be traced.
    inputs
        A batch for it; only its shape matters.

    Returns
    -------
    The network, and one :class:`FoldedLayer` for each layer of ``network``, in execution order.

    Raises
    ------
    ValueError
        If the network has no :class:`ChannelPReLU`, or as :func:`affscore_book.linearized.graph.traced_graph`.

    Examples
    --------
    >>> from affscore_book.linearized.slopes import channel_prelus, linearize
    >>> network = linearize(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.zeros(1, 2))
    >>> channel_prelus(network)["1"].set_linear(torch.tensor([True, False, False]))
    >>> core, account = fold(network, torch.zeros(1, 2))
    >>> print(account[0])
    1: 1 of 1 linear channels folded, 2 left
    >>> x = torch.randn(5, 2)
    >>> torch.allclose(core(x), network(x), atol=1e-6), core.get_submodule("0")
    (True, Linear(in_features=2, out_features=2, bias=True))
    """
    channel_prelus(network)  # or an error
    folder = _Folder(traced_graph(copy.deepcopy(network).eval(), inputs))
    return folder.run(), folder.account
