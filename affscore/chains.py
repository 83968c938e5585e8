"""Activations that a network spells out in arithmetic, such as ``x * torch.sigmoid(x)``: where they begin and end.

Element-wise operators that start from one tensor, the *root*, form a chain: each of their outputs is a function of the
root alone, entry by entry. Parameters and numbers may take part. A second tensor that depends on the data ends the
chain (``a * sigmoid(b)`` stays a gate on another tensor), and so does every operator that mixes entries.

A chain is one activation: from the last tensor that all its paths pass before they bend to the first one that something
outside the chain takes in. What is affine at either end belongs to the layers around it, so ``relu(x + 3) / 6`` is the
relu of ``x + 3``. An activation that takes in the output of another one is a call of its own, unless both are joined
later, as in Mish, ``x * tanh(softplus(x))``.

A chain of several operators has the name of the function that it equals on a grid, or else those of its operators,
``elementwise[relu, pow]``. Without an activation of the registry it is plain mathematics, which counts only under such
a name: ``x / 2 * (1 + erf(x / sqrt(2)))`` is GELU, ``x ** 2`` is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_map
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from affscore.channels import tensors_in

__all__ = ["KNOWN", "Chains", "Link", "Span"]

#: Functions of one variable and their names, with which a chain of several operators is compared.
KNOWN: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("silu", F.silu),
    ("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x)),
    ("gelu", F.gelu),
    ("gelu", lambda x: F.gelu(x, approximate="tanh")),
    ("relu_squared", lambda x: F.relu(x).square()),
    ("mish", F.mish),
    ("hardswish", F.hardswish),
    ("relu", F.relu),
    ("relu6", F.relu6),
    ("leaky_relu", F.leaky_relu),
    ("elu", F.elu),
    ("selu", F.selu),
    ("softplus", F.softplus),
    ("softsign", F.softsign),
    ("tanhshrink", F.tanhshrink),
    ("tanh", torch.tanh),
    ("sigmoid", torch.sigmoid),
    ("hardsigmoid", F.hardsigmoid),
)
_GATES = ("sigmoid", "hardsigmoid")
_GRID = torch.linspace(-9, 9, 901, dtype=torch.float64)

_SUMS = ("add", "sub", "rsub")
_SCALINGS = ("mul", "div", "neg")
_COPIES = ("clone", "detach", "_to_copy")
_ELEMENTWISE = ("hardswish", "where", "pow", "square")  # also where PyTorch has no tag that says so


@dataclass(eq=False)
class Link:
    """A tensor of a chain, without the tensor: how it came to be and what was seen of it.

    ``func`` and ``args`` are the operator and what it took in, with links in place of tensors; a root has none.
    ``way`` are the links that all paths from the root pass, itself the last. ``scaled`` is the link of which this one
    is an affine function, where that is none of the root.
    """

    func: Any = None
    args: Any = None
    way: tuple[Link, ...] = ()
    scaled: Link | None = None
    affine: bool = True  # as a function of the root
    activation: tuple[str, bool] | None = None
    active: bool = False  # an activation of the registry, or a function of one
    module: str = ""
    place: int = -1
    seen: Any = None
    tensor: TensorWeakRef | None = None  # of a root
    taken: bool = False  # by some operator
    left: bool = False  # taken by something outside the chain
    begun: bool = False  # taken by an activation of the registry

    def __post_init__(self) -> None:
        self.way = (*self.way, self)

    @property
    def core(self) -> Link:
        """The link without what is affine about it."""
        return self.scaled or self


class Span(NamedTuple):
    """One activation: the link that it starts from, the one it ends in, its name, and whether it is a gate."""

    start: Link
    end: Link
    function: str
    gate: bool


class Step(NamedTuple):
    """An operator before it runs: the tensors that depend on the data, their links, and its name in the registry."""

    operands: list[Tensor]
    links: list[Link]
    activation: tuple[str, bool] | None


class Chains:
    """The chains of one forward pass.

    ``fixed`` tells tensors that do not depend on the data. ``look`` keeps of a tensor what a call will need; it is
    called on inputs before an operator runs, which may overwrite them.
    """

    def __init__(self, fixed: Callable[[Tensor], bool], look: Callable[[Tensor], Any]) -> None:
        self.fixed, self.look = fixed, look
        self._links = WeakTensorKeyDictionary()
        self._bent: list[Link] = []  # all that are no affine functions of their roots, in order

    def _link(self, tensor: Tensor) -> Link:
        """The link of a tensor; a new root if it has none or was written to since."""
        link, versions = self._links.get(tensor, (None, ()))
        if link is None or _version(tensor) not in versions:
            link = self._set(tensor, Link(tensor=TensorWeakRef(tensor)))
        return link

    def _set(self, tensor: Tensor, link: Link, written: bool = False) -> Link:
        # What an operator writes in place is counted only after we have seen it.
        version = _version(tensor)
        self._links[tensor] = link, (version, version + written)
        return link

    def _see(self, tensor: Tensor) -> None:
        """Look at a tensor, and at its root where that is still what it was."""
        link = self._link(tensor)
        root = link.way[0]
        origin = root.tensor() if root.tensor else None
        for each, value in ((link, tensor), (root, origin)):
            if each.seen is None and value is not None and value.is_floating_point() and self._link(value) is each:
                each.seen = self.look(value)

    def before(self, func: Any, args: Any, kwargs: Any, activation: tuple[str, bool] | None) -> Step:
        """Look at what an operator takes in, where that may be where an activation starts."""
        operands = [t for t in tensors_in([*args, *kwargs.values()]) if t.ndim and not self.fixed(t)]
        step = Step(operands[:1] if activation else operands, [], activation)
        step.links.extend(map(self._link, step.operands))
        if activation or (_elementwise(func) and _alike(step) and not _keeps_affine(func, args, step)):
            for tensor, link in zip(step.operands, step.links, strict=True):
                if activation or (link.affine and tensor.is_floating_point()):
                    self._see(tensor)
        return step

    def after(self, step: Step, func: Any, args: Any, kwargs: Any, out: Any, module: str, place: int) -> None:
        """Link the output of an operator to what it took in, or note that it is outside the chain."""
        out = out[0] if step.activation and isinstance(out, tuple) else out
        links = list(dict.fromkeys(step.links))
        one = len(links) == 1 and isinstance(out, Tensor)
        if one and (_same_memory(func, step.operands[0], out) or _name(func) in _COPIES) and out.is_floating_point():
            self._set(out, links[0])
            return
        for link in links:
            link.taken = True
        goes_on = _alike(step) and isinstance(out, Tensor) and out.shape == step.operands[0].shape
        if not goes_on or not (step.activation or _elementwise(func)):
            for link in links:
                link.core.left = True
            return
        if step.activation:
            links[0].core.begun = True
        keeps = not step.activation and _keeps_affine(func, args, step)
        link = Link(
            func,
            self._inputs(step, args, kwargs),
            _common([link.way for link in links]),
            scaled=links[0].core if keeps and len(links) == 1 and not links[0].affine else None,
            affine=keeps and all(link.affine for link in links),
            activation=step.activation,
            active=step.activation is not None or any(link.active for link in links),
            module=module,
            place=place,
        )
        if not link.affine:
            self._bent.append(link)
            if not link.scaled and out.is_floating_point() and (step.activation or link.way[0].seen is not None):
                link.seen = self.look(out)
        self._set(out, link, func._schema.is_mutable)

    def _inputs(self, step: Step, args: Any, kwargs: Any) -> Any:
        """The arguments of an operator without any tensor that depends on the data."""
        held = {id(tensor): link for tensor, link in zip(step.operands, step.links, strict=True)}

        def kept(value: Any) -> Any:
            keep = not isinstance(value, Tensor) or not value.ndim or self.fixed(value)
            return held.get(id(value), value if keep else None)

        return tree_map(kept, (args, kwargs))

    def spans(self) -> list[Span]:
        """The activations that the pass was made of, in order."""
        for link in self._bent:
            if not link.taken:
                link.core.left = True
        ends = [x for x in self._bent if x.left and not x.scaled and (x.active or x.seen is not None)]
        found: dict[Link, Span] = {}
        while ends:
            end = ends.pop()
            starts = [x for x in end.way[:-1] if x.affine or (x.active and (x.core.left or x.core.begun))]
            start = next((each for each in reversed(starts) if each.seen is not None), starts[-1])
            named = _named(start, end)
            if named:
                found[end] = Span(start, end, *named)
                if not start.affine and start.core not in found:
                    ends.append(start.core)
        return sorted(found.values(), key=lambda span: span.end.place)


def _version(tensor: Tensor) -> int:
    """Grows when a tensor is written to."""
    return 0 if tensor.is_inference() else tensor._version


def _name(func: Any) -> str:
    return func.overloadpacket.__name__.rstrip("_")


def _elementwise(func: Any) -> bool:
    return torch.Tag.pointwise in func.tags or _name(func) in _ELEMENTWISE


def _alike(step: Step) -> bool:
    """Whether all that an operator takes in belongs to one chain."""
    return len({link.way[0] for link in step.links}) == len({t.shape for t in step.operands}) == 1


def _same_memory(func: Any, x: Tensor, out: Tensor) -> bool:
    """Whether an operator gave its input under another name, such as a view of the same shape."""
    same = not func._schema.is_mutable and not out.is_sparse and out.dtype == x.dtype and out.shape == x.shape
    return same and out.data_ptr() == x.data_ptr() and out.stride() == x.stride()


def _keeps_affine(func: Any, args: Any, step: Step) -> bool:
    """Whether what an operator gives is an affine function of what it takes in."""
    if _name(func) in _SUMS:
        return len(set(step.links)) == 1 or all(link.affine for link in step.links)
    divides = _name(func) == "div" and step.operands[0] is not args[0]
    return _name(func) in _SCALINGS and len(step.operands) == 1 and not divides


def _common(ways: Sequence[tuple[Link, ...]]) -> tuple[Link, ...]:
    """How far several ways are the same."""
    return tuple(same[0] for same in takewhile(lambda same: len(set(same)) == 1, zip(*ways, strict=False)))


def _between(start: Link, end: Link) -> list[Link]:
    """The links after ``start`` up to ``end`` that are no affine function of another one, in order."""
    found, waiting = {end}, [end]
    while waiting:
        link = waiting.pop()
        inputs: list[Link] = []
        tree_map(lambda x, to=inputs: to.append(x) if isinstance(x, Link) else None, link.args)
        fresh = [each for each in inputs if each is not start and each not in found]
        found.update(fresh)
        waiting.extend(fresh)
    return sorted((x for x in found if not x.affine and not x.scaled and x is not start.core), key=lambda x: x.place)


def _named(start: Link, end: Link) -> tuple[str, bool] | None:
    """The name of an activation and whether it is a gate; None for plain mathematics."""
    bends = _between(start, end)
    if len(bends) == 1:
        return end.activation
    values = _computed(end, start)
    for name, function in KNOWN:
        if values is not None and _affinely_equal(values, function(_GRID)):
            return name, name in _GATES
    if not any(link.activation for link in bends):
        return None
    names = (link.activation[0] if link.activation else _name(link.func) for link in bends)
    return f"elementwise[{', '.join(names)}]", False


def _computed(end: Link, start: Link) -> Tensor | None:
    """The end of a chain as a function of its start, on the grid; None where parameters of other shapes take part."""
    known = {start: _GRID}

    def value(link: Link) -> Tensor:
        if link not in known:
            args, kwargs = tree_map(lambda x: value(x).clone() if isinstance(x, Link) else x, link.args)
            out = link.func(*args, **kwargs)
            known[link] = out[0] if isinstance(out, tuple) else out
        return known[link]

    try:
        values = value(end)
    except (RuntimeError, TypeError):
        return None
    return values if values.shape == _GRID.shape else None


def _affinely_equal(values: Tensor, known: Tensor) -> bool:
    """Whether ``values`` is ``a * known + b`` with a positive ``a``."""
    a = (values - values.mean()).dot(known - known.mean()) / (known - known.mean()).square().sum()
    rest = values - values.mean() - a * (known - known.mean())
    return bool(a > 0) and bool(rest.abs().max() < 1e-6 * values.abs().max())
