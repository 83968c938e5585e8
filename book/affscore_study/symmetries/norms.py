"""Batch norm and symmetries: the factors to which batch norm is invariant, and an equal network without batch norm.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, appendix E.9.1.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from affscore_book.kit.networks import BasicBlock
from affscore_book.symmetries.layers import NORMS, hidden_layers

__all__ = ["fold_norm", "invariant_draws", "scale_before_norm"]


def scale_before_norm(network: nn.Module, scales: Mapping[str, Tensor]) -> nn.Sequential:
    """A copy of a network whose channels before batch norm are multiplied by positive factors (appendix E.9.1).

    Batch norm removes these factors. The layer before the norm and the running statistics are scaled, while gain and
    bias stay. The function is the same up to the effect of the small number eps that batch norm adds to the variance,
    and exactly the same for eps = 0. The appendix prints ``X diag(X^T X)^-1`` for the centred X, which is not
    invariant. It is invariant with the power -1/2 and 1/b for the mean over b samples.

    Parameters
    ----------
    network
        As in :func:`hidden_layers`. It is not changed.
    scales
        Positive factors of shape (channels,) by the names of activations.

    Raises
    ------
    ValueError
        If a name is not a hidden activation with batch norm, or the factors are not positive or have another shape.
    """
    result: Any = copy.deepcopy(network)
    layers = {layer.name: layer for layer in hidden_layers(result) if layer.norm is not None}
    with torch.no_grad():
        for name, factors in scales.items():
            if name not in layers:
                raise ValueError(f"scales has {name!r}, which is not a hidden activation with batch norm.")
            producer, norm = layers[name].producer, layers[name].norm
            factors = torch.as_tensor(factors, dtype=torch.float64)
            if factors.shape != (layers[name].channels,) or not bool(((factors > 0) & factors.isfinite()).all()):
                raise ValueError(f"scales[{name!r}] should hold {layers[name].channels} positive, finite factors.")
            factors = factors.to(producer.weight.device)
            for value in (producer.weight, producer.bias, norm.running_mean):
                if value is not None:
                    value.copy_((factors * value.double().movedim(0, -1)).movedim(-1, 0))
            norm.running_var.copy_(factors**2 * norm.running_var.double())
    return result


def invariant_draws(norm: Callable[[Tensor], Tensor]) -> int:
    """The number of 10 draws in which a norm of rows (b, channels) is invariant to positive factors (E.9.1).

    Each draw has 64 normal rows of 5 channels, float64, and a factor between 0.1 and 1.1 for each channel. It counts
    if the norm's output changes by at most 1e-10 of its largest value.

    >>> invariant_draws(lambda rows: rows / rows.std(0)), invariant_draws(lambda rows: rows - rows.mean(0))
    (10, 0)
    """
    count = 0
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(64, 5, generator=generator, dtype=torch.float64)
        factors = torch.rand(5, generator=generator, dtype=torch.float64) + 0.1
        before = norm(rows)
        count += bool((norm(factors * rows) - before).abs().max() <= 1e-10 * before.abs().max())
    return count


def fold_norm(network: nn.Module) -> nn.Sequential:
    """A copy of the network in evaluation mode, with every batch norm merged into the layer before it.

    Without batch norm between a layer and its activation, any matrix can act there. Raises the errors of
    :func:`hidden_layers`.
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
