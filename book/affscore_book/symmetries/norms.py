"""A network without batch norm that computes the same as one with it."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from affscore_book.kit.networks import BasicBlock
from affscore_book.symmetries.layers import NORMS, hidden_layers

__all__ = ["fold_norm"]


def fold_norm(network: nn.Module) -> nn.Sequential:
    """The same network in evaluation mode, with every batch norm absorbed by the layer before it.

    Without batch norm between a layer and its activation, any matrix can act there. Raises as :func:`hidden_layers`.
    """
    hidden_layers(network)

    def folded(part: Any) -> Any:
        layers: dict[str, nn.Module] = {}
        last = ""
        for name, module in part.named_children():
            if isinstance(module, NORMS):
                _absorb(layers[last], module)
                continue
            if isinstance(module, nn.Sequential):
                module = folded(module)
            elif isinstance(module, BasicBlock):
                module.a, module.b = folded(module.a), folded(module.b)
            layers[name], last = module, name
        return nn.Sequential(OrderedDict(layers))

    return folded(copy.deepcopy(network)).eval()


@torch.no_grad()
def _absorb(layer: Any, norm: Any) -> None:
    gain = 1 / (norm.running_var.double() + norm.eps).sqrt()
    shift = -norm.running_mean.double() * gain
    if norm.affine:
        gain, shift = gain * norm.weight, shift * norm.weight + norm.bias
    bias = shift if layer.bias is None else shift + gain * layer.bias
    layer.weight.copy_(layer.weight.double() * gain.reshape(-1, *[1] * (layer.weight.ndim - 1)))
    layer.bias = nn.Parameter(bias.to(layer.weight.dtype))
