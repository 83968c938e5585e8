"""Find activations that a network computes by arithmetic, such as ``x * torch.sigmoid(x)``, with their start and end.

Element-wise operators that start from one tensor, the *root*, form a chain: each of their outputs is an element-wise
function of the root alone. Parameters and constants may take part. A second tensor that depends on the data ends the
chain (in ``a * sigmoid(b)`` the sigmoid is a gate on another tensor), as does an operator that mixes entries.

Each operator of a chain also runs on a grid of numbers. So each tensor carries its values as a function of each of its
*dominators*, the tensors on all paths from the root to it (:mod:`affscore.grid`).

A chain is one activation. It starts at the last tensor common to all paths before the first non-affine operator and
ends at the first tensor used outside the chain. Affine operators at either end belong to the adjacent layers, so
``relu(x + 3) / 6`` is the relu of ``x + 3``. An activation of the output of another activation is a separate call,
unless both outputs are combined later, as in Mish, ``x * tanh(softplus(x))``.

So a clamp or a power of an activation's output belongs to its chain. Skip connections are the exception: a sum with the
start of the chain is left out unless it is a known function. In ``x + silu(x)`` the call is that of the SiLU, whereas
``x + relu(x)`` is a leaky ReLU.

In the code a non-affine operator of a chain is a *bend*, the values of a tensor on the grid are its *shadow*, the part
between a start and an end is a *span*, and the *base* of a tensor is the one of which it is an affine function. Take
``y = 0.5 * x * (1 + tanh(a * (x + b * x ** 3)))``, where ``x`` is the output of a layer: the root is x, the bends are
the power, the sum with it, ``tanh`` and the product, and the span from x to y equals GELU on the grid.

A chain is named after the known function that it equals on the grid, or else after its operators: ``elementwise[relu,
pow]``, ``sin``. ``x / 2 * (1 + erf(x / sqrt(2)))`` is GELU. Arithmetic without an operator of the registry is not an
activation if it belongs to a statistic or a comparison: if only its sums, means and similar reductions are used
(``x ** 2`` in a variance), possibly together with it (``exp`` in a softmax), or if it is computed from a reduction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from affscore.calls import Operator, tensors_in
from affscore.channels import VIEWS
from affscore.grid import GRID, known_name, on_grid
from affscore.torch_internals import TensorWeakRef, WeakTensorKeyDictionary, storage_key

__all__ = ["Chains", "Node", "Span"]

_MOST = 16  # the number of dominators tracked of each kind, because time and memory grow with its square
_GATES = ("sigmoid", "hardsigmoid")
_OUTSIDE = {"statistic", "else"}  # uses outside the chain
_SUMS = ("add", "sub", "rsub")
_SCALINGS = ("mul", "div", "neg", "addcmul")
_COPIES = ("clone", "_to_copy")
_STATISTICS = {
    "sum", "mean", "norm", "linalg_vector_norm", "amax", "amin", "max", "min", "aminmax", "var", "std", "var_mean",
    "std_mean", "logsumexp", "prod", "any", "all", "cumsum", "argmax", "argmin", "count_nonzero",
}  # fmt: skip


class Bend(NamedTuple):
    """A non-affine operator: its place in the pass, its module, its name, and whether it is registered and a gate."""

    place: int
    module: str
    name: str
    registered: bool = False
    gate: bool = False


class Shadow(NamedTuple):
    """A tensor as a function of a dominator: its values on the grid (None if unknown), and the operators in between."""

    values: Tensor | None = GRID
    bends: tuple[Bend, ...] = ()


@dataclass(eq=False)
class Node:
    """A tensor in a chain, without the tensor itself. Its copies and views share its node.

    ``shadows`` maps each dominator, the root first, to the tensor as a function of it; a root has none. ``bend`` is the
    operator that computed the tensor from its ``inputs``, if that operator is not affine; otherwise ``affine_of`` is
    the node of the last non-affine operator before it, if any. ``numeric`` is False for booleans and for masks cast to
    numbers. ``records`` maps shapes to pooled records. ``uses`` holds the uses of the tensor: the ``chain``, an
    activation of the ``registry``, a ``statistic``, or anything ``else``. ``statistic_of`` holds the nodes from which a
    root was reduced.
    """

    shadows: dict[Node, Shadow] = field(default_factory=dict)
    inputs: tuple[Node, ...] = ()
    bend: Bend | None = None
    affine_of: Node | None = None
    numeric: bool = True
    shape: tuple[int, ...] = ()
    records: dict[tuple[int, ...], Any] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    statistic_of: tuple[Node, ...] = ()
    tensor: TensorWeakRef | None = None  # of a root

    @property
    def root(self) -> Node:
        """The first node of the chain."""
        return next(iter(self.shadows), self)

    @property
    def base(self) -> Node:
        """The node of which this node is an affine function, or this node itself."""
        return self.affine_of or self

    @property
    def affine(self) -> bool:
        """Whether the tensor is an affine function of the root."""
        return not self.shadow(self.root).bends

    @property
    def active(self) -> bool:
        """Whether the tensor is the output of a registered activation, or a function of such an output."""
        return any(bend.registered for bend in self.shadow(self.root).bends)

    @property
    def started(self) -> bool:
        """Whether an activation that ends here has a possible start, which is a dominator that was recorded."""
        return any(node.records for node in self.shadows)

    def shadow(self, start: Node) -> Shadow:
        """This tensor as a function of ``start``, which is itself or a dominator."""
        return Shadow() if start is self else self.shadows[start]


class Span(NamedTuple):
    """A non-affine part of a chain: its ends, last operator and name, whether it is a gate and a known function."""

    start: Node
    end: Node
    bend: Bend
    function: str
    gate: bool
    known: bool


class Step(NamedTuple):
    """An operator before it runs: its registry entry, the operands that depend on the data, and their nodes."""

    operator: Operator
    activation: tuple[str, bool] | None
    operands: list[Tensor]
    nodes: list[Node]


class Chains:
    """The chains of one forward pass.

    ``constant`` returns whether a tensor is independent of the data. ``record`` returns the pooled record of a tensor;
    it is called before the operator, which may overwrite its input.
    """

    def __init__(self, constant: Callable[[Tensor], bool], record: Callable[[Tensor], Any]) -> None:
        self.constant, self.record = constant, record
        self.nodes = WeakTensorKeyDictionary()
        self._written: Counter[int] = Counter()  # number of writes to each storage
        self._nonaffine: list[Node] = []  # the nodes that are not affine in their roots, in order

    def _node(self, tensor: Tensor) -> Node:
        """The node of a tensor; a new root if it has no node or was overwritten."""
        node, version = self.nodes.get(tensor, (None, 0))
        if node is None or version != self._written[storage_key(tensor)]:
            node = self._set(tensor, Node(tensor=TensorWeakRef(tensor)))
        return node

    def _set(self, tensor: Tensor, node: Node) -> Node:
        self.nodes[tensor] = node, self._written[storage_key(tensor)]
        return node

    def _record(self, tensor: Tensor) -> None:
        """Record a tensor, and its root unless the root was overwritten."""
        node = self._node(tensor)
        origin = node.root.tensor() if node.root.tensor else None
        for each, value in ((node, tensor), (node.root, origin)):
            if value is None or value.shape in each.records or not value.is_floating_point():
                continue
            if self._node(value) is each:
                each.records[value.shape] = self.record(value)

    def before(self, operator: Operator, activation: tuple[str, bool] | None) -> Step:
        """Record the operands of an operator if an activation may start at them."""
        out = operator.kwargs.get("out")
        operands = [t for t in operator.inputs if t is not out and t.ndim and not self.constant(t)]
        if activation:
            operands = [operator.args[0]]
        step = Step(operator, activation, operands, list(map(self._node, operands)))
        if activation or (operator.elementwise and _alike(step) and not _keeps_affine(step)):
            for tensor in operands:
                self._record(tensor)
        return step

    def after(self, step: Step, out: Any, module: str, place: int) -> None:
        """Extend the chain of the operands, or record that they are used outside it."""
        out = out[0] if step.activation and isinstance(out, tuple) else out
        name, nodes = step.operator.name, list(dict.fromkeys(step.nodes))
        if step.operator.writes:
            self._written.update(map(storage_key, tensors_in([out])))
        if len(nodes) == 1 and isinstance(out, Tensor) and _same(step.operator, step.operands[0], out):
            self._set(out, nodes[0])
            return
        goes_on = (step.activation or step.operator.elementwise) and _alike(step)
        real = all(t.is_floating_point() or t.dtype == torch.bool for t in step.operands)
        if not (goes_on and real and isinstance(out, Tensor) and out.shape == step.operands[0].shape):
            # A tensor combined only with its own statistic is a step of a normalisation, such as the exp of a softmax.
            measured = {each for node in nodes for each in node.root.statistic_of}
            for node in nodes:
                own = any(_equal(node.base, each) for each in measured)
                node.uses.add("statistic" if name in _STATISTICS or own else "else")
            for each in tensors_in([out]) if name in _STATISTICS else ():
                self._set(each, Node(tensor=TensorWeakRef(each), statistic_of=tuple(x.base for x in nodes)))
            return
        keeps = _keeps_affine(step)
        function, gate = step.activation or (name, False)
        bend = Bend(place, module, function, step.activation is not None, gate)
        for node in nodes:
            node.uses.add("registry" if step.activation else "chain")
        node = Node(
            shadows=_shadows(step, keeps, bend),
            inputs=tuple(nodes),
            bend=None if keeps else bend,
            affine_of=nodes[0].base if keeps and not nodes[0].affine else None,
            numeric=out.is_floating_point() and name != "_to_copy",
            shape=out.shape,
        )
        if not node.affine:
            self._nonaffine.append(node)
            if node.bend and node.numeric and (step.activation or node.started):
                node.records[out.shape] = self.record(out)
        self._set(out, node)

    def escape(self, tensors: Iterable[Tensor]) -> None:
        """Record that these tensors are used outside their chains."""
        for tensor in tensors:
            self._node(tensor).uses.add("else")

    def spans(self) -> Iterable[Span]:
        """The activations of the pass."""
        for node in reversed(self._nonaffine):
            if not node.uses:
                node.uses.add("else")
            # A chain does not end in a comparison, but may end in the operands of a comparison.
            for each in node.inputs if node.uses & _OUTSIDE and not node.numeric else ():
                each.uses.add("statistic")
            node.base.uses |= node.uses - {"chain"}
        bent = [x for x in self._nonaffine if x.bend and x.numeric and x.uses & _OUTSIDE]
        # Arithmetic without an operator of the registry counts if it is used beyond statistics and comparisons.
        plain = {x for x in bent if x.started and "else" in x.uses and not x.active and not x.root.statistic_of}
        ends = [x for x in bent if x.active or x in plain]
        spans: dict[Node, Span] = {}
        while ends:
            end = ends.pop()
            starts = [x for x in reversed(end.shadows) if x.affine or (x.active and x.base.uses - {"chain"})]
            starts = [x for x in starts if end.shape in x.records] or [x for x in starts if x.records] or starts[:1]
            # 1 / (1 + exp(-x)) is a known function of x, but not of -x.
            parts = [_span(start, end) for start in (starts if starts[0].affine else starts[:1])]
            span = next((each for each in parts if each.known), parts[0])
            if inside := _beside(span):
                ends += [node for node in inside if node not in spans]
                continue
            registered = any(bend.registered for bend in end.shadows[span.start].bends)
            if span.function and ("else" in end.uses or registered):
                spans[end] = span
            if not span.start.affine and span.start.base not in spans:
                ends.append(span.start.base)
        return spans.values()


def _equal(one: Node, other: Node) -> bool:
    """Whether two tensors are the same function of one root, as both exponentials in ``x.exp() / x.exp().sum(1)``."""
    if one is other:
        return True
    if one.root is not other.root or not one.shadows:
        return False
    values, others = (node.shadow(node.root).values for node in (one, other))
    return values is not None and others is not None and torch.equal(values, others)


def _alike(step: Step) -> bool:
    """Whether all operands belong to one chain and have one shape."""
    return len({node.root for node in step.nodes}) == len({t.shape for t in step.operands}) == 1


def _same(operator: Operator, x: Tensor, out: Tensor) -> bool:
    """Whether an operator returned its input, as itself, a copy, or a view that keeps the order of the entries."""
    if operator.writes or not (x.is_floating_point() and out.is_floating_point()):
        return False
    if operator.name in (*_COPIES, *VIEWS):
        return True
    return out.shape == x.shape and out.stride() == x.stride() and out.data_ptr() == x.data_ptr() != 0


def _keeps_affine(step: Step) -> bool:
    """Whether the output of an operator is an affine function of its operands."""
    name = step.operator.name
    if name in _SUMS:
        return len(set(step.nodes)) == 1 or all(node.affine for node in step.nodes)
    if name in ("where", "masked_fill"):  # affine if the mask is constant
        return len(step.operands) == 1 and step.operands[0] is not step.operator.args[name == "masked_fill"]
    divides = name == "div" and step.operands[0] is not step.operator.args[0]
    return name in _SCALINGS and len(step.operands) == 1 and not divides


def _shadows(step: Step, keeps: bool, bend: Bend) -> dict[Node, Shadow]:
    """The output of an operator as a function of its dominators at which an activation may start, the root first."""
    first, *others = step.nodes
    common = [x for x in (*first.shadows, first) if all(x is other or x in other.shadows for other in others)]
    affine, active = [x for x in common if x.affine], [x for x in common if x.active]
    # The equal entries of an affine or registered operator may be the initial values of slopes that are learned.
    run, shadows = on_grid(step.operator, step.operands, filled=not (keeps or step.activation)), {}
    for start in (affine[0], *affine[1:][-_MOST:], *active[-_MOST:]):
        operands = [node.shadow(start) for node in step.nodes]
        bends = set() if keeps else {bend}
        values = run([operand.values for operand in operands])
        shadows[start] = Shadow(values, tuple(sorted(bends.union(*(operand.bends for operand in operands)))))
    return shadows


def _beside(span: Span) -> list[Node]:
    """The activations added to the start of the span, if the sum is not a known function."""
    parts = span.end.inputs if span.bend.name in _SUMS and span.function.startswith("elementwise[") else ()
    inside = [node.base for node in parts if not node.affine and node.base is not span.start.base]
    return inside if len(inside) < len(parts) and all(node.active for node in inside) else []


def _span(start: Node, end: Node) -> Span:
    """The part of a chain between two nodes; its function is an empty string if it turns out to be affine."""
    values, bends = end.shadows[start]
    last, registered = bends[-1], any(bend.registered for bend in bends)
    if len(bends) == 1 and last.registered:
        return Span(start, end, last, last.name, last.gate, True)
    name = None if values is None else known_name(values)
    if name is not None:
        return Span(start, end, last, name, name in _GATES, bool(name))
    name = f"elementwise[{', '.join(bend.name for bend in bends)}]" if len(bends) > 1 else last.name
    return Span(start, end, last, name, False, registered)
