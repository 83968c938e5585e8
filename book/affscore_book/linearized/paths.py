"""How many non-linear units a path through a network meets: average path length (APL), and its normalised form (NAPL).

A path goes from an input channel to an output channel, from unit to unit along the edges of the network's graph. A
unit is a channel, and a path's length is the number of *non-linear* units on it. A ReLU makes its channel non-linear,
and so does every other element-wise activation; a PReLU or LeakyReLU does unless the channel's slope is 1.

*   APL is the mean length when all paths are equally likely. A skip then hardly counts: beside four layers of width
    4 it is one path in 257.
*   NAPL is the mean length on a random walk back from the output, which chooses one summand at every addition, then
    one unit of the layer below, each uniformly. A skip then counts as much as what it skips.

What the graph does to paths:

*   A linear layer or convolution joins every output channel to every input channel (of its group) by *one* edge: the
    taps of a kernel are not counted separately, nor do the values of weights matter.
*   An addition joins its summands. ``a + b + c`` is one addition of three, if it alone reads ``a + b``.
*   Concatenated channels lie side by side. In NAPL each input of a concatenation so weighs by its share of channels.
*   Flattening turns each position of a channel into a unit, with the channel's paths.
*   Pooling, means, normalisation, dropout, resizing, and arithmetic with constants leave the paths of a channel alone,
    also where they are not linear, such as max pooling.
*   Constants, such as the zeros that pad the channels of a shortcut, carry no path. They are none of the summands
    and units that NAPL chooses from.
*   A product of two paths (squeeze-and-excitation, attention) has no length, and is refused.

Both lengths belong to the graph, not to the function: another graph with the same function may have others.

Reference: Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180, figure 1. The rules for taps, for
three summands, for concatenation and for constants are our reading.
"""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional

__all__ = ["PathLengths", "path_lengths", "trace"]

# ------------------------------------------------------------------------------------------------ the graph

_DROPOUT: dict[Any, type[nn.Module]] = {
    functional.dropout: nn.Dropout,
    functional.dropout1d: nn.Dropout1d,
    functional.dropout2d: nn.Dropout2d,
    functional.dropout3d: nn.Dropout3d,
    functional.alpha_dropout: nn.AlphaDropout,
    functional.feature_alpha_dropout: nn.FeatureAlphaDropout,
}


class _Tracer(fx.Tracer):
    """Remembers the module that it is in, so that an error can name it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        named = type(m).__name__ in ("StochasticDepth", "DropPath")  # traced through, they would not follow train()
        return named or isinstance(m, nn.PReLU) or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        self.inside.append(self.path_of_module(m))
        result = super().call_module(m, forward, args, kwargs)
        self.inside.pop()  # not after an error: then it says where that was
        return result


class _Shapes(ShapeProp):
    """Remembers the node that it runs, so that an error can name it."""

    def run_node(self, n: fx.Node) -> Any:
        self.node = n
        with redirect_stderr(io.StringIO()):  # ShapeProp prints a traceback before it raises
            return super().run_node(n)


def _where(node: fx.Node) -> str:
    """Name of a node for an error."""
    if node.op == "call_module":
        return f"module {node.target}"
    inside = _inside(node)
    return f"{_called(node)} (node {node.name}{inside and f' in module {inside}'})"


def _inside(node: fx.Node) -> str:
    """Path of the module whose forward method calls this, "" for the network itself."""
    return next((path for path, _ in reversed((node.meta.get("nn_module_stack") or {}).values())), "")


def _called(node: fx.Node) -> str:
    """Name of a function or method."""
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))


def trace(network: nn.Module, inputs: Tensor | Sequence[Tensor]) -> fx.GraphModule:
    """The graph of a network in evaluation mode, every node with its shape (``node.meta["tensor_meta"].shape``).

    The modules are those of ``network``, not copies. Calls of ``functional.dropout`` become modules, so that they go
    on following ``train()`` and ``eval()``; other uses of ``self.training`` are fixed as in evaluation mode.

    Parameters
    ----------
    network
        A module on any device.
    inputs
        A batch of examples, or a sequence with one for each argument of ``forward``; only their shapes matter.

    Raises
    ------
    ValueError
        If the path through the network depends on values, or if it does not accept ``inputs``; the sentence names
        the module.

    Examples
    --------
    >>> graph = trace(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), torch.zeros(1, 3, 9, 9)).graph
    >>> [(node.name, tuple(node.meta["tensor_meta"].shape)) for node in graph.nodes if node.op == "call_module"]
    [('_0', (1, 8, 7, 7)), ('_1', (1, 8, 7, 7))]
    """
    if not isinstance(network, nn.Module):
        raise ValueError(f"network: got {type(network).__name__}; it should be a torch.nn.Module.")
    examples = _examples(inputs)
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        traced = _symbolic(network)
        _propagate(traced, examples)
    finally:
        for module, mode in modes.items():
            module.training = mode
    for module in traced.modules():
        module.training = modes.get(module, network.training)
    return traced


def _examples(inputs: Any) -> tuple[Tensor, ...]:
    examples = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    for x in examples:
        if not isinstance(x, Tensor):
            raise ValueError(f"inputs: got {type(x).__name__}; it should be a tensor, or a list with one an argument.")
    return examples


def _symbolic(network: nn.Module) -> fx.GraphModule:
    tracer = _Tracer()
    try:
        graph = tracer.trace(network)
    except Exception as error:  # whatever a forward method does with a proxy
        where = f"module {tracer.inside[-1]}" if tracer.inside else "the forward method"
        raise ValueError(
            f"network: {type(network).__name__} cannot be traced: {where} fails on symbolic values ({error})."
        ) from error
    traced = fx.GraphModule(network, graph)
    for node in graph.nodes:
        training = node.args[2] if len(node.args) > 2 else node.kwargs.get("training", True)
        if node.target in _DROPOUT and training is False:  # True in evaluation mode: meant to be on all the time
            share = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
            name = f"functional_{node.name}"
            traced.add_submodule(name, _DROPOUT[node.target](share))
            node.op, node.target, node.args, node.kwargs = "call_module", name, node.args[:1], {}
    traced.recompile()
    return traced


def _propagate(traced: fx.GraphModule, examples: Sequence[Tensor]) -> None:
    arguments = [node for node in traced.graph.nodes if node.op == "placeholder"]
    required = sum(not node.args for node in arguments)  # a default is an argument of the node
    if not required <= len(examples) <= len(arguments):
        names = ", ".join(node.name for node in arguments)
        raise ValueError(f"inputs: got {len(examples)} tensors; the network takes {names}.")
    shapes = _Shapes(traced)
    shapes.extra_traceback = False
    try:
        with torch.no_grad():
            shapes.propagate(*(x.detach().clone() for x in examples))  # an in-place activation may overwrite them
    except Exception as error:  # whatever an operation says to a wrong shape
        given = " and ".join(str(tuple(x.shape)) for x in examples)
        cause = " ".join(str(error.__cause__ or error).split()).rstrip(".")
        raise ValueError(f"inputs: {_where(shapes.node)} fails for inputs of shape {given}: {cause}.") from error


# ------------------------------------------------------------------------------------------------ path lengths


@dataclass(frozen=True, eq=False, repr=False)
class PathLengths:
    """Paths of a network by length and output channel.

    Attributes
    ----------
    counts
        Object array (channels, longest + 1) of ints: paths of length 0, 1, ... that end in each output channel. The
        channels are axis 1 of the output; where positions differ, the last axis; where those do too, all entries.
    weights
        Object array (channels, longest + 1) of Fractions: the probability that NAPL's random walk, started in this
        output channel, is a path of length 0, 1, ...; a row sums to 1, or to 0 where no path ends.
    depth
        NAPL from the inputs up to and with each activation, mean over its channels, by name, in execution order.
    """

    counts: np.ndarray
    weights: np.ndarray
    depth: dict[str, float]

    @property
    def paths(self) -> np.ndarray:
        """Number of paths into each output channel, ints, object array (channels,)."""
        return self.counts.sum(axis=1)

    @property
    def apl(self) -> float:
        """Average path length: mean number of non-linear units on a path, all paths equally likely."""
        return float(_mean_length(dict(enumerate(self._shares("apl")))))

    @property
    def napl(self) -> float:
        """Normalised average path length, mean over the output channels in which paths end."""
        return float(_mean_length(dict(enumerate(self._shares("napl")))))

    @property
    def channel_apl(self) -> np.ndarray:
        """APL of each output channel, float64 (channels,); NaN where no path ends."""
        return np.array([float(_mean_length(dict(enumerate(row)))) for row in self.counts])

    @property
    def channel_napl(self) -> np.ndarray:
        """NAPL of each output channel, float64 (channels,); NaN where no path ends."""
        return np.array([float(_mean_length(dict(enumerate(row)))) for row in self.weights])

    def shares(self, measure: str = "apl") -> np.ndarray:
        """Share of the paths with length 0, 1, ..., float64 (longest + 1,), as ``"apl"`` or ``"napl"`` weighs them.

        Its mean length is :attr:`apl` or :attr:`napl`.
        """
        shares = self._shares(measure)
        return np.array([float(Fraction(share) / sum(shares)) for share in shares])

    def _shares(self, measure: str) -> np.ndarray:
        if measure not in ("apl", "napl"):
            raise ValueError(f'measure: got {measure!r}; it should be "apl" or "napl".')
        return (self.counts if measure == "apl" else self.weights).sum(axis=0)

    def __repr__(self) -> str:
        paths = self.paths.sum()
        number = paths if paths < 10**9 else f"{Decimal(paths):.2e}"  # beyond 1e308 there are no floats
        return f"PathLengths(apl={self.apl:.4g}, napl={self.napl:.4g}, {number} paths)"


def _mean_length(shares: Mapping[int, Any]) -> Fraction | float:
    """Of shares by length; NaN where no path ends."""
    total = sum(shares.values())
    return Fraction(sum(length * share for length, share in shares.items())) / total if total else np.nan


def path_lengths(network: nn.Module, inputs: Tensor | Sequence[Tensor]) -> PathLengths:
    """Average path length and normalised average path length of a network, exactly, from its traced graph.

    The rules are at the top of this module. Output channels of several outputs are listed one after the other.

    Parameters
    ----------
    network
        A module that ``torch.fx`` can trace, on any device; it is not changed. The graph is that of evaluation mode.
    inputs
        A batch of examples, (batch, channels, ...), or a sequence with one for each argument of ``forward``; only
        their shapes matter.

    Raises
    ------
    ValueError
        As :func:`trace`; and if the graph holds an operation without a rule, or a product of two paths. The
        sentence names it and its module.

    Examples
    --------
    A skip over four layers of width 4 (figure 1):

    >>> class Skip(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layers = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(4, 4), nn.ReLU())])
    ...     def forward(self, x):
    ...         return x + self.layers(x)
    >>> lengths = path_lengths(Skip(), torch.zeros(1, 4))
    >>> lengths
    PathLengths(apl=3.984, napl=2, 1028 paths)
    >>> lengths.paths[0], lengths.counts[0]           # paths into the first output, and by length
    (257, array([1, 0, 0, 0, 256], dtype=object))
    >>> lengths.shares("napl")
    array([0.5, 0. , 0. , 0. , 0.5])
    >>> print(lengths.weights[0, 4] / lengths.counts[0, 4])          # NAPL's weight of a deep path
    1/512
    """
    examples = _examples(inputs)
    traced = trace(network, examples)
    for x in examples:
        if x.ndim < 2 or 0 in x.shape:
            raise ValueError(f"inputs: got shape {tuple(x.shape)}; it should be (batch, channels, ...), not empty.")
    walk = _Walk(traced)
    start = [_Units(torch.ones((), dtype=torch.int64, device=x.device).expand(x.shape)) for x in examples]
    with torch.no_grad():
        output = walk.run(*start)
    labels = [label for units in _units(output) for label in units.flat()]
    if not any(labels):
        raise ValueError(f"network: no path leads from the inputs of {type(network).__name__} to its output.")
    longest = max(max(walk.states[label].counts, default=0) for label in labels)
    shape = (len(labels), longest + 1)
    counts, weights = np.full(shape, 0, dtype=object), np.full(shape, Fraction(0), dtype=object)
    for row, label in enumerate(labels):
        for length, count in walk.states[label].counts.items():
            counts[row, length], weights[row, length] = count, walk.states[label].weights[length]
    return PathLengths(counts, weights, walk.depth)


# ------------------------------------------------------------------------------------------------ the walk


@dataclass(frozen=True)
class _State:
    """The paths into a unit: how many of each length, and the probability of each length under NAPL's walk."""

    counts: dict[int, int] = field(default_factory=dict)
    weights: dict[int, Fraction] = field(default_factory=dict)


class _NoRule(Exception):
    """The end of a sentence that starts with the name of an operation."""


class _Units:
    """A tensor of the graph: in the place of each number an int64 label that says which state this unit is in.

    Label 0 is a unit that no path reaches. Axes along which nothing changes are stored once, with size 1.
    """

    def __init__(self, labels: Tensor):
        self.shape = labels.shape
        for axis, size in enumerate(labels.shape):
            first = labels.narrow(axis, 0, min(size, 1))
            labels = first if labels.stride(axis) == 0 or (labels == first).all() else labels
        self.small = labels

    @property
    def labels(self) -> Tensor:
        return self.small.expand(self.shape)

    def common(self, axes: Iterable[int], keepdim: bool = False) -> Tensor:
        """The one label along these axes; units that no path reaches, such as a border of zeros, do not matter."""
        axes = tuple(axes)
        top = self.small.amax(axes, keepdim=True)
        if not ((self.small == top) | (self.small == 0)).all():
            raise _NoRule("merges units that have different paths, for which path lengths have no rule")
        top = top.expand([1 if axis in axes else size for axis, size in enumerate(self.shape)])
        return top if keepdim else top.amax(axes)

    def channels(self) -> Tensor:
        """Labels of the channels, axis 1: int64 (channels,)."""
        return self.common([0, *range(2, len(self.shape))])

    def flat(self) -> list[int]:
        """Labels of the units of an output or a layer: of its channels, axis 1, else the last, else of all entries."""
        dimensions = len(self.shape)
        for axis in (1, max(1, dimensions - 1)):
            with suppress(_NoRule):
                return self.common(other for other in range(dimensions) if other != axis).reshape(-1).tolist()
        return (self.labels[0] if dimensions > 1 else self.labels).flatten().tolist()


def _units(values: Any) -> list[_Units]:
    """The units among the arguments of an operation."""
    found: list[_Units] = []
    map_aggregate(values, lambda x: found.append(x) if isinstance(x, _Units) else x)
    return found


def _names(text: str, dimensions: str = "") -> set[str]:
    return {name + (dimension and f"{dimension}d") for name in text.split() for dimension in dimensions or [""]}


# Operations by name, in lower case without underscores, so that modules, functions and methods share an entry.
_NONLINEAR = _names(
    "relu relu6 leakyrelu prelu rrelu elu selu celu gelu silu mish hardswish hardsigmoid sigmoid logsigmoid tanh "
    "hardtanh tanhshrink hardshrink softshrink softplus softsign threshold clamp clip abs exp log sin cos erf sqrt "
    "square reciprocal"
)
_LINEAR = {"linear", "matmul", "mm"}
_CONVOLUTION = _names("conv convtranspose", "123")
_ADD = _names("add iadd sub isub subtract")
_SCALE = _names("mul imul multiply div truediv itruediv divide neg float double to")
_PRODUCT = _SCALE | _names("matmul mm bmm einsum scaleddotproductattention")
_SAME = _names("identity dropout alphadropout featurealphadropout stochasticdepth droppath contiguous detach")
_SAME |= _names("dropout", "123")
_NORM = _names("batchnorm instancenorm", "123")
_NORM |= _names("batchnorm instancenorm syncbatchnorm layernorm groupnorm rmsnorm localresponsenorm")
_REDUCE = {"mean", "sum", "amax"}
_CHANNELWISE = _names("maxpool avgpool lppool adaptivemaxpool adaptiveavgpool fractionalmaxpool", "123")
_CHANNELWISE |= _names("zeropad constantpad reflectionpad replicationpad circularpad", "123")
_CHANNELWISE |= _names("pad interpolate upsample upsamplingnearest2d upsamplingbilinear2d")
_JOIN = _names("cat concat concatenate stack")
_MOVE = _JOIN | _names(
    "view reshape flatten unflatten permute transpose swapaxes t movedim getitem getattr size dim numel chunk split "
    "tensorsplit unbind squeeze unsqueeze expand expandas repeat clone narrow select roll flip channelshuffle "
    "pixelshuffle pixelunshuffle viewas reshapeas"
)
_FILL = _names("zeroslike oneslike newzeros newones")


def _argument(args: Any, kwargs: Any, place: int, name: str, default: Any = None) -> Any:
    return args[place] if len(args) > place else kwargs.get(name, default)


def _class_name(module: nn.Module) -> str:
    """Torch's name for it, if it is a kind of what torch has: a PReLU with a mask, a parametrised Linear."""
    bases = (kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.modules."))
    base = next(bases, nn.Module)
    return type(module).__name__ if base is nn.Module else base.__name__


class _Walk(fx.Interpreter):
    """Runs a graph on labels of units instead of numbers; ``states[label]`` holds the paths into such a unit.

    Operations that only move numbers are run on the labels themselves. Two things happen to states: :meth:`mix` joins
    units, in a layer or an addition, and :meth:`longer` makes a unit non-linear.
    """

    def __init__(self, traced: fx.GraphModule):
        super().__init__(traced)
        self.extra_traceback = False
        self.states = [_State(), _State({0: 1}, {0: Fraction(1)})]  # of no path, and of an input
        self.depth: dict[str, float] = {}
        self.known: dict[Hashable, int] = {}
        self.summands: dict[fx.Node, list[Tensor]] = {}

    def mix(self, labels: Iterable[int]) -> int:
        """Label of a unit with one edge to each of these."""
        edges = Counter(label for label in labels if label)
        if edges.total() <= 1:
            return next(iter(edges), 0)
        key = frozenset(edges.items())
        if key not in self.known:
            counts: dict[int, int] = Counter()
            weights: dict[int, Fraction] = Counter()  # type: ignore[assignment]
            for label, number in edges.items():
                share = Fraction(number, edges.total())
                for length, count in self.states[label].counts.items():
                    counts[length] += number * count
                    weights[length] += share * self.states[label].weights[length]
            self.known[key] = self._label(_State(counts, weights))
        return self.known[key]

    def longer(self, label: int) -> int:
        """Label of a non-linear unit in the place of this one."""
        if label and label not in self.known:
            state = self.states[label]
            counts = {length + 1: count for length, count in state.counts.items()}
            weights = {length + 1: weight for length, weight in state.weights.items()}
            self.known[label] = self._label(_State(counts, weights))
        return self.known[label] if label else 0

    def _label(self, state: _State) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def columns(self, labels: Tensor) -> Tensor:
        """Mix along the first axis: int64 (edges, ...) to (...)."""
        distinct, place = labels.flatten(1).unique(dim=1, return_inverse=True)
        mixed = torch.tensor([self.mix(column) for column in distinct.T.tolist()], device=labels.device)
        return mixed[place].view(labels.shape[1:])

    # ---- the operations

    def run_node(self, n: fx.Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        found = _units((args, kwargs))
        if n.op in ("placeholder", "get_attr", "output") or not found:
            return super().run_node(n)  # numbers, sizes, weights
        module = self.submodules[n.target] if n.op == "call_module" else None
        name = _class_name(module) if module else _called(n)
        try:
            result = self._apply(n, name.replace("_", "").lower(), module, found, args, kwargs)
            if not isinstance(result, _Units) or not _in_place(name, module, args, kwargs):
                return result
            if not args or args[0] is not found[0]:
                raise _NoRule("writes into a constant, for which path lengths have no rule")
            args[0].shape, args[0].small = result.shape, result.small  # for whatever reads this tensor later
            return args[0]
        except _NoRule as error:
            raise ValueError(f"network: {_where(n)} {error}.") from None
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise ValueError(f"network: {_where(n)} is called in a way that path lengths have no rule for.") from error

    def _apply(self, n: fx.Node, name: str, module: Any, found: list[_Units], args: Any, kwargs: Any) -> Any:
        constant = name == "pad" and _argument(args, kwargs, 2, "mode", "constant") == "constant"
        if name in _MOVE or name in _FILL or constant:
            return self._move(n, name, args, kwargs)
        if name in _ADD:
            return self._add(n)
        if len(found) > 1 and name in _PRODUCT:
            raise _NoRule("multiplies two paths, and a product of paths has no length")
        units: _Units = found[0]
        result: Any = n.meta.get("tensor_meta")
        one = len(found) == 1 and hasattr(result, "shape")  # one tensor of units to one
        if one and (units is _argument(args, kwargs, 0, "input") or name in ("mul", "multiply")):
            if name in _NONLINEAR:
                return self._activate(n, name, module, units, args, kwargs)
            if name in _SAME:
                return units
            if name in _SCALE or name in _NORM:
                return self._expand(n, units.small)
            if name in _LINEAR:
                edges = units.small.expand(*units.small.shape[:-1], units.shape[-1]).movedim(-1, 0)
                return self._expand(n, self.columns(edges).unsqueeze(-1))
            if name in _CONVOLUTION:
                if len(units.shape) != int(name[-2]) + 2:
                    raise _NoRule("has an input without an axis for the batch, for which path lengths have no rule")
                groups = module.groups if module else _argument(args, kwargs, 6, "groups", 1)
                mixed = self.columns(units.channels().view(groups, -1).T)
                return self._expand(n, mixed.repeat_interleave(result.shape[1] // groups), axis=1)
            if name in _CHANNELWISE:
                return self._expand(n, units.channels(), axis=1)
            if name in _REDUCE:
                axes = _argument(args, kwargs, 1, "dim")
                axes = {axis % len(units.shape) for axis in ([axes] if isinstance(axes, int) else axes)}
                if 0 not in axes:  # the batch
                    return self._expand(n, units.common(axes, keepdim=len(result.shape) == len(units.shape)))
        kind = f"is a {type(module).__name__}," if module else "is"
        raise _NoRule(f"{kind} an operation without a rule for path lengths")

    def _expand(self, n: fx.Node, labels: Tensor, axis: int | None = None) -> _Units:
        """Units in the shape of this node's value, the same along all axes (but this one) where labels has size 1."""
        shape = n.meta["tensor_meta"].shape
        return _Units((labels if axis is None else labels.view(-1, *[1] * (len(shape) - axis - 1))).expand(shape))

    def _move(self, n: fx.Node, name: str, args: Any, kwargs: Any) -> Any:
        """Run the operation on labels. Constants beside units carry no path, whatever their value."""
        if name == "pad":
            args, kwargs = (args[0], _argument(args, kwargs, 1, "pad")), {}

        def plain(x: Any) -> Any:
            if isinstance(x, _Units):
                return x.labels.contiguous() if name == "view" else x.labels
            return torch.zeros_like(x, dtype=torch.int64) if name in _JOIN and isinstance(x, Tensor) else x

        result = getattr(super(), n.op)(n.target, map_aggregate(args, plain), map_aggregate(kwargs, plain))
        if name in _FILL:
            return result.float()
        if isinstance(result, (tuple, list)):
            return type(result)(_Units(x) if isinstance(x, Tensor) else x for x in result)
        return _Units(result) if isinstance(result, Tensor) else result

    def _add(self, n: fx.Node) -> _Units:
        """A sum that is read once, by this sum, is part of it: its summands count, not the sum."""
        summands: list[Tensor] = []
        operands = (*n.args, *n.kwargs.values())
        for node in operands:
            if isinstance(node, fx.Node) and isinstance(self.env[node], _Units):
                inner = node in self.summands and len(node.users) == 1 and operands.count(node) == 1
                summands += self.summands[node] if inner else [self.env[node].small]
        self.summands[n] = summands
        return self._expand(n, self.columns(torch.stack(torch.broadcast_tensors(*summands))))

    def _activate(self, n: fx.Node, name: str, module: Any, units: _Units, args: Any, kwargs: Any) -> _Units:
        slope: Any = 0.0
        if name == "prelu":
            slope = module.weight if module else _argument(args, kwargs, 1, "weight")
        elif name == "leakyrelu":
            slope = module.negative_slope if module else _argument(args, kwargs, 1, "negative_slope", 0.01)
        slope = torch.as_tensor(slope, device=units.small.device)
        if not slope.isfinite().all():
            raise _NoRule("has slopes that are not finite numbers")
        if slope.numel() > 1:  # one a channel
            slope = slope.view(-1, *[1] * (len(units.shape) - 2))
        distinct, place = units.small.unique(return_inverse=True)
        longer = torch.tensor([self.longer(label) for label in distinct.tolist()], device=place.device)[place]
        result = self._expand(n, torch.where(slope != 1, longer, units.small))
        path = str(n.target) if module else ".".join(filter(None, (_inside(n), _called(n))))
        names = (path if call == 1 else f"{path}_{call}" for call in itertools.count(1))
        weights = self.states[self.mix(result.flat())].weights
        self.depth[next(name for name in names if name not in self.depth)] = float(_mean_length(weights))
        return result


def _in_place(name: str, module: nn.Module | None, args: Any, kwargs: Any) -> bool:
    """If a call writes into its first argument: ReLU(inplace=True), relu_, +=."""
    flag = getattr(module, "inplace", False) or kwargs.get("inplace", False)
    positional = name.lower().replace("_", "") in _NONLINEAR and any(x is True for x in args[1:])
    augmented = name in ("imul", "itruediv") or (name in ("iadd", "isub") and isinstance(args[0], _Units))
    return bool(flag or positional or augmented or name.endswith("_"))
