"""Which axis of an activation holds the channels, and the average over the others.

The axis is followed from the last layer that says where it puts its channels, through whatever moves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["POOLS", "channel_axis", "follow", "keep_axis", "pool", "sparsity", "tensors_in"]

POOLS = ("spatial", "trailing")
ZERO = 1e-3  # what counts as zero for the sparsity
PIECE = 1 << 17
_TAG = "_affscore_channel_axis"

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


def tensors_in(args: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among the arguments of an operator, those in lists too."""
    for argument in args:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from (item for item in argument if isinstance(item, Tensor))


def follow(operator: str, args: Sequence[Any], out: Any) -> None:
    """Tag the outputs of an operator with the axis that holds their channels."""
    results = list(tensors_in([out]))
    if not results:
        return
    if operator in _CHANNELS_FIRST:
        if results[0].ndim >= 2:
            setattr(results[0], _TAG, 1)
        return
    if operator in _CHANNELS_LAST:
        setattr(results[0], _TAG, results[0].ndim - 1)
        return
    for source in tensors_in(args):
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


def keep_axis(tensor: Tensor, axis: int) -> None:
    """Say which axis of a tensor holds its channels."""
    setattr(tensor, _TAG, axis)


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
    # In pieces that stay in the cache, in the order of memory, and without a new array for each: eight times faster,
    # which benchmarks/signature.py shows as half of the cost of all companions.
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    flat = tensor.detach().permute(order).reshape(-1).numpy()
    size, zero = np.empty(min(PIECE, len(flat)), flat.dtype), np.empty(min(PIECE, len(flat)), bool)
    count = 0
    for start in range(0, len(flat), PIECE):
        piece = flat[start : start + PIECE]
        small = np.less_equal(np.abs(piece, out=size[: len(piece)]), ZERO, out=zero[: len(piece)])
        count += int(np.count_nonzero(small))
    return torch.tensor(count / tensor.numel(), dtype=torch.float64)
