"""Remove the linear channels of a network: what is left is its core, the units that are not linear.

A channel whose activation is the identity, between two linear maps, needs no unit: with V before and W after a layer,

    W a(V x) = W[:, core] a(V[core] x) + (W[:, linear] V[linear]) x,

so the linear channels become one direct map beside the core units. In a chain of such layers the direct maps go on
composing, and the core units of a layer end up with one map from the core units of each earlier layer and one from
the input (:class:`AffineSum`). If all channels of a layer are linear, the maps before and after it become one.

Two convolutions become one, exactly, only if the second does not pad, or the first has a 1 x 1 kernel and does not
pad. Otherwise the second pads with zeros what the first would have continued, and the two differ at the border.

Folding is our addition to Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from affscore_book.linearized.paths import trace
from affscore_book.linearized.slopes import ChannelPReLU, channel_prelus

__all__ = ["AffineSum", "FoldedLayer", "fold"]

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_NOTHING = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout)
_AVERAGES = (nn.AvgPool2d, nn.AdaptiveAvgPool2d)
_SOME_ROWS = 256  # of a matrix, computed at a time


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


class AffineSum(nn.Module):
    """The sum of one linear map for each source, and a bias (1, channels) or (1, channels, 1 or H, 1 or W)."""

    def __init__(self, maps: Sequence[nn.Module], bias: Tensor):
        super().__init__()
        self.maps, self.bias = nn.ModuleList(maps), nn.Parameter(bias)

    def forward(self, *sources: Tensor) -> Tensor:
        """The sources, each (n, channels) or (n, channels, H, W), to the sum."""
        total = self.bias
        for linear, x in zip(self.maps, sources, strict=True):
            total = total + linear(x.flatten(1) if isinstance(linear, nn.Linear) else x)
        return total


# ------------------------------------------------------------------------------------- linear maps as numbers


@dataclass(frozen=True)
class _Map:
    """A linear map without bias: weight (out, in), of flattened inputs, or a convolution's (out, in, height, width)."""

    weight: Tensor
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    mode: str = "zeros"

    def __call__(self, x: Tensor) -> Tensor:
        if self.weight.ndim == 2:
            return functional.linear(x.flatten(1), self.weight)
        (h, w), mode = self.padding, "constant" if self.mode == "zeros" else self.mode
        return functional.conv2d(functional.pad(x, (w, w, h, h), mode), self.weight, None, self.stride)

    def at(self, rows: Tensor) -> _Map:
        return replace(self, weight=self.weight[rows])

    def module(self, bias: Tensor | None, dtype: torch.dtype) -> nn.Module:
        out, inputs, *kernel = self.weight.shape
        made: nn.Module
        if kernel:
            options = {"stride": self.stride, "padding": self.padding, "padding_mode": self.mode}
            made = nn.utils.skip_init(nn.Conv2d, inputs, out, tuple(kernel), bias=bias is not None, **options)
        else:
            made = nn.utils.skip_init(nn.Linear, inputs, out, bias=bias is not None)
        made.weight = nn.Parameter(self.weight.to(dtype))
        if bias is not None:
            made.bias = nn.Parameter(bias.to(dtype))
        return made


def _map_of(module: nn.Module) -> _Map | None:
    """Of a linear layer or a convolution without groups, in float64; None for anything else."""
    if isinstance(module, nn.Linear):
        return _Map(module.weight.detach().double())
    if not isinstance(module, nn.Conv2d) or module.groups != 1:
        return None
    weight = module.weight.detach().double()
    size = [d * (k - 1) + 1 for d, k in zip(module.dilation, module.kernel_size, strict=True)]
    spread = weight.new_zeros(*weight.shape[:2], *size)  # the dilated kernel, with its zeros
    spread[:, :, :: module.dilation[0], :: module.dilation[1]] = weight
    padding: Any = module.padding
    if isinstance(padding, str):
        if padding == "same" and any(k % 2 == 0 for k in size):
            return None  # pads one side more than the other
        padding = (size[0] // 2, size[1] // 2) if padding == "same" else (0, 0)
    return _Map(spread, (module.stride[0], module.stride[1]), (padding[0], padding[1]), module.padding_mode)


def _merges(outer: _Map, inner: _Map) -> bool:
    """Whether a convolution after a convolution is a convolution, at the border too."""
    if outer.padding == (0, 0):
        return True
    point = inner.weight.shape[2:] == (1, 1) and inner.padding == (0, 0)
    return point and (outer.mode == "zeros" or inner.stride == (1, 1))


def _compose(outer: _Map, inner: _Map) -> _Map:
    """outer(inner(x)) of two convolutions for which :func:`_merges`."""
    (a, b), (h, w), (p, q) = inner.stride, inner.weight.shape[2:], outer.weight.shape[2:]
    weight = outer.weight.new_zeros(len(outer.weight), inner.weight.shape[1], a * (p - 1) + h, b * (q - 1) + w)
    for i, j in itertools.product(range(p), range(q)):
        tap = torch.einsum("om,mihw->oihw", outer.weight[:, :, i, j], inner.weight)
        weight[:, :, a * i : a * i + h, b * j : b * j + w] += tap
    stride = (a * outer.stride[0], b * outer.stride[1])
    if outer.padding == (0, 0):
        return _Map(weight, stride, inner.padding, inner.mode)
    return _Map(weight, stride, (a * outer.padding[0], b * outer.padding[1]), outer.mode)


def _matrix(function: Callable[[Tensor], Tensor], shape: Sequence[int], bias: Tensor) -> _Map:
    """The linear part of an affine function, (n, *shape) to (n, out), on flattened inputs; bias (1, out)."""
    rows: list[Tensor] = []
    for some in torch.eye(bias.shape[1], dtype=bias.dtype, device=bias.device).split(_SOME_ROWS):
        x = bias.new_zeros(len(some), *shape).requires_grad_()
        with torch.enable_grad():
            rows += torch.autograd.grad(function(x), x, some)  # row i of the batch is the gradient of output i
    return _Map(torch.cat(rows).flatten(1))


@dataclass
class _Form:
    """A value of the network as an affine function of nodes of the new graph."""

    name: str
    maps: dict[fx.Node, _Map]
    bias: Tensor  # (1, channels), or (1, channels, height or 1, width or 1)
    untouched: list[fx.Node] = field(default_factory=list)  # the nodes that compute it, if nothing was folded

    def at(self, rows: Tensor) -> _Form:
        return _Form(self.name, {node: part.at(rows) for node, part in self.maps.items()}, self.bias[:, rows])


@dataclass
class _Split:
    """The output of an activation whose linear channels are being folded."""

    linear: Tensor  # the channels, bool
    form: _Form  # their values
    core: fx.Node | None  # the values of the others
    shape: tuple[int, ...]  # of one sample of all
    path: list[nn.Module]  # what came after the activation so far

    def embed(self, x: Tensor, linear: bool) -> Tensor:
        """(n, some channels, ...) to (n, all channels, ...), the others being 0."""
        whole = x.new_zeros(len(x), *self.shape)
        whole[:, self.linear if linear else ~self.linear] = x
        return whole

    def along(self, x: Tensor) -> Tensor:
        for module in self.path:
            x = module(x)
        return x


# ------------------------------------------------------------------------------------------------ the graph


class _Folder:
    def __init__(self, traced: fx.GraphModule):
        self.traced = traced
        self.modules = {name: module for name, module in traced.named_modules()}
        self.exact = dict(copy.deepcopy(traced).double().named_modules())
        self.calls = Counter(str(node.target) for node in traced.graph.nodes if node.op == "call_module")
        self.graph = fx.Graph()
        self.values: dict[fx.Node, fx.Node | _Form | _Split] = {}
        self.shapes: dict[fx.Node, tuple[int, ...]] = {}
        self.account: list[FoldedLayer] = []

    def run(self) -> fx.GraphModule:
        for node in self.traced.graph.nodes:
            self.values[node] = self.step(node)
        self.traced.graph = self.graph
        self.traced.delete_all_unused_submodules()
        self.graph.lint()
        self.traced.recompile()
        return self.traced

    def step(self, node: fx.Node) -> fx.Node | _Form | _Split:
        module = self.module(node)
        before = self.values.get(node.all_input_nodes[0]) if len(node.all_input_nodes) == 1 else None
        outer = self.linear_map(node)
        if outer is not None:
            bias = module.bias if module.bias is not None else torch.zeros(len(outer.weight))
            bias = bias.detach().to(outer.weight).reshape(1, -1, *[1] * (outer.weight.ndim - 2))
            if isinstance(before, _Split):
                return self.absorb(node, before, outer, bias)
            return _Form(str(node.target), {self.node(node.all_input_nodes[0]): outer}, bias, [node])
        if isinstance(before, _Split):
            before.path.append(self.passing(node))
            return before
        if isinstance(before, _Form) and len(node.all_input_nodes[0].users) == 1:
            if isinstance(module, ChannelPReLU):
                return self.activation(node, before)
            if isinstance(module, _NORMS + _NOTHING) and self.passing(node) is not None:
                return self.scaled(node, before)
        if isinstance(module, ChannelPReLU):
            source = node.all_input_nodes[0]
            others = [self.describe(user) for user in source.users if user is not node]
            reason = f"its input comes from {self.describe(source)}, which is no linear map by itself"
            if isinstance(before, _Form):
                reason = f"its input is also read by {', '.join(others)}"
            self.note(node, 0, reason)
        copied = self.graph.node_copy(node, self.node)
        if "tensor_meta" in node.meta and isinstance(getattr(node.meta["tensor_meta"], "shape", None), tuple):
            self.shapes[copied] = self.shape(node)
        return copied

    # ---- what a node is

    def module(self, node: fx.Node) -> Any:
        return self.exact[str(node.target)] if node.op == "call_module" else None

    def shape(self, node: fx.Node) -> tuple[int, ...]:
        return tuple(node.meta["tensor_meta"].shape[1:])

    def describe(self, node: fx.Node) -> str:
        if node.op == "call_module":
            return f"{node.target} ({type(self.modules[str(node.target)]).__name__})"
        return "the output of the network" if node.op == "output" else node.name

    def linear_map(self, node: fx.Node) -> _Map | None:
        found = None if node.op != "call_module" else _map_of(self.module(node))
        return found if found is None or len(self.shape(node)) == found.weight.ndim - 1 else None

    def passing(self, node: fx.Node) -> Any:
        """The module of a node that is affine by itself in evaluation mode, channel by channel; else None."""
        module = self.module(node)
        if isinstance(module, _NORMS) and module.running_mean is not None:
            return module
        if isinstance(module, _NOTHING + _AVERAGES) or (
            isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1)
        ):
            return module
        if node.target in (torch.flatten, "flatten") and tuple(node.args[1:]) in ((1,), (1, -1)) and not node.kwargs:
            return nn.Flatten()
        return None

    # ---- folding

    def activation(self, node: fx.Node, form: _Form) -> fx.Node | _Split:
        layer = self.module(node)
        linear = layer.weight.detach() == 1
        reason = self.obstacle(node, form.at(linear)) if bool(linear.any()) else ""
        if reason or not bool(linear.any()):
            self.note(node, 0, reason)
            copied = self.graph.node_copy(node, self.node)
            self.shapes[copied] = self.shape(node)
            return copied
        self.note(node, int(linear.sum()), "")
        core = None
        if not bool(linear.all()):
            original = self.modules[str(node.target)]
            small = ChannelPReLU(int((~linear).sum())).to(original.weight)
            small.linear = original.linear[~linear]
            small.weight.data = original.weight.detach()[~linear].clone()
            core = self.graph.call_module(self.add(str(node.target), small), (self.emit(form.at(~linear)),))
            self.shapes[core] = (len(small.weight), *self.shape(node)[1:])
        return _Split(linear, form.at(linear), core, self.shape(node), [])

    def obstacle(self, node: fx.Node, form: _Form) -> str:
        """Why the linear channels of an activation, given by ``form``, cannot be folded, or ""."""
        at, pooled = node, ""
        while True:
            users = list(at.users)
            if len(users) != 1:
                return f"{len(users)} nodes read it: {', '.join(map(self.describe, users))}"
            at = users[0]
            outer = self.linear_map(at)
            if outer is not None:
                break
            if self.passing(at) is None:
                return f"it is followed by {self.describe(at)}, which is not affine by itself"
            pooled = self.describe(at) if not isinstance(self.passing(at), _NORMS + _NOTHING) else pooled
        if outer.weight.ndim == 2:
            return ""
        if pooled:
            return f"{pooled} lies between it and the convolution {at.target}"
        for source, inner in form.maps.items():
            if not _merges(outer, inner):
                kernel = " x ".join(map(str, inner.weight.shape[2:]))
                return (
                    f"{at.target} pads what a {kernel} convolution{' with padding' * (inner.padding != (0, 0))} makes "
                    f"of {source.name}; one convolution would differ at the border"
                )
        return ""

    def absorb(self, node: fx.Node, split: _Split, outer: _Map, bias: Tensor) -> _Form:
        """The linear map of a node applied to a split activation."""
        if outer.weight.ndim == 2:
            return self.absorb_flat(node, split, outer, bias)
        channels = outer.weight.shape[1]
        shift = split.along(outer.weight.new_zeros(1, channels, 1, 1))
        gain = split.along(outer.weight.new_ones(1, channels, 1, 1)) - shift
        height, width = split.form.bias.shape[2:]
        constant = outer.weight.new_zeros(1, channels, height, width)
        constant[:, split.linear] = split.form.bias
        constant = gain * constant + shift
        if outer.padding == (0, 0) and (height, width) == (1, 1):
            bias = bias + torch.einsum("oihw,nikl->nokl", outer.weight, constant)
        elif bool((constant != 0).any()):
            bias = bias + outer(constant.expand(1, -1, *split.shape[1:]))
        outer = replace(outer, weight=outer.weight * gain)
        direct = replace(outer, weight=outer.weight[:, split.linear])
        maps = {source: _compose(direct, inner) for source, inner in split.form.maps.items()}
        if split.core is not None:
            maps[split.core] = replace(outer, weight=outer.weight[:, ~split.linear])
        return _Form(str(node.target), maps, bias)

    def absorb_flat(self, node: fx.Node, split: _Split, outer: _Map, bias: Tensor) -> _Form:
        """The same for a linear layer, whatever affine comes between."""

        def after(x: Tensor, linear: bool) -> Tensor:
            return outer(split.along(split.embed(x, linear)))

        bias = bias + after(split.form.bias.expand(1, -1, *split.shape[1:]), True)
        maps = {}
        for source, inner in split.form.maps.items():
            maps[source] = _matrix(lambda x, inner=inner: after(inner(x), True), self.shapes[source], bias)  # type: ignore[misc]
        if split.core is not None:
            maps[split.core] = _matrix(lambda x: after(x, False), self.shapes[split.core], bias)
        return _Form(str(node.target), maps, bias)

    def scaled(self, node: fx.Node, form: _Form) -> _Form:
        """Batch norm, or nothing, after a linear map."""
        module, point = self.module(node), form.bias.new_zeros(1, form.bias.shape[1], *[1] * (form.bias.ndim - 2))
        shift = module(point)
        gain = module(torch.ones_like(point)) - shift
        maps = {
            source: replace(part, weight=part.weight * gain.reshape(-1, *[1] * (part.weight.ndim - 1)))
            for source, part in form.maps.items()
        }
        untouched = [*form.untouched, node] if form.untouched else []
        return _Form(form.name, maps, gain * form.bias + shift, untouched)

    # ---- the new graph

    def node(self, old: fx.Node) -> fx.Node:
        """The node of the new graph for a node of the old one."""
        value = self.values[old]
        if isinstance(value, _Form):
            value = self.emit(value)
            self.shapes[value] = self.shape(old)
            self.values[old] = value
        assert isinstance(value, fx.Node)  # a split activation has one reader, which takes it apart
        return value

    def emit(self, form: _Form) -> fx.Node:
        if form.untouched:
            copies: dict[fx.Node, fx.Node] = {}
            for node in form.untouched:
                copies[node] = self.graph.node_copy(node, lambda old: copies.get(old) or self.node(old))
            return copies[form.untouched[-1]]
        dtype = next(self.traced.parameters()).dtype
        sources, maps = list(form.maps), list(form.maps.values())
        flat = maps[0].weight.ndim == 4 or len(self.shapes[sources[0]]) == 1
        if len(maps) == 1 and flat and form.bias.numel() == form.bias.shape[1]:
            made = maps[0].module(form.bias.flatten(), dtype)
        else:
            made = AffineSum([part.module(None, dtype) for part in maps], form.bias.to(dtype))
        return self.graph.call_module(self.add(form.name, made), tuple(sources))

    def add(self, name: str, module: nn.Module) -> str:
        """Keep a new module, under its old name unless others use that."""
        if self.calls[name] != 1:
            name = next(n for n in (f"{name}_{i}" for i in itertools.count(2)) if n not in self.modules)
            self.modules[name] = module
        self.traced.add_submodule(name, module.eval())
        return name

    def note(self, node: fx.Node, folded: int, reason: str) -> None:
        weight = self.module(node).weight
        linear = int((weight == 1).sum())
        self.account.append(FoldedLayer(str(node.target), len(weight), linear, folded, reason if linear else ""))


@torch.no_grad()
def fold(network: nn.Module, inputs: Tensor | Sequence[Tensor]) -> tuple[fx.GraphModule, list[FoldedLayer]]:
    """A copy of a network in evaluation mode without the linear channels that can be removed, and an account.

    It computes the same function up to rounding (weights are multiplied in float64), for inputs of the size of
    ``inputs``. A layer with linear channels is folded if its input is a linear layer or convolution, with or without
    batch norm, that nothing else reads, and its output goes to one linear layer or convolution, with only batch norm,
    dropout and, before a linear layer, average pooling and flattening between. Batch norm there disappears, so that
    the copy is not for training. What is left of a layer keeps its name.

    Path lengths belong to the network before folding: folding turns linear channels into skips. Units go, but weights
    may become more: every layer is then joined to all earlier ones.

    Parameters
    ----------
    network
        With layers of :class:`~affscore_book.linearized.slopes.ChannelPReLU`, of any class that can be traced.
    inputs
        A batch for it, or a sequence with one for each argument; only the shapes matter.

    Returns
    -------
    The network, and one :class:`FoldedLayer` for each layer of ``network``, in execution order.

    Raises
    ------
    ValueError
        If the network has no :class:`ChannelPReLU`, or as :func:`affscore_book.linearized.paths.trace`.

    Examples
    --------
    >>> from affscore_book.linearized.slopes import linearize
    >>> network = linearize(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.zeros(1, 2))
    >>> channel_prelus(network)["1"].set_linear(torch.tensor([True, False, False]))
    >>> core, account = fold(network, torch.zeros(1, 2))
    >>> print(account[0])
    1: 1 of 1 linear channels folded, 2 left
    >>> x = torch.randn(5, 2)
    >>> torch.allclose(core(x), network(x), atol=1e-6), core.get_submodule("0")
    (True, Linear(in_features=2, out_features=2, bias=True))
    """
    traced = trace(copy.deepcopy(network).eval(), inputs)
    if not channel_prelus(traced):
        raise ValueError(f"network: {type(network).__name__} has no ChannelPReLU; linearize makes them.")
    folder = _Folder(traced)
    return folder.run(), folder.account
