"""Remove the linear channels of a perceptron: what is left is its core, the units that are not linear.

A channel whose activation is the identity, between two linear layers, needs no unit: with V before and W after a layer,

    W a(V x) = W[:, core] a(V[core] x) + (W[:, linear] V[linear]) x,

so the linear channels become one direct map beside the core units. In a chain of such layers the direct maps go on
composing, and the core units of a layer end up with one map from the core units of each earlier layer and one from the
input, side by side in one linear layer. If all channels of a layer are linear, the maps before and after it become one.

Convolutions would not do: two of them become one, exactly, only if the second does not pad. Otherwise it pads with
zeros what the first would have continued, and the two differ at the border.

Folding is our addition to Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from affscore_book.linearized.slopes import ChannelPReLU, channel_prelus
from affscore_book.symmetries.norms import fold_norm

__all__ = ["Core", "fold"]


class Core(nn.Module):
    """A perceptron, (n, ...) to (n, outputs), in which each layer reads the input and the units of all layers before.

    ``layers`` are linear; ``activations`` of :class:`~affscore_book.linearized.slopes.ChannelPReLU` follow all of them
    but the last.
    """

    def __init__(self, layers: list[nn.Linear], activations: list[ChannelPReLU]):
        super().__init__()
        self.layers, self.activations = nn.ModuleList(layers), nn.ModuleList(activations)

    def forward(self, x: Tensor) -> Tensor:
        values = x.flatten(1)
        for layer, activation in zip(self.layers, self.activations, strict=False):
            values = torch.cat([values, activation(layer(values))], 1)
        return self.layers[-1](values)


@torch.no_grad()
def fold(network: nn.Sequential) -> Core:
    """The core of a perceptron: the same function up to rounding, without batch norm and without linear channels.

    Weights are multiplied in float64. Dropout and batch norm disappear, so that the core is not for training. Path
    lengths belong to the network before folding: folding turns linear channels into skips. Units go, but weights may
    become more: every layer is then joined to all earlier ones.

    Parameters
    ----------
    network
        From :func:`affscore_book.linearized.slopes.linearize`: linear layers, batch norm after them, activations,
        dropout after these. It is not changed.

    Raises
    ------
    TypeError, ValueError
        As :func:`affscore_book.symmetries.norms.fold_norm`; and ValueError if there is no :class:`ChannelPReLU`, or
        something that is not a perceptron's.

    Examples
    --------
    >>> from affscore_book.linearized.slopes import linearize
    >>> network = linearize(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.zeros(1, 2))
    >>> network[1].set_linear(torch.tensor([True, False, False]))
    >>> core, x = fold(network), torch.randn(5, 2)
    >>> torch.allclose(core(x), network(x), atol=1e-6), core.layers
    (True, ModuleList(
      (0): Linear(in_features=2, out_features=2, bias=True)
      (1): Linear(in_features=4, out_features=1, bias=True)
    ))
    """
    channel_prelus(network)  # or an error
    parts = [module for module in fold_norm(network).modules() if not list(module.children())]
    steps: list[Any] = [part for part in parts if not isinstance(part, nn.Flatten | nn.Dropout | nn.Identity)]
    for step in steps:
        if not isinstance(step, nn.Linear | ChannelPReLU):
            raise ValueError(f"network holds a {type(step).__name__}; fold takes linear layers and ChannelPReLUs only.")
    like = next(network.parameters())
    layers, activations = [], []

    def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
        made = nn.utils.skip_init(nn.Linear, weight.shape[1], len(weight))
        made.weight, made.bias = nn.Parameter(weight.to(like.dtype)), nn.Parameter(bias.to(like.dtype))
        return made

    # What the next step reads is weight @ (the input and all core units so far) + bias.
    weight = torch.eye(steps[0].in_features, dtype=torch.float64, device=like.device)
    bias = torch.zeros_like(weight[0])
    for step in steps:
        if isinstance(step, nn.Linear):
            bias = step.weight.double() @ bias + (0 if step.bias is None else step.bias.double())
            weight = step.weight.double() @ weight
        elif bool((core := step.weight != 1).any()):
            layers.append(linear(weight[core], bias[core]))
            activations.append(ChannelPReLU(int(core.sum())).to(like))
            activations[-1].weight.copy_(step.weight[core])
            weight = torch.cat([weight * ~core[:, None], torch.eye(len(core)).to(weight)[:, core]], 1)
            bias = bias * ~core
    return Core([*layers, linear(weight, bias)], activations).eval()
