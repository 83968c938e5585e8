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

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["ACTIVATIONS", "POOLS", "Activation", "Call", "Excluded", "Observation", "Trace", "check_traceable", "trace"]

POOLS = ("spatial", "trailing")
ZERO = 1e-3  # what counts as zero for the sparsity
_PIECE = 1 << 17
aten = torch.ops.aten


# --------------------------------------------------------------------------------------------- registry


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


# ---------------------------------------------------------------------------------------------- results


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


# ------------------------------------------------------------------------------------------ channel axis

# Where these operators put the channels of their output. Everything else moves or keeps the axis it is given.
_CHANNELS_FIRST = {
    "convolution", "_convolution", "conv1d", "conv2d", "conv3d", "convolution_overrideable", "cudnn_convolution",
    "batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update",
    "group_norm", "native_group_norm", "instance_norm",
}  # fmt: skip
_CHANNELS_LAST = {
    "linear", "addmm", "mm", "bmm", "baddbmm", "matmul", "layer_norm", "native_layer_norm", "embedding",
    "_native_multi_head_attention", "scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
}  # fmt: skip
_VIEWS = {"view", "_unsafe_view", "reshape", "_reshape_alias", "flatten", "unflatten"}


def _after_view(axis: int, old: Sequence[int], new: Sequence[int]) -> int | None:
    """Where an axis of a reshaped tensor went: it is still there if its length and all before it multiply out."""
    ahead = math.prod(old[:axis])
    for place, length in enumerate(new):
        if length == old[axis] and math.prod(new[:place]) == ahead:
            return place
    return None


def _moved(operator: str, axis: int, args: Sequence[Any], old: Sequence[int], new: Sequence[int]) -> int | None:
    """The axis of the channels after an operator, given the axis before it."""
    if operator == "permute":
        return [d % len(old) for d in args[1]].index(axis)
    if operator == "transpose":
        a, b = args[1] % len(old), args[2] % len(old)
        return {a: b, b: a}.get(axis, axis)
    if operator == "t":
        return 1 - axis if len(old) == 2 else axis
    if operator == "unsqueeze":
        return axis + (args[1] % len(new) <= axis)
    if operator == "select":
        gone = args[1] % len(old)
        return None if gone == axis else axis - (gone < axis)
    if operator in _VIEWS or len(new) != len(old):
        return _after_view(axis, old, new)
    return axis


def _tensors(args: Iterable[Any]) -> Iterator[Tensor]:
    for argument in args:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from (item for item in argument if isinstance(item, Tensor))


_TAG = "_affscore_channel_axis"


def _follow(operator: str, args: Sequence[Any], out: Any) -> None:
    """Tag the outputs of an operator with the axis that holds their channels."""
    results = list(_tensors([out]))
    if not results:
        return
    if operator in _CHANNELS_FIRST:
        if results[0].ndim >= 2:
            setattr(results[0], _TAG, 1)
        return
    if operator in _CHANNELS_LAST:
        setattr(results[0], _TAG, results[0].ndim - 1)
        return
    for source in _tensors(args):
        axis = getattr(source, _TAG, None)
        if axis is None:
            continue
        for result in results:
            if result.ndim == source.ndim or source is args[0]:
                setattr(result, _TAG, _moved(operator, axis, args, source.shape, result.shape))
        return


def channel_axis(tensor: Tensor) -> int:
    """The axis of the channels: as followed from the last layer, else 1 for images and vectors, last for tokens."""
    axis = getattr(tensor, _TAG, None)
    if axis is not None and 0 < axis < tensor.ndim:
        return axis
    return tensor.ndim - 1 if tensor.ndim == 3 else 1


# -------------------------------------------------------------------------------------------- fixed values


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
        inputs = chain(_tensors(args), _tensors(kwargs.values()))
        first = next(inputs, None)
        if first is None or first not in self:
            return
        if all(tensor in self for tensor in inputs):
            for result in _tensors([out]):
                setattr(result, self._TAG, True)
        elif func._schema.is_mutable:
            # In place, perhaps through a view: every tensor on this storage depends on the batch from now on.
            storage = first.untyped_storage()
            self.written[storage._cdata] = storage


# ----------------------------------------------------------------------------------------------- pooling


def pool(tensor: Tensor, kind: str, axis: int) -> Tensor:
    """Average activations of shape (n, ...) to (n, channels).

    ``"spatial"`` averages over all axes but the batch and the channel axis. ``"trailing"`` does what the public
    reference code does: it averages over the last axis of 3-dimensional and the last two of 4-dimensional tensors,
    wherever the channels are, and the rest is flattened.

    >>> tokens = torch.arange(12.0).reshape(1, 2, 6)                 # (n, tokens, channels)
    >>> pool(tokens, "spatial", axis=2).shape, pool(tokens, "trailing", axis=2).shape
    (torch.Size([1, 6]), torch.Size([1, 2]))
    """
    if kind == "spatial":
        dims = [d for d in range(1, tensor.ndim) if d != axis]
    else:
        dims = list(range(max(2, tensor.ndim - 2), tensor.ndim))
    wide = tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32
    if not dims:
        # A copy: the tensor itself may be overwritten in place by the next layer.
        return tensor.to(wide, copy=True).flatten(1)
    return tensor.mean(dim=dims, dtype=wide).flatten(1)


def sparsity(tensor: Tensor) -> Tensor:
    """The fraction of entries with ``|x| <= 1e-3``, as the paper's public code counts zeros; shape (), float64.

    >>> sparsity(torch.tensor([0.0, 0.001, -0.0005, 0.5])).item()
    0.75
    """
    if tensor.device.type != "cpu" or tensor.dtype not in (torch.float32, torch.float64):
        return torch.count_nonzero(tensor.abs() <= ZERO).double() / tensor.numel()
    # In pieces that stay in the cache, in the order of memory, and without a new array for each: eight times faster.
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    flat = tensor.detach().permute(order).reshape(-1).numpy()
    size, zero = np.empty(min(_PIECE, len(flat)), flat.dtype), np.empty(min(_PIECE, len(flat)), bool)
    count = 0
    for start in range(0, len(flat), _PIECE):
        piece = flat[start : start + _PIECE]
        small = np.less_equal(np.abs(piece, out=size[: len(piece)]), ZERO, out=zero[: len(piece)])
        count += int(np.count_nonzero(small))
    return torch.tensor(count / tensor.numel(), dtype=torch.float64)


# ----------------------------------------------------------------------------------------------- tracing


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
            _follow(packet.__name__, args, out)
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
            _follow(function, [x], out)
            return out
        axis = channel_axis(x)
        before, zeros = pool(x, self.kind, axis), sparsity(x) if self.sparsity else None
        out = run()
        after = out if isinstance(out, Tensor) else out[0]
        setattr(after, _TAG, axis)
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
