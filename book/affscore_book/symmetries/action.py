"""The symmetries of a network: intertwiners that act on its weights and leave its function alone.

*   :func:`act` lets elements of the activations' groups act on the weights of a network, which then computes the same
    function (Proposition 3.4), through batch norm and residual connections; :func:`sample_action` draws elements that
    fit, and :func:`splice` joins the first layers of one network to the last ones of another (Theorem 4.2).
*   :func:`homogeneity_gap` is GELU's distance from ReLU's symmetry in closed form (Figure 17).
*   :func:`load_rotations` reads the stored sanity test on trained networks (Figure 4).

The groups themselves are in :mod:`affscore_book.symmetries.groups`; :func:`intertwiner` can be imported from here too.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, sections 3 and 4 and appendix E.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from affscore_book.kit.networks import BasicBlock
from affscore_book.symmetries.groups import (
    GeneralLinear,
    Intertwiner,
    Monomial,
    PReLUGroup,
    _generator,
    _leading,
    _orthogonal,
    _square,
    find_intertwiner,
    intertwiner,
)

__all__ = [
    "ChannelMap",
    "GeneralLinear",
    "HiddenLayer",
    "Intertwiner",
    "Monomial",
    "PReLUGroup",
    "Rotations",
    "act",
    "find_intertwiner",
    "fold_norm",
    "hidden_layers",
    "homogeneity_gap",
    "homogeneity_slope",
    "intertwiner",
    "interval",
    "invariant_draws",
    "load_rotations",
    "mix_channels",
    "random_rotation",
    "sample_action",
    "scale_before_norm",
    "splice",
]


# -------------------------------------------------------------------------------------- GELU's lack of symmetry


def homogeneity_slope() -> float:
    """The slope that :func:`homogeneity_gap` tends to for large lambda: sqrt(1/12 - (1 - 1/sqrt 3) / (2 pi)).

    The paper gives about 0.127 from a simulation (appendix E.2.1). For large lambda, Phi(lambda x) is 1 for x > 0
    and 0 for x < 0, and integrating 2 x^2 (1 - Phi(x))^2 over the positive half of the normal law by parts, twice,
    gives the formula.

    >>> round(homogeneity_slope(), 5)
    0.12675
    """
    return math.sqrt(1 / 12 - (1 - 1 / math.sqrt(3)) / (2 * math.pi))


def homogeneity_gap(factors: Any) -> Tensor:
    """Root mean square of GELU(lambda X) - lambda GELU(X) for a standard normal X (equation E.22), in closed form.

    With ``M(a, b) = E[X^2 Phi(aX) Phi(bX)]``, the square is ``lambda^2 (M(lambda, lambda) - 2 M(lambda, 1) +
    M(1, 1))``. Two uses of Stein's identity E[X f(X)] = E[f'(X)] and Sheppard's formula for E[Phi(aX) Phi(bX)] give
    ``M(a, b) = 1/4 + arcsin(r) / (2 pi) + a b (1/(1+a^2) + 1/(1+b^2)) / (2 pi sqrt(1 + a^2 + b^2))`` with
    ``r = a b / sqrt((1 + a^2) (1 + b^2))``. The paper did not find a closed form and sampled.

    Parameters
    ----------
    factors
        lambda > 0, any shape.

    Returns
    -------
    Float64 tensor of that shape; the error is about 1e-8 near lambda = 1, where the terms cancel.

    Raises
    ------
    ValueError
        If a factor is not positive and finite.

    >>> homogeneity_gap([1.0, 2.0])
    tensor([0.0000, 0.1767], dtype=torch.float64)
    """
    a = torch.as_tensor(factors, dtype=torch.float64)
    if not bool(((a > 0) & a.isfinite()).all()):
        raise ValueError("factors holds a number that is not positive and finite.")

    def moment(a: Tensor, b: Tensor) -> Tensor:
        p, q = 1 + a**2, 1 + b**2
        angle = torch.atan2(a * b, (1 + a**2 + b**2).sqrt())  # arcsin(r), without its cancellation near r = 1
        return 0.25 + (angle + a * b * (1 / p + 1 / q) / (1 + a**2 + b**2).sqrt()) / (2 * math.pi)

    one = torch.ones_like(a)
    return a * (moment(a, a) - 2 * moment(a, one) + moment(one, one)).clamp(min=0).sqrt()


# ---------------------------------------------------------------------------------- the action on the weights


@dataclass
class HiddenLayer:
    """An activation of a network, with the layers around it.

    Attributes
    ----------
    name, module, channels
        Name and module of the activation, and the number of its channels.
    producer, norm
        The linear or convolutional layer before it, and the batch norm between the two or None.
    consumers
        The linear or convolutional layers that read it.
    pooled
        True if a max-pooling layer lies between: then phi(A) must not have negative entries.
    tied_to, new_channels
        In a residual network, the activation whose output is added before this one, or "". ``new_channels`` are
        added around it by padding with zeros.
    """

    name: str
    module: nn.Module
    channels: int
    producer: Any
    norm: Any
    consumers: list[Any] = field(default_factory=list)
    pooled: bool = False
    tied_to: str = ""
    new_channels: int = 0

    @property
    def group(self) -> Intertwiner:
        """The intertwiner group of the activation."""
        return intertwiner(self.module)

    def __repr__(self) -> str:
        tie = f", tied to {self.tied_to}" if self.tied_to else ""
        return f"HiddenLayer({self.name}: {self.channels} channels{tie})"


_AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_MAX_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d)
_THROUGH = (
    nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.Flatten, nn.Dropout, nn.Dropout2d,
)  # fmt: skip


def hidden_layers(network: nn.Module) -> list[HiddenLayer]:
    """The hidden activations of a network in execution order, with what lies around them.

    Parameters
    ----------
    network
        An ``nn.Sequential``, nested or not, of linear and convolutional layers, batch norm, activations, pooling,
        flattening, dropout and :class:`affscore_book.kit.networks.BasicBlock`.

    Raises
    ------
    TypeError
        If it is something else, or holds another kind of module.
    ValueError
        If an activation does not follow a linear or convolutional layer, or a convolution has groups.

    >>> from affscore_book.kit.networks import resnet20
    >>> hidden_layers(resnet20(width=4))[1:3]
    [HiddenLayer(block1.relu1: 4 channels), HiddenLayer(block1.relu2: 4 channels, tied to relu)]
    """
    if not isinstance(network, nn.Sequential):
        raise TypeError(f"network is a {type(network).__name__}; it should be an nn.Sequential.")
    layers: list[HiddenLayer] = []
    producer: Any = None  # waits for its activation
    norm: Any = None
    current: HiddenLayer | None = None  # whose output flows

    def hidden(name: str, module: nn.Module, before: Any, norm: Any) -> HiddenLayer:
        layer = HiddenLayer(name, module, before.weight.shape[0], before, norm)
        layers.append(layer)
        return layer

    for name, module in _children(network):
        if isinstance(module, _AFFINE):
            if getattr(module, "groups", 1) != 1:
                raise ValueError(f"network.{name} is a convolution with groups; its channels cannot be mixed.")
            if current is not None:
                current.consumers.append(module)
            producer, norm, current = module, None, None
        elif isinstance(module, _NORMS):
            if producer is None or norm is not None:
                raise ValueError(f"network.{name} should follow a linear or convolutional layer.")
            norm = module
        elif isinstance(module, BasicBlock):
            if current is None:
                raise ValueError(f"network.{name} should follow an activation.")
            current.consumers.append(module.a[0])
            inner = hidden(f"{name}.relu1", module.relu1, module.a[0], _second(module.a))
            inner.consumers.append(module.b[0])
            outer = hidden(f"{name}.relu2", module.relu2, module.b[0], _second(module.b))
            if module.residual:
                outer.tied_to, outer.new_channels = current.name, module.new_channels
            current = outer
        elif isinstance(module, _MAX_POOLS + _THROUGH) or (isinstance(module, nn.Identity) and producer is None):
            if producer is not None:
                raise ValueError(f"network.{name} lies between a layer and its activation, which cannot be handled.")
            if current is not None and isinstance(module, _MAX_POOLS):
                current.pooled = True
        else:
            try:
                intertwiner(module)
            except (TypeError, ValueError, RuntimeError, IndexError) as error:
                raise TypeError(f"network.{name} is a {type(module).__name__}, which act cannot handle.") from error
            if producer is None:
                raise ValueError(f"network.{name} should follow a linear or convolutional layer, or its batch norm.")
            current, producer = hidden(name, module, producer, norm), None
    return [layer for layer in layers if layer.consumers]


def _second(branch: Any) -> Any:
    """The batch norm of a branch of a block; None after :func:`fold_norm`."""
    return branch[1] if len(branch) > 1 else None


def _children(network: nn.Sequential, prefix: str = "") -> list[tuple[str, nn.Module]]:
    found: list[tuple[str, nn.Module]] = []
    for name, module in network.named_children():
        inside = (
            _children(module, f"{prefix}{name}.") if isinstance(module, nn.Sequential) else [(prefix + name, module)]
        )
        found += inside
    return found


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
    generator = _generator(generator)
    layers = {layer.name: layer for layer in hidden_layers(network)}
    matrices: dict[str, Tensor] = {}
    for name, layer in layers.items():
        group = layer.group
        in_a_stream = layer.tied_to or any(other.tied_to == name for other in layers.values())
        if isinstance(group, GeneralLinear) and (layer.norm is not None or layer.pooled or in_a_stream):
            group = Monomial("positive")
        if isinstance(group, Monomial) and layer.pooled and group.flip:
            group = Monomial(group.scalings, 0, group.degree, group.base)
        if not layer.tied_to:
            matrices[name] = group.sample(layer.channels, generator, spread=spread)
            continue
        before = layers[layer.tied_to]
        inner = before.group.phi(matrices[before.name])
        matrices[name] = inner
        if layer.new_channels:
            new = group.sample(layer.new_channels, generator, spread=spread)
            start = layer.new_channels // 2
            old = torch.arange(start, start + before.channels)
            others = torch.tensor([i for i in range(layer.channels) if i not in set(old.tolist())])
            matrices[name] = torch.zeros(layer.channels, layer.channels, dtype=torch.float64)
            matrices[name][old[:, None], old] = inner
            matrices[name][others[:, None], others] = new
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
        a = _square(a, None)[0].detach().double().cpu()
        if len(a) != layer.channels:
            raise ValueError(f"matrices[{name!r}] has shape {tuple(a.shape)}; {name} has {layer.channels} channels.")
        group = layer.group
        reason = group.why_not(a)
        if reason:
            raise ValueError(f"matrices[{name!r}] is not in the group of {layer.module}: {reason}")
        alone = not _leading(a, 1e-9)[2]
        phi = group.phi(a)
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


def random_rotation(n: int, generator: torch.Generator | int | None = None) -> Tensor:
    """An orthogonal float64 matrix (n, n), uniform over the orthogonal group: Q of QR of a normal matrix.

    >>> q = random_rotation(4, 0)
    >>> torch.allclose(q @ q.T, torch.eye(4, dtype=torch.float64))
    True
    """
    return _orthogonal(n, _generator(generator))


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
                value.copy_(
                    (a.to(value.device) @ value.double().flatten(1 if value.ndim > 1 else 0)).reshape(value.shape)
                )
        return
    if norm.weight is None or norm.running_mean is None:
        raise ValueError(f"the batch norm before {layer.name} has no gain and bias, or no running statistics.")
    column, factor, _ = _leading(a, 1e-9)
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
        As in :func:`hidden_layers`, without batch norm before this activation (see :func:`fold_norm`). Not changed.
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
    if layer not in layers:
        raise ValueError(f"layer is {layer!r}; it should be one of {', '.join(layers)}.")
    matrix = _square(matrix, None)[0].detach().double().cpu()
    if len(matrix) != layers[layer].channels:
        raise ValueError(f"matrix has shape {tuple(matrix.shape)}; {layer} has {layers[layer].channels} channels.")
    if layers[layer].norm is not None:
        raise ValueError(f"{layer} follows a batch norm, which cannot mix channels; fold_norm absorbs it.")
    with torch.no_grad():
        _multiply_left(layers[layer], matrix)
    return result


def scale_before_norm(network: nn.Module, scales: Mapping[str, Tensor]) -> nn.Sequential:
    """Multiply the channels before batch norm by positive factors, which batch norm takes out (appendix E.9.1).

    The layer before the norm and its running statistics are scaled, gain and bias stay. The function is the same up
    to the small number eps that batch norm adds to the variance, and exactly for eps = 0. The appendix prints
    ``X diag(X^T X)^-1`` for the centred X, which is not invariant; with the power -1/2 and 1/b for the mean over b
    samples it is.

    Parameters
    ----------
    network
        As in :func:`hidden_layers`. It is not changed.
    scales
        Name of an activation to positive factors (channels,).

    Raises
    ------
    ValueError
        If a name is not a hidden activation with batch norm, or the factors are not positive or of another shape.
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
            for value, power in (
                (producer.weight, 1),
                (producer.bias, 1),
                (norm.running_mean, 1),
                (norm.running_var, 2),
            ):
                if value is not None:
                    shape = (-1,) + (1,) * (value.ndim - 1)
                    value.copy_(value.double() * (factors**power).reshape(shape).to(value.device))
    return result


def invariant_draws(norm: Callable[[Tensor], Tensor], *, draws: int = 10, tolerance: float = 1e-10) -> int:
    """In how many draws a norm of rows (b, channels) does not see positive factors on its channels (appendix E.9.1).

    Each draw has 64 normal rows of 5 channels, float64, and a factor between 0.1 and 1.1 for each channel. It counts
    if the norm's output changes by at most ``tolerance`` of its largest value.

    >>> invariant_draws(lambda rows: rows / rows.std(0)), invariant_draws(lambda rows: rows - rows.mean(0))
    (10, 0)
    """
    count = 0
    for seed in range(draws):
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(64, 5, generator=generator, dtype=torch.float64)
        factors = torch.rand(5, generator=generator, dtype=torch.float64) + 0.1
        before = norm(rows)
        count += bool((norm(factors * rows) - before).abs().max() <= tolerance * before.abs().max())
    return count


def fold_norm(network: nn.Module) -> nn.Sequential:
    """The same network in evaluation mode, with every batch norm absorbed by the layer before it.

    Without batch norm between a layer and its activation, any matrix can act there.

    Raises
    ------
    TypeError, ValueError
        As :func:`hidden_layers`, or if a batch norm has no running statistics.
    """
    hidden_layers(network)

    def folded(part: Any) -> Any:
        layers: dict[str, nn.Module] = {}
        last = ""
        for name, module in part.named_children():
            if isinstance(module, _NORMS):
                if module.running_mean is None or module.running_var is None:
                    raise ValueError(f"the batch norm {name} has no running statistics to fold.")
                layers[last] = _absorb(layers[last], module)
                continue
            if isinstance(module, nn.Sequential):
                module = folded(module)
            elif isinstance(module, BasicBlock):
                module.a, module.b = folded(module.a), folded(module.b)
            layers[name], last = module, name
        return nn.Sequential(OrderedDict(layers))

    return folded(copy.deepcopy(network)).eval()


@torch.no_grad()
def _absorb(layer: Any, norm: Any) -> nn.Module:
    gain = 1 / (norm.running_var.double() + norm.eps).sqrt()
    shift = -norm.running_mean.double() * gain
    if norm.affine:
        gain, shift = gain * norm.weight, shift * norm.weight + norm.bias
    bias = shift if layer.bias is None else shift + gain * layer.bias
    weight = layer.weight.double() * gain.reshape(-1, *[1] * (layer.weight.ndim - 1))
    layer.weight.copy_(weight)
    layer.bias = nn.Parameter(bias.to(layer.weight.dtype))
    return layer


# -------------------------------------------------------------------------------- the sanity test, as stored


@dataclass(frozen=True)
class Rotations:
    """The stored sanity test of section 3.3 on trained networks.

    Attributes
    ----------
    settings, made_with
        Options of the script, versions and device.
    networks
        Test accuracy of each network.
    runs
        One dict a run: ``network``, ``layer``, ``kind`` ("identity", "group" or "rotation"), ``draw``, and test
        accuracies ``before`` (right after A), ``least_squares`` and ``after`` (the later layers trained on).
    """

    settings: dict[str, Any]
    made_with: dict[str, str]
    networks: dict[str, dict[str, float]]
    runs: list[dict[str, Any]]

    @property
    def layers(self) -> list[str]:
        """The layers, from the input on."""
        return list(dict.fromkeys(run["layer"] for run in self.runs))

    def penalties(self, layer: str, kind: str, stage: str, networks: Collection[str] | None = None) -> np.ndarray:
        """Accuracy points lost, float64 (networks, draws); ``networks`` takes some of them only.

        A draw is a random matrix of the kind; the draws are those that every network has. ``stage`` is ``"before"``,
        ``"least_squares"`` or ``"after"``. After training the loss is counted from the accuracy of the same training
        with A = I, else from that of the network.

        Raises
        ------
        ValueError
            If there is no such run, or no such stage.
        """
        if stage not in ("before", "least_squares", "after"):
            raise ValueError(f"stage is {stage!r}; it should be 'before', 'least_squares' or 'after'.")
        trained = {run["network"]: run["after"] for run in self._some(layer, "identity")}
        plain = {name: about["accuracy"] for name, about in self.networks.items()}
        start = trained if stage == "after" else plain
        names = [name for name in self.networks if networks is None or name in networks]
        found = {(run["network"], run["draw"]): run[stage] for run in self._some(layer, kind)}
        draws = sorted(draw for draw in {draw for _, draw in found} if all((name, draw) in found for name in names))
        return np.array([[100 * (start[name] - found[name, draw]) for draw in draws] for name in names])

    def _some(self, layer: str, kind: str) -> list[dict[str, Any]]:
        found = [run for run in self.runs if run["layer"] == layer and run["kind"] == kind]
        if not found:
            raise ValueError(f"there is no run with layer {layer!r} and kind {kind!r}.")
        return found

    def __repr__(self) -> str:
        return f"Rotations({len(self.networks)} networks, {len(self.layers)} layers, {len(self.runs)} runs)"


def load_rotations(path: str | os.PathLike[str]) -> Rotations:
    """What ``book/data/symmetries/make.py`` stored.

    Raises
    ------
    ValueError
        If the file is not there, or is not such a study.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        runs = []
        for key, numbers in data["runs"].items():
            network, layer, kind, draw = key.split()
            if not all(0 <= numbers[stage] <= 1 for stage in ("before", "least_squares", "after")):
                raise ValueError(f"an accuracy of {key} is not between 0 and 1")
            runs.append({"network": network, "layer": layer, "kind": kind, "draw": int(draw)} | numbers)
        return Rotations(data["settings"], data["made_with"], data["networks"], runs)
    except OSError as error:
        raise ValueError(f"path is {str(path)!r}, which cannot be read ({error.strerror}).") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is not a stored rotation test: {error}.") from error


def interval(values: Any, level: float = 0.95) -> tuple[float, float, float]:
    """Mean and confidence interval (mean, low, high) of a normal mean, by Student's t; values (n,), n >= 2.

    >>> tuple(round(v, 2) for v in interval([1.0, 2.0, 3.0]))
    (2.0, -0.48, 4.48)
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"values has shape {values.shape}; it should hold at least 2 finite numbers.")
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    mean = float(values.mean())
    return mean, mean - float(half), mean + float(half)


class ChannelMap(nn.Module):
    """A matrix (out, in) applied to the channels of (n, in, ...): a 1 x 1 convolution without bias."""

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix = nn.Parameter(matrix.clone(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, in, ...) to (n, out, ...)."""
        return torch.einsum("oi,ni...->no...", self.matrix, x)


def splice(network: nn.Module, other: nn.Module, layer: str, matrix: Tensor) -> nn.Sequential:
    """The layers of ``network`` up to an activation, then a matrix on the channels, then the layers of ``other``.

    This is the stitched network of section 4. Inside a residual block the shortcut of that block comes from
    ``network`` (equation E.54).

    Parameters
    ----------
    network, other
        Two networks of one architecture, as in :func:`hidden_layers`, without nested ``nn.Sequential`` but for the
        blocks.
    layer
        Name of a hidden activation.
    matrix
        (channels, channels).

    Raises
    ------
    ValueError
        If the layer is not a hidden activation, the matrix has another shape, or the architectures differ.
    """
    names = [name for name, _ in network.named_children()]
    if names != [name for name, _ in other.named_children()]:
        raise ValueError("network and other should have the same layers.")
    sizes = {hidden.name: hidden.channels for hidden in hidden_layers(network)}
    if layer not in sizes:
        raise ValueError(f"layer is {layer!r}; it should be one of {', '.join(sizes)}.")
    if tuple(matrix.shape) != (sizes[layer],) * 2:
        raise ValueError(f"matrix has shape {tuple(matrix.shape)}; {layer} has {sizes[layer]} channels.")
    result: Any = copy.deepcopy(network)
    tail = copy.deepcopy(other)
    like = next(network.parameters())
    top, _, inside = layer.partition(".")
    at = names.index(top)
    for name in names[at + 1 :]:
        setattr(result, name, getattr(tail, name))
    matched = ChannelMap(matrix.to(like.device, like.dtype))
    holder = getattr(result, top) if inside else result
    if inside == "relu1":
        holder.b, holder.relu2 = getattr(tail, top).b, getattr(tail, top).relu2
    leaf = inside or top
    setattr(holder, leaf, nn.Sequential(getattr(holder, leaf), matched))
    return result.eval()
