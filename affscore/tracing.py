"""Watch every activation call of a network without changing its output.

The chapter on the first signature explains the idea. A dispatch mode sees each operation just before its kernel
runs, below modules, functionals, tensor methods and autograd. An activation's input is pooled before the call (it
may be overwritten in place), the call itself runs untouched, and its output is pooled after it. Nothing unpooled is
kept. Watching at a higher level is not neutral: hooks on modules miss functional calls, and torch-function modes
switch off the fused attention kernels and so change the outputs of vision transformers.

What counts is the registry :data:`ACTIVATIONS`: element-wise activation functions. Sigmoids and hard sigmoids count
and are marked as gates, because networks use them to scale other activations. Softmax, normalisation, pooling and
gated linear units (not element-wise), and plain mathematics such as ``exp``, ``sin`` or ``clamp`` do not count. An
activation that a network spells out in arithmetic (``x * torch.sigmoid(x)``) appears as the calls it makes. The
activation inside PyTorch's fused transformer encoder layer is computed a second time, beside the kernel.

Seen but not scored, and listed as excluded with the reason: calls on values that parameters and buffers alone
determine (Swin v2's tables of position biases), calls on tensors whose first axis is not the batch (a batch folded
into patches, time steps first), and fused kernels whose name says that they contain an activation (LSTMs).

What cannot be seen: an activation inside a kernel of another library whose name does not tell; calls on other
threads and other processes; and whether a first axis as long as the batch is the batch, where a network moves the
batch to another axis. A function compiled with ``torch.compile`` runs uncompiled while it is watched, so its output
may differ in the last bits. Compiled, scripted and exported modules are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from affscore.channels import POOLS, channel_axis, follow, keep_axis, pool, sparsity, tensors_in

__all__ = ["ACTIVATIONS", "POOLS", "Activation", "Call", "Excluded", "Observation", "Trace", "check_traceable", "trace"]

aten = torch.ops.aten


def _argument(args: Sequence[Any], kwargs: dict[str, Any], place: int, name: str, default: Any) -> Any:
    return args[place] if len(args) > place else kwargs.get(name, default)


def _name_hardtanh(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    low, high = _argument(args, kwargs, 1, "min_val", -1), _argument(args, kwargs, 2, "max_val", 1)
    return "relu6" if (low, high) == (0, 6) else "hardtanh"


def _name_elu(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """SELU and CELU reach the kernel of ELU with other constants."""
    if _argument(args, kwargs, 2, "scale", 1) != 1:
        return "selu"
    return "celu" if _argument(args, kwargs, 3, "input_scale", 1) != 1 else "elu"


class Activation(NamedTuple):
    """What the registry knows of one operator: its name (or how the arguments name it) and if it is a gate."""

    name: str | Callable[[Sequence[Any], dict[str, Any]], str]
    gate: bool = False


#: The operators that count as activations, by ATen packet. Add an entry to have one more operator traced.
ACTIVATIONS: dict[Any, Activation] = {
    getattr(aten, operator): activation
    for operators, activation in {
        "relu relu_": Activation("relu"),
        "relu6 relu6_": Activation("relu6"),
        "hardtanh hardtanh_": Activation(_name_hardtanh),
        "leaky_relu leaky_relu_": Activation("leaky_relu"),
        "rrelu rrelu_ rrelu_with_noise rrelu_with_noise_": Activation("rrelu"),
        "prelu _prelu_kernel": Activation("prelu"),
        "threshold threshold_": Activation("threshold"),
        "elu elu_": Activation(_name_elu),
        "selu selu_": Activation("selu"),
        "celu celu_": Activation("celu"),
        "gelu gelu_": Activation("gelu"),
        "silu silu_": Activation("silu"),
        "mish mish_": Activation("mish"),
        "hardswish hardswish_": Activation("hardswish"),
        "softplus": Activation("softplus"),
        "log_sigmoid log_sigmoid_forward": Activation("logsigmoid"),
        "tanh tanh_": Activation("tanh"),
        "hardshrink": Activation("hardshrink"),
        "softshrink": Activation("softshrink"),
        "sigmoid sigmoid_": Activation("sigmoid", gate=True),
        "hardsigmoid hardsigmoid_": Activation("hardsigmoid", gate=True),
    }.items()
    for operator in operators.split()
}

# Operators outside the registry that contain an activation, by their names; not gradients, nor repacked weights.
_FUSED = re.compile(
    r"(?!.*(backward|weight))(.*_)?"
    r"(relu|gelu|silu|swish|sigmoid|tanh|activation|lstm|gru|rnn|transformer_encoder)(_.*)?"
)


def _encoder_layer(
    src: Tensor, width: int, heads: int, in_weight: Tensor, in_bias: Tensor, out_weight: Tensor, out_bias: Tensor,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
    norm_bias_2: Tensor, weight_1: Tensor, bias_1: Tensor, weight_2: Tensor, bias_2: Tensor,
    mask: Tensor | None = None, mask_type: int | None = None,
) -> tuple[str, Tensor]:  # fmt: skip
    """What ``aten._transformer_encoder_layer_fwd`` hides: its activation and the input of it.

    The same kernels in the same order as in the fused one, up to the activation. ``src`` is (n, tokens, width).
    """

    def attention(x: Tensor) -> Tensor:
        weights = (in_weight, in_bias, out_weight, out_bias)
        return torch._native_multi_head_attention(x, x, x, width, heads, *weights, mask, False, True, mask_type)[0]

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (width,), weight, bias, eps)

    if norm_first:
        x = norm(src + attention(norm(src, norm_weight_1, norm_bias_1)), norm_weight_2, norm_bias_2)
    else:
        x = norm(src + attention(src), norm_weight_1, norm_bias_1)
    return "gelu" if use_gelu else "relu", F.linear(x, weight_1, bias_1)


@dataclass(frozen=True)
class Call:
    """One activation call of a forward pass.

    Attributes
    ----------
    name
        ``path:function[ordinal]``, unique within a forward pass.
    module
        Path of the innermost module that was running, ``""`` for the network itself.
    function
        Name of the activation in the registry.
    ordinal
        How many calls of this function this module had made before in the same forward pass.
    gate
        True for sigmoids and hard sigmoids.
    shape
        Shape of the input without its batch axis.
    channel_axis
        The axis that pooling kept, counted with the batch axis as 0; -1 for the pool ``"trailing"``, which keeps
        all axes but the last.
    """

    name: str
    module: str
    function: str
    ordinal: int
    gate: bool
    shape: tuple[int, ...]
    channel_axis: int


@dataclass(frozen=True)
class Excluded:
    """An activation call that was seen but not scored, and why."""

    name: str
    reason: str


class Observation(NamedTuple):
    """A call with its pooled input and output, both of shape (n, channels), float32 or float64, on the device.

    ``sparsity``, if asked for, holds the fractions of entries with ``|x| <= 1e-3`` of the input and of the output
    before pooling: two tensors of shape (), float64, on the device.
    """

    call: Call
    before: Tensor
    after: Tensor
    sparsity: tuple[Tensor, Tensor] | None = None


@dataclass
class Trace:
    """What one forward pass showed, in execution order."""

    observations: list[Observation] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)


class _Fixed:
    """The tensors that a network's parameters and buffers determine, whatever the batch is.

    An operator's output is fixed if all its tensors are and there is one; what a network makes from nothing
    (``arange``, ``zeros``) counts as data, since data may be written into it.
    """

    _TAG = "_affscore_fixed"

    def __init__(self, leaves: set[int]) -> None:
        self.leaves = leaves
        self.written: dict[int, Any] = {}  # storages that were fixed until data was written into them, kept alive

    def __contains__(self, tensor: Tensor) -> bool:
        if id(tensor) not in self.leaves and not getattr(tensor, self._TAG, False):
            return False
        return not self.written or tensor.untyped_storage()._cdata not in self.written

    def follow(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> None:
        inputs = chain(tensors_in(args), tensors_in(kwargs.values()))
        first = next(inputs, None)
        if first is None or first not in self:
            return
        if all(tensor in self for tensor in inputs):
            for result in tensors_in([out]):
                setattr(result, self._TAG, True)
        elif func._schema.is_mutable:
            # In place, perhaps through a view: every tensor on this storage depends on the batch from now on.
            storage = first.untyped_storage()
            self.written[storage._cdata] = storage


class _Watcher(TorchDispatchMode):
    def __init__(self, result: Trace, path: list[str], fixed: set[int], batch: int, kind: str, sparsity: bool) -> None:
        super().__init__()
        self.result, self.path, self.batch, self.kind, self.sparsity = result, path, batch, kind, sparsity
        self.fixed = _Fixed(fixed)
        self.seen: Counter[tuple[str, str]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        activation = ACTIVATIONS.get(packet)
        if activation is not None:
            function = activation.name if isinstance(activation.name, str) else activation.name(args, kwargs)
            out = self._call(function, activation.gate, args[0], lambda: func(*args, **kwargs))
        else:
            out = func(*args, **kwargs)
            follow(packet.__name__, args, out)
        self.fixed.follow(func, args, kwargs, out)
        if packet is aten._transformer_encoder_layer_fwd and not args[0].is_nested:
            function, hidden = _encoder_layer(*args, **kwargs)
            self.fixed.follow(func, args, kwargs, hidden)
            self._call(function, False, hidden, lambda: getattr(F, function)(hidden))
        elif activation is None and _FUSED.fullmatch(packet.__name__):
            self._exclude(self._name(packet.__name__)[0], "a fused kernel hides its activations")
        return out

    def _call(self, function: str, gate: bool, x: Tensor, run: Callable[[], Any]) -> Any:
        """Run one activation call on ``x`` between two looks at it."""
        name, ordinal = self._name(function)
        if reason := self._unfit(x):
            self._exclude(name, reason)
            out = run()
            follow(function, [x], out)
            return out
        axis = channel_axis(x)
        before, zeros = pool(x, self.kind, axis), sparsity(x) if self.sparsity else None
        out = run()
        after = out if isinstance(out, Tensor) else out[0]
        keep_axis(after, axis)
        kept = axis if self.kind == "spatial" else -1
        call = Call(name, self.path[-1], function, ordinal, gate, tuple(x.shape[1:]), kept)
        both = None if zeros is None else (zeros, sparsity(after))
        self.result.observations.append(Observation(call, before, pool(after, self.kind, axis), both))
        return out

    def _unfit(self, x: Tensor) -> str | None:
        """Why a call on ``x`` has no score, if it has none."""
        if x.is_nested:
            return "its input is a nested tensor, whose samples have different lengths"
        shape = tuple(x.shape)
        if x in self.fixed:
            return f"its input of shape {shape} comes from parameters and buffers alone, not from the batch"
        if x.ndim < 2 or shape[0] != self.batch:
            return f"its input of shape {shape} has no batch axis of length {self.batch} in front"
        return None

    def _name(self, function: str) -> tuple[str, int]:
        ordinal = self.seen[self.path[-1], function]
        self.seen[self.path[-1], function] += 1
        return f"{self.path[-1]}:{function}[{ordinal}]", ordinal

    def _exclude(self, name: str, reason: str) -> None:
        self.result.excluded.append(Excluded(name, reason))


def check_traceable(model: nn.Module) -> None:
    """Raise TypeError or ValueError, in a sentence, if the activations of ``model`` cannot be seen."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; it should be a torch.nn.Module.")
    for path, module in model.named_modules():
        kind = ""
        if isinstance(module, torch.jit.ScriptModule):
            kind = "scripted"
        elif type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None:
            kind = "compiled"
        elif "eval" in vars(module):  # torch.export replaces this method
            kind = "exported"
        elif isinstance(module, nn.DataParallel) and len(module.device_ids) > 1:
            kind = "spread over devices"
        if kind:
            where = f"its part {path!r}" if path else "it"
            raise ValueError(
                f"model cannot be traced because {where} is {kind} and hides its operations; "
                f"pass the network as it was before it was {kind}."
            )


@contextmanager
def trace(model: nn.Module, batch: int, pool: str = "spatial", *, sparsity: bool = False) -> Iterator[Trace]:
    """Record every activation call of ``model`` in the block.

    Parameters
    ----------
    model
        Any network. Run it inside the block, once, under ``torch.no_grad()``.
    batch
        Length of the batch axis of the input.
    pool
        ``"spatial"`` or ``"trailing"``; see :func:`pool`.
    sparsity
        Count the zeros of every input and output as well; see :func:`sparsity`.

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
    if pool not in POOLS:
        raise ValueError(f"pool is {pool!r}; it should be one of {', '.join(map(repr, POOLS))}.")
    check_traceable(model)
    fixed = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    names = {id(module): name for name, module in reversed(list(model.named_modules(remove_duplicate=False)))}
    path, result = [""], Trace()

    # Hooks for all modules rather than on each one: a hook on a module would switch its fused kernels off.
    def enter(module: nn.Module, _: Any) -> None:
        path.append(names.get(id(module), path[-1]))

    def leave(module: nn.Module, _: Any, __: Any) -> None:
        path.pop()

    handles = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    try:
        with _Watcher(result, path, fixed, batch, pool, sparsity):
            yield result
    finally:
        for handle in handles:
            handle.remove()
