"""How paths go through the operations of a network: a run of its graph on labels instead of numbers.

Every unit carries a label, and ``states[label]`` holds the paths into a unit so labelled. Operations that only move
numbers are run on the labels themselves. Two things happen to paths: a layer or an addition joins those of several
units (:meth:`PathWalk.mix`), and a non-linear unit makes its own longer (:meth:`PathWalk.longer`). The rules are told
in :mod:`affscore_book.linearized.paths`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate

from affscore_book.linearized.graph import function_name, node_name

__all__ = ["PathWalk", "Paths"]

#: The paths into a unit, by length: how many there are, and their probability in NAPL's random walk.
Paths = dict[int, tuple[int, Fraction]]


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

    def channels(self) -> Tensor:
        """Labels of the channels, axis 1: int64 (channels,). Units without a path, such as a border, do not matter."""
        axes = (0, *range(2, len(self.shape)))
        top = self.small.amax(axes, keepdim=True)
        if not ((self.small == top) | (self.small == 0)).all():
            raise _NoRule("merges units that have different paths, for which path lengths have no rule")
        return top.amax(axes).expand(self.shape[1:2])

    def flat(self) -> list[int]:
        """Labels of the units of an output: of its channels or, where their positions differ, of all entries."""
        try:
            return self.channels().reshape(-1).tolist()
        except _NoRule:
            return self.labels[0].flatten().tolist()


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
_CONVOLUTION = _names("conv convtranspose", "123")
_ADD = _names("add iadd sub isub subtract")
_SCALE = _names("mul imul multiply div truediv itruediv divide neg float double to")
_PRODUCT = _SCALE | _names("matmul mm bmm einsum scaleddotproductattention")
_SAME = _names("identity dropout alphadropout featurealphadropout contiguous detach")
_SAME |= _names("dropout", "123")
_NORM = _names("batchnorm instancenorm", "123")
_NORM |= _names("batchnorm instancenorm syncbatchnorm layernorm groupnorm rmsnorm localresponsenorm")
_CHANNELWISE = _names("maxpool avgpool lppool adaptivemaxpool adaptiveavgpool fractionalmaxpool", "123")
_CHANNELWISE |= _names("zeropad constantpad reflectionpad replicationpad circularpad", "123")
_CHANNELWISE |= _names("pad interpolate upsample upsamplingnearest2d upsamplingbilinear2d")
_JOIN = _names("cat concat concatenate stack")
_MOVE = _JOIN | _names(
    "view reshape flatten unflatten permute transpose swapaxes t movedim getitem getattr size dim numel chunk split "
    "tensorsplit unbind squeeze unsqueeze expand expandas repeat clone narrow select roll flip channelshuffle "
    "pixelshuffle pixelunshuffle viewas reshapeas"
)


def _class_name(module: nn.Module) -> str:
    """Torch's name for it, if it is a kind of what torch has: a PReLU with a mask, a parametrised Linear."""
    kinds = [k for k in type(module).__mro__ if k is not nn.Module and k.__module__.startswith("torch.nn.modules.")]
    return (kinds or [type(module)])[0].__name__


class PathWalk(fx.Interpreter):
    """Runs a graph from :func:`affscore_book.linearized.graph.traced_graph` on labels.

    ``states`` holds the paths into a unit, by label: 0 is a unit that no path reaches, 1 an input.
    """

    def __init__(self, traced: fx.GraphModule):
        super().__init__(traced)
        self.extra_traceback = False
        self.states: list[Paths] = [{}, {0: (1, Fraction(1))}]
        self.known: dict[Hashable, int] = {}
        self.summands: dict[fx.Node, list[Tensor]] = {}

    @torch.no_grad()
    def outputs(self, inputs: Tensor) -> list[Paths]:
        """The paths into every output channel, for inputs of this shape."""
        output = self.run(_Units(torch.ones((), dtype=torch.int64, device=inputs.device).expand(inputs.shape)))
        return [self.states[label] for units in _units(output) for label in units.flat()]

    def mix(self, labels: Iterable[int]) -> int:
        """Label of a unit with one edge to each of these."""
        edges = Counter(label for label in labels if label)
        if edges.total() <= 1:
            return next(iter(edges), 0)
        key = frozenset(edges.items())
        if key not in self.known:
            paths: Paths = defaultdict(lambda: (0, Fraction(0)))
            for label, number in edges.items():
                share = Fraction(number, edges.total())
                for length, (count, weight) in self.states[label].items():
                    paths[length] = paths[length][0] + number * count, paths[length][1] + share * weight
            self.known[key] = self._label(paths)
        return self.known[key]

    def longer(self, label: int) -> int:
        """Label of a non-linear unit in the place of this one."""
        if label and label not in self.known:
            self.known[label] = self._label({length + 1: paths for length, paths in self.states[label].items()})
        return self.known[label] if label else 0

    def _label(self, paths: Paths) -> int:
        self.states.append(paths)
        return len(self.states) - 1

    def columns(self, labels: Tensor) -> Tensor:
        """Mix along the first axis: int64 (edges, ...) to (...)."""
        distinct, place = labels.flatten(1).unique(dim=1, return_inverse=True)
        mixed = torch.tensor([self.mix(column) for column in distinct.T.tolist()], device=labels.device)
        return mixed[place].view(labels.shape[1:])

    def run_node(self, n: fx.Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        found = _units((args, kwargs))
        if n.op in ("placeholder", "get_attr", "output") or not found:
            return super().run_node(n)  # numbers, sizes, weights
        module = self.submodules[n.target] if n.op == "call_module" else None
        name = _class_name(module) if module else function_name(n)
        try:
            result = self._apply(n, name.replace("_", "").lower(), module, found, args, kwargs)
            if not isinstance(result, _Units) or not _in_place(name, module, args, kwargs):
                return result
            args[0].shape, args[0].small = result.shape, result.small  # for whatever reads this tensor later
            return args[0]
        except _NoRule as error:
            raise ValueError(f"network: {node_name(n)} {error}.") from None
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise ValueError(
                f"network: {node_name(n)} is called in a way that path lengths have no rule for."
            ) from error

    def _apply(self, n: fx.Node, name: str, module: Any, found: list[_Units], args: Any, kwargs: Any) -> Any:
        with_zeros = name == "pad" and not {"reflect", "replicate", "circular"} & {*args[2:], kwargs.get("mode")}
        if name in _MOVE or with_zeros:
            return self._move(n, name, args, kwargs)
        if name in _ADD:
            return self._add(n)
        if len(found) > 1 and name in _PRODUCT:
            raise _NoRule("multiplies two paths, and a product of paths has no length")
        units: _Units = found[0]
        if len(found) == 1 and ((args and args[0] is units) or name in ("mul", "multiply")):
            if name in _NONLINEAR:
                return self._activate(n, name, module, units)
            if name in _SAME:
                return units
            if name in _SCALE or name in _NORM:
                return self._expand(n, units.small)
            if name == "linear":
                edges = units.small.expand(*units.small.shape[:-1], units.shape[-1]).movedim(-1, 0)
                return self._expand(n, self.columns(edges).unsqueeze(-1))
            if name in _CONVOLUTION and module:
                if len(units.shape) != int(name[-2]) + 2:
                    raise _NoRule("has an input without an axis for the batch, for which path lengths have no rule")
                mixed = self.columns(units.channels().view(module.groups, -1).T)
                return self._expand(n, mixed.repeat_interleave(module.out_channels // module.groups), axis=1)
            if name in _CHANNELWISE:
                return self._expand(n, units.channels(), axis=1)
        kind = f"is a {type(module).__name__}," if module else "is"
        raise _NoRule(f"{kind} an operation without a rule for path lengths")

    def _expand(self, n: fx.Node, labels: Tensor, axis: int | None = None) -> _Units:
        """Units in the shape of this node's value, the same along all axes (but this one) where labels has size 1."""
        shape = n.meta["tensor_meta"].shape
        return _Units((labels if axis is None else labels.view(-1, *[1] * (len(shape) - axis - 1))).expand(shape))

    def _move(self, n: fx.Node, name: str, args: Any, kwargs: Any) -> Any:
        """Run the operation on labels. Constants beside units carry no path, whatever their value."""
        if name == "pad":
            args, kwargs = args[:2], {key: value for key, value in kwargs.items() if key == "pad"}

        def plain(x: Any) -> Any:
            if isinstance(x, _Units):
                return x.labels.contiguous() if name == "view" else x.labels
            return torch.zeros_like(x, dtype=torch.int64) if name in _JOIN and isinstance(x, Tensor) else x

        result = getattr(super(), n.op)(n.target, map_aggregate(args, plain), map_aggregate(kwargs, plain))
        if isinstance(result, (tuple, list)):
            return type(result)(_Units(x) if isinstance(x, Tensor) else x for x in result)
        return _Units(result) if isinstance(result, Tensor) else result

    def _add(self, n: fx.Node) -> _Units:
        """A sum that is read once, by this sum, is part of it: its summands count, not the sum."""
        summands: list[Tensor] = []
        for node in (*n.args, *n.kwargs.values()):
            if isinstance(node, fx.Node) and isinstance(self.env[node], _Units):
                inner = node in self.summands and len(node.users) == 1
                summands += self.summands[node] if inner else [self.env[node].small]
        self.summands[n] = summands
        return self._expand(n, self.columns(torch.stack(torch.broadcast_tensors(*summands))))

    def _activate(self, n: fx.Node, name: str, module: Any, units: _Units) -> _Units:
        slope = torch.zeros(1, device=units.small.device)
        if name in ("prelu", "leakyrelu"):
            if module is None:
                raise _NoRule("should be a module, which knows its slopes")
            slope = torch.as_tensor(module.weight if name == "prelu" else module.negative_slope, device=slope.device)
        if not slope.isfinite().all():
            raise _NoRule("has slopes that are not finite numbers")
        if slope.numel() > 1:  # one a channel
            slope = slope.view(-1, *[1] * (len(units.shape) - 2))
        distinct, place = units.small.unique(return_inverse=True)
        longer = torch.tensor([self.longer(label) for label in distinct.tolist()], device=place.device)[place]
        return self._expand(n, torch.where(slope != 1, longer, units.small))


def _in_place(name: str, module: nn.Module | None, args: Any, kwargs: Any) -> bool:
    """If a call writes into its first argument: ReLU(inplace=True), relu_, +=."""
    flag = getattr(module, "inplace", False) or kwargs.get("inplace", False)
    positional = name.lower().replace("_", "") in _NONLINEAR and any(x is True for x in args[1:])
    augmented = name in ("imul", "itruediv") or (name in ("iadd", "isub") and isinstance(args[0], _Units))
    return bool(flag or positional or augmented or name.endswith("_"))
