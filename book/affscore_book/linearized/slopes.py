"""Linearised networks: ReLUs whose negative slopes may learn to be 1, channel by channel.

A ReLU becomes a PReLU with one slope a per channel, max(x, 0) + a min(x, 0), which starts at a = 0. A sparsity prior
pulls the slopes to 1, where the channel is linear; a slope that has come close to 1 is set to 1 and stays there.

*   :func:`linearize` converts a network, and :func:`affscore_book.linearized.folding.fold` removes the linear channels.
*   :func:`survivors` counts the channels that are left in each layer, and :func:`effective_size` says
    how wide and deep what is left is.
*   :func:`symmetry_dimension` and :func:`transform`: linear channels enlarge the symmetry group of the network.

Reference: Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180. The form of the prior,
strength * sum sqrt(|1 - a|), and the tolerance of .01 are our reading; the part on symmetries is ours.
"""

from __future__ import annotations

import copy
import itertools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from affscore_book.kit.draws import as_generator
from affscore_book.kit.features import evaluating
from affscore_book.linearized.graph import enclosing_module, traced_graph
from affscore_book.symmetries.action import act
from affscore_book.symmetries.layers import hidden_layers
from affscore_book.symmetries.norms import fold_norm

__all__ = [
    "ChannelPReLU",
    "channel_prelus",
    "effective_size",
    "freeze",
    "linearize",
    "prior",
    "survivors",
    "symmetry_dimension",
    "transform",
    "with_slopes",
]


class ChannelPReLU(nn.PReLU):
    """max(x, 0) + a min(x, 0) with one slope a per channel, axis 1; channels where ``linear`` is True keep a = 1."""

    linear: Tensor

    def __init__(self, channels: int, slope: float = 0.0):
        super().__init__(channels, slope)
        self.register_buffer("linear", torch.zeros(channels, dtype=torch.bool))

    @torch.no_grad()
    def set_linear(self, channels: Tensor) -> None:
        """Fix the slopes of these channels, bool (channels,), at 1; those that are fixed stay fixed."""
        self.linear |= channels.to(self.linear.device)
        self.weight[self.linear] = 1.0


_RELUS: tuple[Any, ...] = (functional.relu, torch.relu, torch.relu_, "relu", "relu_")


def _is_relu(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return type(modules[str(node.target)]) is nn.ReLU
    return node.op in ("call_function", "call_method") and node.target in _RELUS


def linearize(network: nn.Module, inputs: Tensor) -> nn.Module:
    """A copy of a network, as a graph module, in which every call of a ReLU is a :class:`ChannelPReLU` with slopes 0.

    The copy computes the same function, and all other modules keep their names. A module that is called several
    times becomes several (``relu``, ``relu_2``); a ReLU that is not a module gets the name of the module that calls
    it and ``relu``. A module that the trace does not reach is left out. Other activations stay as they are.

    Parameters
    ----------
    network
        Any network that :func:`affscore_book.linearized.graph.traced_graph` can trace.
    inputs
        A batch for it. The copy is run on it, with noise added, and compared with the network.

    Raises
    ------
    ValueError
        If the network cannot be traced or has no ReLU; if a ReLU's input is neither (n, channels) nor (n, channels,
        H, W), so that axis 1 may not be channels; or if the copy computes something else, because the network goes on
        with what a ReLU has written into its input. The sentence names the module.

    Examples
    --------
    >>> from affscore_book.kit.networks import resnet20
    >>> network = linearize(resnet20(width=4, channels=1), torch.zeros(1, 1, 32, 32))
    >>> list(channel_prelus(network))[:3]
    ['relu', 'block1.relu1', 'block1.relu2']
    """
    traced = traced_graph(copy.deepcopy(network), inputs)
    before = _probe(traced, inputs)
    modules = dict(traced.named_modules())
    taken = {*modules, *dict(traced.named_parameters()), *dict(traced.named_buffers())}
    device = next((p.device for p in network.parameters()), None)
    seen: set[str] = set()
    for node in [node for node in traced.graph.nodes if _is_relu(node, modules)]:
        name = _name(node, taken, seen)
        seen.add(name)
        meta = node.meta["tensor_meta"]
        if len(meta.shape) not in (2, 4):
            raise ValueError(
                f"network: the input of {name} has shape {tuple(meta.shape)}; it should be (n, channels) or "
                "(n, channels, H, W), because every channel gets a slope of its own."
            )
        module = ChannelPReLU(meta.shape[1]).to(device, meta.dtype)
        traced.add_submodule(name, module)
        with traced.graph.inserting_before(node):
            new = traced.graph.call_module(name, tuple(node.all_input_nodes))
        node.replace_all_uses_with(new)
        traced.graph.erase_node(node)
    if not seen:
        raise ValueError(f"network: {type(network).__name__} calls no ReLU; there is nothing to linearise.")
    for made in set(traced.modules()) - set(modules.values()):  # what add_submodule made, containers included
        made.training = network.training
    traced.recompile()
    try:
        torch.testing.assert_close(_probe(traced, inputs), before, equal_nan=True)
    except AssertionError as error:
        raise ValueError(
            f"network: {type(network).__name__} computes something else with PReLUs of slope 0; it may go on with what "
            f"it has written in place. {error}"
        ) from error
    return traced


def _probe(traced: fx.GraphModule, inputs: Tensor) -> Any:
    """Outputs in evaluation mode for the inputs plus noise, without touching the state of torch's generator."""
    with torch.random.fork_rng(), torch.no_grad(), evaluating(traced):
        torch.manual_seed(0)
        return traced(inputs + torch.randn_like(inputs) if inputs.is_floating_point() else inputs.clone())


def _name(node: fx.Node, taken: set[str], seen: set[str]) -> str:
    """Of the PReLU for a call of ReLU: the module's at its first call, else a new one."""
    is_module = node.op == "call_module"
    name = str(node.target) if is_module else ".".join(filter(None, (enclosing_module(node), "relu")))
    if is_module and name not in seen:
        return name
    numbered = itertools.chain([name], (f"{name}_{count}" for count in itertools.count(2)))
    return next(name for name in numbered if name not in seen and name not in taken)


def channel_prelus(network: nn.Module) -> OrderedDict[str, ChannelPReLU]:
    """The :class:`ChannelPReLU` of a network by name, in execution order.

    Raises
    ------
    ValueError
        If the network has none.
    """
    modules = dict(network.named_modules())
    graph: Any = getattr(network, "graph", None)
    names = modules if graph is None else [node.target for node in graph.nodes if node.op == "call_module"]
    found = OrderedDict((str(name), modules[name]) for name in names if isinstance(modules[name], ChannelPReLU))
    if not found:
        raise ValueError(f"network: {type(network).__name__} has no ChannelPReLU; linearize makes them.")
    return found


def prior(network: nn.Module, strength: float) -> Tensor:
    """strength * sum sqrt(|1 - a|) over all slopes that are not fixed at 1, a tensor of no dimension.

    The square root makes the pull the stronger the closer a slope is to 1, so that slopes end at 1 or stay away.
    """
    # A slope that is 1 and not yet fixed adds 0, and the gradient of the root there is not a number.
    moving = [layer.weight[layer.weight != 1] for layer in channel_prelus(network).values()]
    return strength * (1 - torch.cat(moving)).abs().sqrt().sum()


def freeze(network: nn.Module) -> None:
    """Fix every slope within 0.01 of 1 at 1, for good."""
    for layer in channel_prelus(network).values():
        layer.set_linear((layer.weight.detach() - 1).abs() <= 0.01)


def survivors(network: nn.Module) -> OrderedDict[str, tuple[int, int]]:
    """By layer, in execution order: how many channels are not linear (slope != 1), of how many.

    >>> network = linearize(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.zeros(1, 2))
    >>> channel_prelus(network)["1"].set_linear(torch.tensor([True, False, False]))
    >>> dict(survivors(network))
    {'1': (2, 3)}
    """
    layers = channel_prelus(network).items()
    return OrderedDict((name, (int((layer.weight != 1).sum()), len(layer.weight))) for name, layer in layers)


def effective_size(survivors: Sequence[int]) -> tuple[float, float]:
    """Effective width and depth of what is left: s_l non-linear channels in layer l, s in all.

    Width is the number of survivors in the layer of an average survivor, sum s_l^2 / s, and depth the participation
    ratio of the layers, s^2 / sum s_l^2: k layers of w survivors have width w and depth k. Their product is s. The
    definition is ours. Without survivors both are 0.

    >>> effective_size([8, 8, 0, 8]), effective_size([0, 5, 0, 0]), effective_size([0, 0])
    ((8.0, 3.0), (5.0, 1.0), (0.0, 0.0))
    """
    counts = np.asarray(survivors, dtype=np.float64)
    total, squares = counts.sum(), (counts**2).sum()
    return (float(squares / total), float(total**2 / squares)) if total else (0.0, 0.0)


def symmetry_dimension(slopes: Tensor | Sequence[float]) -> int:
    """Number of free parameters of the intertwiner group of one layer: m^2 + n - m, m of n slopes being 1.

    The m linear channels can be mixed by any invertible matrix; every other channel has one positive scaling
    (permutations and sign flips are discrete). The slopes are held fixed.

    >>> symmetry_dimension([0, 0, 0, 0]), symmetry_dimension([0, 0.5, 1, 1]), symmetry_dimension([1, 1, 1, 1])
    (4, 6, 16)
    """
    linear = int((torch.as_tensor(slopes) == 1).sum())
    return linear**2 + len(slopes) - linear


def with_slopes(network: nn.Sequential, linearized: nn.Module) -> nn.Sequential:
    """A copy of a network with the weights and the PReLUs of its linearised form, in the class of ``network``.

    :mod:`affscore_book.symmetries.action` reads networks in this class, and not graph modules.

    Parameters
    ----------
    network
        What was given to :func:`linearize`, with every ReLU a module of its own.
    linearized
        What came back, trained or not.

    Raises
    ------
    ValueError
        If a ReLU of ``network`` is not a module of its own.
    """
    result = copy.deepcopy(network)
    modules = dict(result.named_modules())
    for name, layer in channel_prelus(linearized).items():
        if type(modules.get(name)) is not nn.ReLU:
            raise ValueError(f"network has no ReLU called {name}; every call should be a module of its own.")
        result.set_submodule(name, copy.deepcopy(layer))
    result.load_state_dict(linearized.state_dict())
    return result.train(linearized.training)


def transform(
    network: nn.Sequential, generator: torch.Generator | int | None = None
) -> tuple[nn.Sequential, dict[str, Tensor]]:
    """A network with other weights that computes the same function, by random elements of its layers' groups.

    Batch norm is folded first, because it would allow no mixing of channels. Layers before max-pooling and in a
    residual stream are left as they are: what can act there is smaller than the layer's group.

    Parameters
    ----------
    network
        As in :func:`affscore_book.symmetries.layers.hidden_layers`, for instance from :func:`with_slopes`.
    generator
        As in :meth:`affscore_book.symmetries.groups.Intertwiner.sample`.

    Returns
    -------
    The network, in evaluation mode, and the matrices (channels, channels) by layer.

    Raises
    ------
    TypeError, ValueError
        As :func:`affscore_book.symmetries.action.act`.

    >>> network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    >>> x = torch.randn(5, 3, dtype=torch.float64)
    >>> same = with_slopes(network, linearize(network, x))
    >>> same[1].set_linear(torch.tensor([True, True, False, False]))
    >>> other, matrices = transform(same, 0)
    >>> torch.allclose(other(x), same(x)), torch.allclose(other[0].weight, same[0].weight)
    (True, False)
    >>> int((matrices["1"] != 0).sum()), symmetry_dimension(same[1].weight)
    (6, 6)
    """
    generator = as_generator(generator)
    bare = fold_norm(network)
    layers = hidden_layers(bare)
    stream = {layer.name for layer in layers if layer.tied_to} | {layer.tied_to for layer in layers}
    matrices = {
        layer.name: layer.group.sample(layer.channels, generator)
        for layer in layers
        if not layer.pooled and layer.name not in stream
    }
    return act(bare, matrices), matrices
