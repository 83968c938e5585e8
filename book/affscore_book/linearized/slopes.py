"""Linearised networks: ReLUs whose negative slopes may learn to be 1, channel by channel.

A ReLU becomes a PReLU with one slope a per channel, max(x, 0) + a min(x, 0), which starts at a = 0. A sparsity prior
pulls the slopes to 1, where the channel is linear; a slope that has come close to 1 is set to 1 and stays there.

*   :func:`linearize` converts a network.
*   :func:`survivors` counts the channels that are left in each layer, and :func:`effective_size` says
    how wide and deep what is left is.
*   :func:`symmetry_dimension`: linear channels enlarge the symmetry group of the network.

Reference: Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180. The form of the prior,
strength * sum sqrt(|1 - a|), and the tolerance of .01 are our reading; the part on symmetries is ours.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.forward import evaluating
from affscore_book.linearized.graph import node_name, traced_graph

__all__ = ["ChannelPReLU", "channel_prelus", "effective_size", "linearize", "survivors", "symmetry_dimension"]


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
Network = TypeVar("Network", bound=nn.Module)


def linearize(network: Network, inputs: Tensor) -> Network:
    """A copy of a network in which every ReLU is a :class:`ChannelPReLU` with slopes 0, and computes the same function.

    Other activations stay as they are.

    Parameters
    ----------
    network
        Any network that :func:`affscore_book.linearized.graph.traced_graph` can trace, in which every ReLU is a module
        of its own.
    inputs
        A batch for it. The copy is run on it, with noise added, and compared with the network.

    Raises
    ------
    ValueError
        If the network cannot be traced or has no ReLU; if a ReLU is no module or is called several times; if a ReLU's
        input is neither (n, channels) nor (n, channels, H, W), so that axis 1 may not be channels; or if the copy
        computes something else, because the network goes on with what a ReLU has written into its input. The sentence
        names the module.

    Examples
    --------
    >>> from affscore_book.kit.networks import resnet20
    >>> network = linearize(resnet20(width=4, channels=1), torch.zeros(1, 1, 32, 32))
    >>> list(channel_prelus(network))[:3]
    ['relu', 'block1.relu1', 'block1.relu2']
    """
    modules = dict(network.named_modules())
    result = copy.deepcopy(network)
    device = next((p.device for p in network.parameters()), None)
    seen: set[str] = set()
    for node in traced_graph(network, inputs).graph.nodes:
        is_module = node.op == "call_module"
        if not (type(modules[node.target]) is nn.ReLU if is_module else node.target in _RELUS):
            continue
        if not is_module or node.target in seen:
            raise ValueError(
                f"network: {node_name(node)} should be a module of its own and called once, because every channel "
                "gets a slope of its own."
            )
        seen.add(node.target)
        meta = node.meta["tensor_meta"]
        if len(meta.shape) not in (2, 4):
            raise ValueError(
                f"network: the input of {node.target} has shape {tuple(meta.shape)}; it should be (n, channels) or "
                "(n, channels, H, W), because every channel gets a slope of its own."
            )
        layer = ChannelPReLU(meta.shape[1]).to(device, meta.dtype).train(network.training)
        result.set_submodule(node.target, layer)
    if not seen:
        raise ValueError(f"network: {type(network).__name__} calls no ReLU; there is nothing to linearise.")
    try:
        torch.testing.assert_close(_probe(result, inputs), _probe(network, inputs), equal_nan=True)
    except AssertionError as error:
        raise ValueError(
            f"network: {type(network).__name__} computes something else with PReLUs of slope 0; it may go on with what "
            f"it has written in place. {error}"
        ) from error
    return result


def _probe(network: nn.Module, inputs: Tensor) -> Any:
    """Outputs in evaluation mode for the inputs plus noise, without touching the state of torch's generator."""
    with torch.random.fork_rng(), torch.no_grad(), evaluating(network):
        torch.manual_seed(0)
        return network(inputs + torch.randn_like(inputs))


def channel_prelus(network: nn.Module) -> OrderedDict[str, ChannelPReLU]:
    """The :class:`ChannelPReLU` of a network by name, in the order of its modules.

    Raises
    ------
    ValueError
        If the network has none.
    """
    modules = network.named_modules()
    found = OrderedDict((name, module) for name, module in modules if isinstance(module, ChannelPReLU))
    if not found:
        raise ValueError(f"network: {type(network).__name__} has no ChannelPReLU; linearize makes them.")
    return found


def survivors(network: nn.Module) -> OrderedDict[str, tuple[int, int]]:
    """By layer: how many channels are not linear (slope != 1), of how many.

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
