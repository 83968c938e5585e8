"""Record every activation call of a network without changing its output.

The chapter on the first signature explains the idea. A dispatch mode intercepts each operator just before its kernel
runs, below modules, functionals, tensor methods and autograd. The mode pools an activation's input before the call,
which may overwrite the input, runs the call unchanged, and pools the output. It keeps only pooled tensors.
Tracing at a higher level fails: hooks on modules miss functional calls, and torch-function modes switch off the
fused attention kernels and so change the outputs of vision transformers.

:mod:`affscore.calls` defines which operators count as activations.

Some calls are recorded but not scored, and are listed as excluded with the reason: calls whose input depends only on
parameters and buffers (Swin v2's tables of position biases), calls on tensors whose first axis is not the batch (time
steps first), and fused kernels whose name reveals an activation (LSTMs). If the first axis holds the positions of all
samples (flattened tokens, a batch folded into patches), the trace unfolds it.

Other calls are undecided, for one of these reasons: their channels cannot be distinguished from positions
(:mod:`affscore.channels`) and ``channel_axis`` does not name the axis; their padding cannot be distinguished from
tokens; their rows are a selection of the samples or independent of them, even if there are as many rows as samples
(experts, edges of a graph, noise); ``torch.vmap`` runs them; or they are chains of arithmetic whose start was
overwritten (:mod:`affscore.chains`).

Activations inside another library's fused kernels go undetected unless the kernel's name gives them away, and so do
calls on other threads and in other processes. During the trace, a function compiled with ``torch.compile`` runs
uncompiled, and ``nn.TransformerEncoderLayer`` runs without its fused kernel, so their outputs may differ in the last
bits.
Compiled, scripted and exported modules are refused.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.parameter import is_lazy

from affscore.arguments import check_choice
from affscore.calls import (
    ACTIVATIONS,
    FUSED,
    Call,
    Constant,
    Excluded,
    Observation,
    Operator,
    Trace,
    Undecided,
    name_pattern,
    tensors_in,
)
from affscore.chains import Chains, Span
from affscore.channels import Channels
from affscore.fixed import Fixed, all_dense
from affscore.pooling import Pooled, pooled
from affscore.settings import POOLS
from affscore.torch_internals import (
    TorchDispatchMode,
    WeakTensorKeyDictionary,
    compiled,
    in_backward,
    in_parts,
    made_of_parts,
    mapped,
    storage_key,
    tree_leaves,
)

__all__ = ["CHANGED", "check_traceable", "trace"]

#: The message of the error that is raised if a network changes during the pass.
CHANGED = (
    "the network's weights or training modes changed while it ran. If it prepares its weights in its first pass, as "
    "sharded networks do, run it on one batch in evaluation mode first. A network that learns while it runs has no "
    "signature."
)
aten = torch.ops.aten


class _Record(NamedTuple):
    """The record of a tensor at which an activation may start or end.

    ``pooled`` maps each possible axis of the channels to the pooled tensor, or to the reason why it cannot be pooled.
    ``pooled`` is None if no choice of axis makes the tensor scorable; then ``reason`` says why, and ``undecided`` says
    whether the call is undecided.
    """

    shape: tuple[int, ...]
    axis: int | None
    pooled: Mapping[int, Pooled | str] | None
    reason: str
    undecided: bool = False


class _Watcher(TorchDispatchMode):
    """Tracks every operator; after the pass :meth:`result` names the calls."""

    def __init__(
        self, path: list[str], fixed: Fixed, batch: int, kind: str, sparsity: bool, axes: Mapping[str, int],
        chosen: str | None, mask: Tensor | None, unmasked: Iterable[Tensor],
    ) -> None:  # fmt: skip
        super().__init__()
        self.path, self.fixed, self.batch = path, fixed, batch
        self.kind, self.sparsity, self.axes = kind, sparsity, axes
        self.pattern, self.chosen = chosen, name_pattern(chosen) if chosen else None
        self.inside = re.split(r"[*?:]", chosen or "")[0]  # the paths of the chosen calls' modules begin with this
        self.mask, self.unmasked = mask, WeakTensorKeyDictionary(dict.fromkeys(unmasked, True))
        self.tokens = int(mask.sum()) if mask is not None and sparsity else 0
        self.channels = Channels(fixed, None if mask is None else mask.shape[1])
        self.chains = Chains(fixed.constant, self.record)
        self.excluded: list[tuple[int, str, str, str, type[Excluded]]] = []  # place, module, function, why excluded
        self.place = self.mapped = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, packet, known = kwargs or {}, func.overloadpacket, None
        if in_backward():
            return func(*args, **kwargs)
        operator = Operator(func, args, kwargs)
        dense = all_dense(operator.inputs)
        whole = not dense or packet in ACTIVATIONS or packet is aten.linear  # do not split such an operator
        if not whole and made_of_parts(func):
            with self:
                return in_parts(func, args, kwargs)
        self.place += 1
        if activation := ACTIVATIONS.get(packet):
            name = activation.name if isinstance(activation.name, str) else activation.name(operator)
            known = name, activation.gate
            what = f"its input of shape {tuple(args[0].shape)}" if dense else "its input"
            if self.mapped:
                self.exclude(name, "torch.vmap runs it and hides the axes of its tensors", Undecided)
            elif not dense or not args[0].is_floating_point():
                self.exclude(name, f"{what} is nested or sparse, or does not hold real numbers")
                known = None
            elif self.fixed(args[0]):
                self.exclude(name, f"{what} comes from parameters and buffers alone, not from the batch", Constant)
        out = self.run(operator, known) if dense else func(*args, **kwargs)
        if packet not in ACTIVATIONS and FUSED.fullmatch(packet.__name__):
            self.exclude(packet.__name__, "a fused kernel hides its activations")
        return out

    def run(self, operator: Operator, activation: tuple[str, bool] | None) -> Any:
        """Run an operator and track its outputs."""
        fixed = self.fixed.of(operator)
        if operator.writes and any(storage_key(x) in self.fixed.weights for x in operator.written):
            raise ValueError(CHANGED)
        step = None if fixed or self.mapped else self.chains.before(operator, activation)
        out = operator.func(*operator.args, **operator.kwargs)
        self.fixed.follow(operator, out, fixed)
        if self.unmasked and any(each in self.unmasked for each in operator.inputs):
            self.unmasked.update(dict.fromkeys(tensors_in([out]), True))
        if step is not None and all_dense([out]):
            self.channels.follow(operator, out)
            self.chains.after(step, out, self.path[-1], self.place)
        elif self.mapped:
            self.channels.forget(out)
        return out

    def exclude(self, function: str, reason: str, kind: type[Excluded] = Excluded) -> None:
        self.excluded.append((self.place, self.path[-1], function, reason, kind))

    def record(self, x: Tensor) -> _Record:
        """Pool a tensor at which an activation may start or end."""
        shape, mask = tuple(x.shape), None if x in self.unmasked else self.mask
        if not self.path[-1].startswith(self.inside):
            return _Record(shape, None, None, "it starts in a module that the pattern in calls excludes", True)
        x = self.channels.samples_first(x, self.batch)
        rows, what, reason = self.channels.first(x), f"its input of shape {shape}", ""
        if x.shape[:1] != (self.batch,) or (rows and not any(label[0] in "N?#" for label in rows)):
            reason = f"{what} has no batch axis of length {self.batch} in front"
        elif not x.numel():
            reason = f"{what} is empty"
        elif rows - {"N"}:
            reason = f"the rows of {what} may not be the samples, although there are as many"
            return _Record(tuple(x.shape), None, None, reason, True)
        if reason:
            return _Record(tuple(x.shape), None, None, reason)
        axis, reason = (-1, "") if self.kind == "trailing" else self.channels.find(x)
        # Calls are named at the end, so the call that ``channel_axis`` refers to is not known yet.
        axes = range(1, x.ndim) if self.axes and axis != -1 else [] if axis is None else [axis]
        pools = {each: pooled(x, self.kind, each, mask, self.sparsity) for each in axes}
        return _Record(tuple(x.shape), axis, pools, reason)

    def result(self, found: Trace) -> None:
        """Name the calls in execution order and fill ``found``."""
        spans = {span.bend.place: span for span in self.chains.spans()}
        calls = [(place, span.bend.module, span.function, "", Excluded) for place, span in spans.items()]
        seen, names = Counter[tuple[str, str]](), set()
        for place, module, function, reason, kind in sorted([*calls, *self.excluded], key=lambda one: one[:3]):
            ordinal = seen[module, function]
            seen[module, function] += 1
            names.add(name := f"{module}:{function}[{ordinal}]")
            if self.chosen and not self.chosen.match(name):
                continue
            item = kind(name, reason) if reason else self.observed(name, ordinal, spans[place])
            if isinstance(item, Observation):
                found.observations.append(item)
            else:
                found.excluded.append(item)
        if wrong := sorted(self.axes.keys() - names):
            raise ValueError(f"channel_axis names {wrong[0]!r}, which is not a call of this network.")
        if self.chosen and not (found.observations or found.excluded):
            examples = f"Its calls include {', '.join(sorted(names)[:3])}." if names else "It made none."
            raise ValueError(f"calls is {self.pattern!r}, which matches no call of this network. {examples}")

    def observed(self, name: str, ordinal: int, span: Span) -> Observation | Excluded:
        """The observation of a call, or an exclusion with the reason."""
        end = span.end.records.get(span.end.shape)
        # A view inside the chain may have changed the shape, but not which entries belong to which sample and channel.
        start = span.start.records.get(span.end.shape) or next(iter(span.start.records.values()), None)
        if start is None or end is None:
            return Undecided(name, "its input was overwritten or freed before the activation was recognised")
        if start.pooled is None or end.pooled is None:
            return (Undecided if start.undecided or end.undecided else Excluded)(name, start.reason or end.reason)
        axis = self.axes.get(name, start.axis)
        if axis is None:
            return Undecided(name, start.reason)
        if axis not in start.pooled:
            axes = f"1 to {len(start.shape) - 1}"
            raise ValueError(f"channel_axis of {name} is {axis!r}; it should be one of the axes {axes} of its input.")
        before, after = start.pooled[axis], end.pooled.get(axis if start.shape == end.shape else end.axis or 0)
        if after is None:
            return Undecided(name, end.reason or "the axis of the channels in its output is unknown; pass channel_axis")
        if isinstance(before, str) or isinstance(after, str):
            return Undecided(name, before if isinstance(before, str) else str(after))
        if before.values.shape != after.values.shape:
            return Undecided(name, "a reshape inside it moved its channels")
        call = Call(name, span.bend.module, span.function, ordinal, span.gate, start.shape[1:], axis, before.masked)
        zeros = None if before.zeros is None else (before.zeros, after.zeros)
        weight = self.tokens if before.masked else self.batch
        limits = before.rounding, after.rounding
        return Observation(call, before.values, after.values, limits, zeros, weight, before.entries)


def check_traceable(model: nn.Module) -> None:
    """Raise TypeError or ValueError if the activations of ``model`` cannot be traced."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; it should be a torch.nn.Module.")
    for path, module in model.named_modules():
        kinds = {
            "scripted": isinstance(module, torch.jit.ScriptModule),
            "compiled": compiled(module),
            "exported": "eval" in vars(module),  # torch.export replaces this method
            "spread over devices": isinstance(module, nn.DataParallel) and len(module.device_ids) > 1,
        }
        for kind in (name for name, found in kinds.items() if found):
            where = f"its part {path!r}" if path else "it"
            raise ValueError(
                f"model cannot be traced because {where} is {kind} and hides its operations; pass the original network."
            )
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise ValueError(
                f"model has parameters without a shape, such as {name!r}, which its first pass makes; run it on one "
                "batch first."
            )


@contextmanager
def _without_fused_layers(model: nn.Module) -> Iterator[None]:
    """Run encoder layers operator by operator within the block, because their fused kernel hides an activation."""
    before, layer = torch.backends.mha.get_fastpath_enabled(), nn.TransformerEncoderLayer
    torch.backends.mha.set_fastpath_enabled(before and not any(isinstance(part, layer) for part in model.modules()))
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def trace(
    model: nn.Module,
    batch: int,
    pool: str = "spatial",
    *,
    sparsity: bool = False,
    channel_axis: Mapping[str, int] | None = None,
    calls: str | None = None,
    mask: Tensor | None = None,
    unmasked: Iterable[Tensor] = (),
) -> Iterator[Trace]:
    """Record every activation call of ``model`` within the block.

    The book's chapter ``imagenet_signatures`` explains why hooks are not enough.

    Parameters
    ----------
    model
        Any network. Run it inside the block, once, under ``torch.no_grad()``.
    batch
        Length of the batch axis of the input.
    pool, channel_axis, calls
        As in :class:`affscore.settings.Settings`.
    sparsity
        Whether to count the zeros of every input and output as well; see :func:`affscore.pooling.sparsity`.
    mask
        bool (batch, tokens), False for padding. In each activation, masked positions along the only axis of that
        length are ignored. A vector has no such axis; other shapes are undecided.
    unmasked
        Inputs with other tokens, such as a decoder's. The mask does not apply to tensors computed from these inputs.

    Yields
    ------
    Trace
        The record of the calls, which is filled when the block ends without an error.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2), nn.Tanh())
    >>> with torch.no_grad(), trace(model, batch=5) as found:
    ...     y = model(torch.ones(5, 3))                              # (5, 2)
    >>> [observation.call.name for observation in found.observations]
    ['1:relu[0]', '3:tanh[0]']
    >>> found.observations[0].after.shape
    torch.Size([5, 4])
    """
    check_choice("pool", pool, POOLS)
    check_traceable(model)
    names = {id(module): name for name, module in reversed(list(model.named_modules(remove_duplicate=False)))}
    path, result, thread = [""], Trace(), threading.get_ident()
    watcher = _Watcher(path, Fixed(model), batch, pool, sparsity, channel_axis or {}, calls, mask, unmasked)

    # The hooks are global, since a hook on a module would switch off its fused kernels. Other threads call them, too.
    def enter(module: nn.Module, _: Any) -> None:
        if threading.get_ident() == thread:
            path.append(names.get(id(module), path[-1]))

    def leave(module: nn.Module, _: Any, out: Any) -> None:
        if threading.get_ident() == thread:
            path.pop()
            if len(path) == 1:  # the network's output
                watcher.chains.escape(x for x in tree_leaves(out) if isinstance(x, Tensor) and all_dense([x]))

    def count(by: int) -> None:
        watcher.mapped += by * (threading.get_ident() == thread)

    before, after = register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)
    try:
        with before, after, mapped(count), _without_fused_layers(model), watcher:
            yield result
        watcher.result(result)
    finally:
        # The chains refer back to the watcher. This cycle would keep tensors alive after the pass.
        del watcher.chains, watcher.channels
