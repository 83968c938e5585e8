"""Activations that a network spells out in arithmetic, such as ``x * torch.sigmoid(x)``: where they begin and end.

Element-wise operators that start from one tensor, the *root*, form a chain: each of their outputs is a function of the
root alone, entry by entry. Parameters and constants may take part. A second tensor that depends on the data ends the
chain (in ``a * sigmoid(b)`` the sigmoid is a gate on another tensor), as does an operator that mixes entries.

A chain is one activation. It starts at the last tensor common to all paths before the first non-affine operator and
ends at the first tensor used outside the chain. Affine operators at either end belong to the layers around it, so
``relu(x + 3) / 6`` is the relu of ``x + 3``. An activation of another one's output is a call of its own, unless both
outputs are combined later, as in Mish, ``x * tanh(softplus(x))``.

So a clamp or a power of an activation's output belongs to its chain. A skip connection is the exception: a sum with the
start of the chain is left out, unless it is a known function: in ``x + relu(x)`` the call is that of the ReLU.

A chain is named after the known function that it equals on a grid, or else after its operators: ``elementwise[relu,
pow]``, ``sin``. ``x / 2 * (1 + erf(x / sqrt(2)))`` is GELU. Arithmetic without an operator of the registry is no
activation where it belongs to a statistic or a comparison: only its sums, means and the like are used (``x ** 2`` in a
variance), perhaps beside it (``exp`` in a softmax), or it is computed from one of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from affscore.calls import Operator, tensors_in
from affscore.channels import VIEWS
from affscore.torch_internals import TensorWeakRef, WeakTensorKeyDictionary, storage_key, tree_leaves, tree_map

__all__ = ["KNOWN", "Chains", "Link", "Span"]

#: The functions of one variable, with their names, that a chain is compared with.
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
_NEAR = slice(901)
_GRID = torch.cat([torch.linspace(-9, 9, 901), torch.tensor([-200.0, -40, -15, 15, 40, 200])]).to(torch.float64)

_SUMS = ("add", "sub", "rsub")
_SCALINGS = ("mul", "div", "neg", "addcmul")
_COPIES = ("clone", "_to_copy")
_STATISTICS = {
    "sum", "mean", "norm", "linalg_vector_norm", "amax", "amin", "max", "min", "aminmax", "var", "std", "var_mean",
    "std_mean", "logsumexp", "prod", "any", "all", "cumsum", "argmax", "argmin", "count_nonzero",
}  # fmt: skip


@dataclass(eq=False)
class Link:
    """The record of a tensor in a chain, which does not keep the tensor itself.

    ``func`` and ``args`` are the operator and its arguments, with links in place of tensors; a root has none. ``name``
    is the registry's, or else the operator's. ``dominator`` is the last link before this one on all paths from the
    root. ``affine_of`` is the link that this one is an affine function of, if it is not affine in the root. ``seen``
    maps shapes to what was kept of the tensor: its views share its link.
    """

    func: Any = None
    args: Any = None
    name: str = ""
    dominator: Link | None = None
    affine_of: Link | None = None
    affine: bool = True  # as a function of the root
    real: bool = True  # not a truth value, nor 1 or 0 in place of one
    activation: tuple[str, bool] | None = None
    active: bool = False  # an activation of the registry, or a function of one
    module: str = ""
    place: int = -1
    seen: dict[tuple[int, ...], Any] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    tensor: TensorWeakRef | None = None  # of a root
    taken: bool = False  # an operator uses it
    escapes: bool = False  # it is used outside the chain
    used: bool = False  # outside the chain, by more than a statistic
    of: tuple[Link, ...] = ()  # the links whose statistic it is, if it is one
    activated: bool = False  # an activation of the registry uses it

    def __post_init__(self) -> None:
        self.depth: int = self.dominator.depth + 1 if self.dominator else 0
        # None for a root: a link that referred to itself would never be freed.
        self._root: Link | None = self.dominator.root if self.dominator else None

    @property
    def root(self) -> Link:
        """The first link of the chain."""
        return self._root or self

    @property
    def base(self) -> Link:
        """The link that this one is an affine function of, or this one."""
        return self.affine_of or self

    @property
    def dominators(self) -> Iterator[Link]:
        """The links on all paths from the root, last first."""
        link = self.dominator
        while link:
            yield link
            link = link.dominator

    @property
    def started(self) -> bool:
        """Whether an activation that ends here can start: at a tensor that was looked at."""
        return any(link.seen for link in self.dominators)


class Span(NamedTuple):
    """A non-affine part of a chain: its start and end, its name, whether it is a gate, whether its name is known."""

    start: Link
    end: Link
    function: str
    gate: bool
    known: bool


class Step(NamedTuple):
    """An operator before it runs: its registry entry, the operands that depend on the data, and their links."""

    operator: Operator
    activation: tuple[str, bool] | None
    operands: list[Tensor]
    links: list[Link]


class Chains:
    """The chains of one forward pass.

    ``constant`` tells whether a tensor is independent of the data. ``look`` returns what a call needs of a tensor; it
    is called before the operator, which may overwrite its input.
    """

    def __init__(self, constant: Callable[[Tensor], bool], look: Callable[[Tensor], Any]) -> None:
        self.constant, self.look = constant, look
        self._links = WeakTensorKeyDictionary()
        self._written: Counter[int] = Counter()  # number of writes to each storage
        self._nonaffine: list[Link] = []  # the links that are not affine in their roots, in order

    def _version(self, tensor: Tensor) -> int:
        return self._written[storage_key(tensor)]

    def _link(self, tensor: Tensor) -> Link:
        """The link of a tensor; a new root if it has no link or was overwritten since."""
        link, version = self._links.get(tensor, (None, 0))
        if link is None or version != self._version(tensor):
            link = self._set(tensor, Link(tensor=TensorWeakRef(tensor)))
        return link

    def _set(self, tensor: Tensor, link: Link) -> Link:
        self._links[tensor] = link, self._version(tensor)
        return link

    def _see(self, tensor: Tensor) -> None:
        """Look at a tensor, and at its root if that was not overwritten."""
        link = self._link(tensor)
        origin = link.root.tensor() if link.root.tensor else None
        for each, value in ((link, tensor), (link.root, origin)):
            if value is None or value.shape in each.seen or not value.is_floating_point():
                continue
            if self._link(value) is each:
                each.seen[value.shape] = self.look(value)

    def before(self, operator: Operator, activation: tuple[str, bool] | None) -> Step:
        """Look at the operands of an operator if an activation may start at them."""
        out = operator.kwargs.get("out")
        operands = [t for t in operator.inputs if t is not out and t.ndim and not self.constant(t)]
        if activation:
            operands = [operator.args[0]]
        step = Step(operator, activation, operands, list(map(self._link, operands)))
        if activation or (operator.elementwise and _alike(step) and not _keeps_affine(step)):
            for tensor in operands:
                self._see(tensor)
        return step

    def after(self, step: Step, out: Any, module: str, place: int) -> None:
        """Link the output of an operator to its operands, or record that these are used outside their chain."""
        out = out[0] if step.activation and isinstance(out, tuple) else out
        if step.operator.writes:
            self._written.update(map(storage_key, tensors_in([out])))
        links = list(dict.fromkeys(step.links))
        if len(links) == 1 and isinstance(out, Tensor) and _same(step.operator, step.operands[0], out):
            self._set(out, links[0])
            return
        for link in links:
            link.taken = True
        goes_on = (step.activation or step.operator.elementwise) and _alike(step)
        real = all(t.is_floating_point() or t.dtype == torch.bool for t in step.operands)
        if not (goes_on and real and isinstance(out, Tensor) and out.shape == step.operands[0].shape):
            statistic = step.operator.name in _STATISTICS
            # What is only combined with its own statistic is a step of a normalisation, such as the exp of a softmax.
            measured = {each for link in links for each in link.root.of}
            for link in links:
                self.escape([link], used=not statistic and link.base not in measured)
            for each in tensors_in([out]) if statistic else ():
                self._set(each, Link(tensor=TensorWeakRef(each), of=tuple(x.base for x in links)))
            return
        if step.activation:
            links[0].base.activated = True
        keeps = _keeps_affine(step)
        link = Link(
            step.operator.func.overloadpacket,
            _inputs(step, keeps),
            step.activation[0] if step.activation else step.operator.name,
            dominator=reduce(_last_common, links),
            affine_of=links[0].base if keeps and not links[0].affine else None,
            affine=keeps and all(link.affine for link in links),
            real=out.is_floating_point() and step.operator.name != "_to_copy",
            activation=step.activation,
            active=step.activation is not None or any(link.active for link in links),
            module=module,
            place=place,
            shape=out.shape,
        )
        if not link.affine:
            self._nonaffine.append(link)
            if not link.affine_of and link.real and (step.activation or link.started):
                link.seen[out.shape] = self.look(out)
        self._set(out, link)

    def escape(self, what: Iterable[Link | Tensor], used: bool = True) -> None:
        """Record that these are used outside their chains."""
        for each in what:
            link = each if isinstance(each, Link) else self._link(each)
            link.base.escapes, link.base.used = True, link.base.used or used

    def spans(self) -> Iterable[Span]:
        """The activations of the pass."""
        for link in reversed(self._nonaffine):
            if not link.taken:
                self.escape([link])
            if link.escapes and not link.real:  # a chain does not end in a comparison, but may end in its operands
                self.escape(_inputs_of(link), used=False)
        plain = {x for x in self._nonaffine if x.started and x.used and not x.active and not x.root.of}
        ends = [x for x in self._nonaffine if x.escapes and x.real and (x.active or x in plain)]
        spans: dict[Link, Span] = {}
        while ends:
            end = ends.pop()
            starts = [x for x in end.dominators if x.affine or (x.active and (x.base.escapes or x.base.activated))]
            seen = [x for x in starts if end.shape in x.seen] or [x for x in starts if x.seen] or starts[:1]
            # 1 / (1 + exp(-x)) is a known function of x, but not of -x.
            spans_of = [Span(start, end, *_named(start, end)) for start in (seen if seen[0].affine else seen[:1])]
            span = next((each for each in spans_of if each.known), spans_of[0])
            if inside := _beside(span):
                ends += [link for link in inside if link not in spans]
                continue
            # Arithmetic without an operator of the registry counts if more than a statistic or a comparison uses it.
            if span.function and (end.used or any(link.activation for link in _between(span.start, end))):
                spans[end] = span
            if not span.start.affine and span.start.base not in spans:
                ends.append(span.start.base)
        return spans.values()


def _alike(step: Step) -> bool:
    """Whether all operands belong to one chain and have one shape."""
    return len({link.root for link in step.links}) == len({t.shape for t in step.operands}) == 1


def _same(operator: Operator, x: Tensor, out: Tensor) -> bool:
    """Whether an operator returned its input: itself, a copy, or a view that keeps the order of the entries."""
    if operator.writes or not (x.is_floating_point() and out.is_floating_point()):
        return False
    if operator.name in (*_COPIES, *VIEWS):
        return True
    return out.shape == x.shape and out.stride() == x.stride() and out.data_ptr() == x.data_ptr() != 0


def _keeps_affine(step: Step) -> bool:
    """Whether the output of an operator is an affine function of its operands."""
    name = step.operator.name
    if name in _SUMS:
        return len(set(step.links)) == 1 or all(link.affine for link in step.links)
    if name in ("where", "masked_fill"):  # affine if the mask is constant
        return len(step.operands) == 1 and step.operands[0] is not step.operator.args[name == "masked_fill"]
    divides = name == "div" and step.operands[0] is not step.operator.args[0]
    return name in _SCALINGS and len(step.operands) == 1 and not divides


def _inputs(step: Step, keeps: bool) -> Any:
    """The arguments of an operator with links in place of its operands. Of other tensors only single numbers are kept.

    In a non-affine operator outside the registry a tensor filled with one number is replaced by that number.
    """
    links = {id(tensor): link for tensor, link in zip(step.operands, step.links, strict=True)}

    def kept(value: Any) -> Any:
        if id(value) in links or not isinstance(value, Tensor):
            return links.get(id(value), value)
        same = not keeps and not step.activation and value.numel() and bool((value == value.flatten()[0]).all())
        number = value if value.numel() == 1 else value.flatten()[0] if same else None
        return number if number is None or not number.is_floating_point() else number.double()

    kwargs = {name: value for name, value in step.operator.kwargs.items() if name != "out"}
    return tree_map(kept, (step.operator.args, kwargs))


def _last_common(a: Link, b: Link) -> Link:
    """The last link on all paths from the root to both links of one chain."""
    while a is not b:
        deeper = a if a.depth > b.depth else b
        other = b if deeper is a else a
        assert deeper.dominator
        a, b = deeper.dominator, other
    return a


def _inputs_of(link: Link) -> list[Link]:
    return [each for each in tree_leaves(link.args) if isinstance(each, Link)]


def _between(start: Link, end: Link) -> list[Link]:
    """The non-affine operators after ``start`` up to ``end``, in order."""
    visited, waiting = {end}, [end]
    while waiting:
        link = waiting.pop()
        fresh = [each for each in _inputs_of(link) if each is not start and each not in visited]
        visited.update(fresh)
        waiting.extend(fresh)
    return sorted((x for x in visited if not x.affine and not x.affine_of), key=lambda x: x.place)


def _beside(span: Span) -> list[Link]:
    """The activations in a sum with the start of the span, if that sum is not a known function."""
    parts = _inputs_of(span.end) if span.end.name in _SUMS and span.function.startswith("elementwise[") else []
    inside = [link.base for link in parts if not link.affine and link.base is not span.start.base]
    return inside if len(inside) < len(parts) and all(link.active for link in inside) else []


def _named(start: Link, end: Link) -> tuple[str, bool, bool]:
    """The name (empty if the part is affine after all), whether it is a gate, and whether the name is known."""
    bends = _between(start, end)
    if len(bends) == 1 and end.activation:
        return *end.activation, True
    values = _computed(end, start)
    if values is not None:
        if _affinely_equal(values, _GRID):
            return "", False, False
        for name, function in (*KNOWN, *_leaky(values)):
            if _affinely_equal(values, function(_GRID)):
                return name, name in _GATES, True
    name = f"elementwise[{', '.join(link.name for link in bends)}]" if len(bends) > 1 else end.name
    return name, False, any(link.activation for link in bends)


def _leaky(values: Tensor) -> list[tuple[str, Callable[[Tensor], Tensor]]]:
    """The leaky ReLU that has the slopes of these values, below 0 and above."""
    low, middle, high = values[0], values[450], values[900]  # at -9, 0 and 9
    slope = ((middle - low) / (high - middle)).item()
    return [("leaky_relu", lambda x: F.leaky_relu(x, slope))] if 0 < slope < 1 else []


def _computed(end: Link, start: Link) -> Tensor | None:
    """The end of a chain as a function of its start, on the grid; None if tensors of other shapes take part."""
    try:
        values = _value(end, {start: _GRID})
    except (RuntimeError, TypeError):
        return None
    return values if values.shape == _GRID.shape else None


def _value(link: Link, known: dict[Link, Tensor]) -> Tensor:
    if link not in known:
        args, kwargs = tree_map(lambda x: _value(x, known).clone() if isinstance(x, Link) else x, link.args)
        out = link.func(*args, **kwargs)
        known[link] = out[0] if isinstance(out, tuple) else out
    return known[link]


def _affinely_equal(values: Tensor, known: Tensor) -> bool:
    """Whether ``values`` is ``a * known + b`` with a positive ``a``."""
    a = (values - values.mean()).dot(known - known.mean()) / (known - known.mean()).square().sum()
    rest = values - values.mean() - a * (known - known.mean())
    # Far from 0 the values may be so large that they would hide a difference near it.
    parts = ((rest[part].abs().max(), values[part].abs().max()) for part in (_NEAR, slice(None)))
    return bool(a > 0) and bool(all(difference < 1e-6 * size for difference, size in parts))
