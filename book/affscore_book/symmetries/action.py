"""The action of intertwiners on the weights of a network, which then computes the same function (Proposition 3.4).

*   :func:`act` lets elements of the activations' groups act, through batch norm and residual connections;
    :func:`sample_action` draws elements that fit.
*   :func:`mix_channels` is the first half of it, for any matrix.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, section 3 and appendix E.9.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from affscore.arguments import check_choice
from affscore_book.kit.checking import square_matrix
from affscore_book.kit.draws import as_generator
from affscore_book.symmetries.groups import GeneralLinear, Monomial, single_entries
from affscore_book.symmetries.layers import HiddenLayer, hidden_layers

__all__ = ["act", "mix_channels", "sample_action"]


def sample_action(
    network: nn.Module, generator: torch.Generator | int | None = None, *, spread: float = 1.0
) -> dict[str, Tensor]:
    """Random matrices for :func:`act`, one for each hidden activation, that fit batch norm, pooling and residual ties.

    Parameters
    ----------
    network
        As in :func:`hidden_layers`.
    generator, spread
        As in :meth:`Intertwiner.sample`.

    Returns
    -------
    Name of the activation to a float64 matrix (channels, channels).

    Raises
    ------
    TypeError, ValueError
        As :func:`hidden_layers`.
    """
    generator = as_generator(generator)
    layers = {layer.name: layer for layer in hidden_layers(network)}
    matrices: dict[str, Tensor] = {}
    for name, layer in layers.items():
        group = layer.group
        in_a_stream = layer.tied_to or any(other.tied_to == name for other in layers.values())
        if isinstance(group, GeneralLinear) and (layer.norm is not None or layer.pooled or in_a_stream):
            group = Monomial("positive")
        if isinstance(group, Monomial) and layer.pooled and group.flip:
            group = Monomial(group.scalings, 0, group.degree)
        if not layer.tied_to:
            matrices[name] = group.sample(layer.channels, generator, spread=spread)
            continue
        before = layers[layer.tied_to]
        a = torch.zeros(layer.channels, layer.channels, dtype=torch.float64)
        start = layer.new_channels // 2
        old = torch.zeros(layer.channels, dtype=torch.bool)
        old[start : start + before.channels] = True
        a[old[:, None] & old] = before.group.phi(matrices[before.name]).flatten()
        if layer.new_channels:
            a[~old[:, None] & ~old] = group.sample(layer.new_channels, generator, spread=spread).flatten()
        matrices[name] = a
    return matrices


def act(network: nn.Module, matrices: Mapping[str, Tensor], *, check_ties: bool = True) -> nn.Sequential:
    """A network that computes the same function with other weights (Proposition 3.4 and appendix E.9).

    The layer before an activation is multiplied by A from the left, the layers after it by phi(A)^-1 from the right.
    Batch norm in between carries a scaling in its gain and bias, and the layer before it only the permutation, so
    that the function is the same in training mode too.

    Parameters
    ----------
    network
        As in :func:`hidden_layers`. It is not changed.
    matrices
        Name of an activation to a matrix (channels, channels) of its group. Activations left out keep their channels.
    check_ties
        False allows matrices that differ across a residual connection; the function then changes.

    Returns
    -------
    A copy with new weights, in the dtype and mode of ``network``. Computed in float64.

    Raises
    ------
    TypeError
        As :func:`hidden_layers`, or if a matrix is not a floating-point tensor.
    ValueError
        If a name is not a hidden activation; a matrix has the wrong shape, is not in the group, mixes channels
        before batch norm or max-pooling, or turns signs before max-pooling; or it breaks a residual tie.

    Examples
    --------
    >>> from affscore_book.symmetries.table import intertwiner
    >>> network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    >>> other = act(network, {"1": intertwiner("relu").sample(4, 0)})
    >>> x = torch.randn(5, 3, dtype=torch.float64)
    >>> torch.allclose(other(x), network(x)), torch.allclose(other[0].weight, network[0].weight)
    (True, False)
    """
    result: Any = copy.deepcopy(network)
    layers = {layer.name: layer for layer in hidden_layers(result)}
    phis: dict[str, Tensor] = {}
    chosen: dict[str, Tensor] = {}
    for name, a in matrices.items():
        if name not in layers:
            raise ValueError(f"matrices has {name!r}, which is not a hidden activation: {', '.join(layers)}.")
        layer = layers[name]
        a = square_matrix(f"matrices[{name!r}]", a).double().cpu()
        if len(a) != layer.channels:
            raise ValueError(f"matrices[{name!r}] has shape {tuple(a.shape)}; {name} has {layer.channels} channels.")
        reason = layer.group.why_not(a)
        if reason:
            raise ValueError(f"matrices[{name!r}] is not in the group of {layer.module}: {reason}")
        alone = not single_entries(a)[2]
        phi = layer.group.phi(a)
        if layer.norm is not None and not alone:
            raise ValueError(f"matrices[{name!r}] mixes channels, and the batch norm before {name} does not.")
        if layer.pooled and not (alone and bool((phi >= 0).all())):
            raise ValueError(
                f"matrices[{name!r}] mixes channels or turns signs, and the max-pooling after {name} forbids both."
            )
        chosen[name], phis[name] = a, phi
    if check_ties:
        _check_ties(layers, chosen, phis)
    with torch.no_grad():
        for name, a in chosen.items():
            _multiply_left(layers[name], a)
            inverse = torch.linalg.inv(phis[name])
            for consumer in layers[name].consumers:
                weight = consumer.weight
                # After flattening, each channel has several columns.
                split = weight.double().reshape(weight.shape[0], len(a), -1)
                weight.copy_(torch.einsum("oip,ij->ojp", split, inverse.to(split.device)).reshape(weight.shape))
    return result


def _check_ties(layers: Mapping[str, HiddenLayer], chosen: Mapping[str, Tensor], phis: Mapping[str, Tensor]) -> None:
    for layer in layers.values():
        if not layer.tied_to or (layer.name not in chosen and layer.tied_to not in chosen):
            continue
        before = layers[layer.tied_to]
        start = layer.new_channels // 2
        stop = start + before.channels
        mine = chosen.get(layer.name, torch.eye(layer.channels, dtype=torch.float64))
        wanted = torch.zeros(layer.channels, before.channels, dtype=torch.float64)
        wanted[start:stop] = phis.get(before.name, torch.eye(before.channels, dtype=torch.float64))
        if not torch.allclose(mine[:, start:stop], wanted, rtol=1e-9, atol=1e-12):
            raise ValueError(
                f"matrices[{layer.name!r}] should carry the matrix of {layer.tied_to!r} on channels {start} to "
                f"{stop - 1}, because the output of {layer.tied_to} is added before {layer.name}."
            )


def _multiply_left(layer: HiddenLayer, a: Tensor) -> None:
    producer, norm = layer.producer, layer.norm
    if norm is None:
        for value in (producer.weight, producer.bias):
            if value is not None:
                columns = value.double().reshape(len(value), -1)
                value.copy_((a.to(value.device) @ columns).reshape(value.shape))
        return
    column, factor, _ = single_entries(a)
    for value in (producer.weight, producer.bias, norm.running_mean, norm.running_var):
        if value is not None:
            value.copy_(value[column.to(value.device)])
    for value in (norm.weight, norm.bias):
        value.copy_(factor.to(value.device) * value.double()[column.to(value.device)])


def mix_channels(network: nn.Module, layer: str, matrix: Tensor) -> nn.Sequential:
    """Multiply weights and bias before an activation by a matrix, and change nothing after it: A W and A b.

    The first half of :func:`act`, for any matrix (the sanity test of section 3.3).

    Parameters
    ----------
    network
        As in :func:`hidden_layers`, without batch norm before this activation
        (:func:`affscore_study.symmetries.norms.fold_norm` absorbs it). It is not changed.
    layer
        Name of a hidden activation.
    matrix
        (channels, channels), floating point.

    Raises
    ------
    ValueError
        If the layer is not a hidden activation or follows a batch norm, or the matrix has another shape.
    """
    result: Any = copy.deepcopy(network)
    layers = {hidden.name: hidden for hidden in hidden_layers(result)}
    check_choice("layer", layer, layers)
    matrix = square_matrix("matrix", matrix).double().cpu()
    if len(matrix) != layers[layer].channels:
        raise ValueError(f"matrix has shape {tuple(matrix.shape)}; {layer} has {layers[layer].channels} channels.")
    if layers[layer].norm is not None:
        raise ValueError(f"{layer} follows a batch norm, which cannot mix channels; fold_norm absorbs it.")
    with torch.no_grad():
        _multiply_left(layers[layer], matrix)
    return result
