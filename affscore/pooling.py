"""Pooling: the average of an activation over all axes but batch and channels, and its fraction of zeros."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["Pooled", "entries_of", "pool", "pooled", "rounding", "sparsity", "token_axis"]

ZERO = 1e-3  # the sparsity counts entries up to this magnitude
PIECE = 1 << 16


class Pooled(NamedTuple):
    """A pooled tensor, the size of rounding errors in its channels, its fraction of zeros, whether padding was left
    out, and the number of entries averaged in each value."""

    values: Tensor
    rounding: Tensor
    zeros: Tensor | None
    masked: bool
    entries: float


def pooled(tensor: Tensor, kind: str, axis: int, mask: Tensor | None = None, zeros: bool = False) -> Pooled | str:
    """Pool a tensor with its channels along ``axis`` (:func:`pool`), or return the reason why its tokens are unknown.

    If ``zeros`` is True, count the zeros as well. A ``mask`` does not apply to a vector, which has no tokens.

    >>> pooled(torch.zeros(2, 3, 8), "spatial", axis=1, zeros=True).zeros.item()
    1.0
    >>> pooled(torch.zeros(2, 3, 8, 8), "first", axis=1)
    'its input of shape (2, 3, 8, 8) has no unique axis for the tokens'
    """
    along, reason = None, ""
    if mask is not None or kind in ("first", "last"):
        along, reason = token_axis(tensor.shape, axis, None if mask is None else mask.shape[1])
    if reason:
        return reason
    fraction = sparsity(tensor, mask, along) if zeros else None
    values = pool(tensor, kind, axis, mask, along)
    limits = rounding(tensor, values, kind, axis, mask, along)
    masked = mask is not None and along is not None
    return Pooled(values, limits, fraction, masked, entries_of(tensor, values, kind, mask, along))


def token_axis(shape: Sequence[int], axis: int, tokens: int | None = None) -> tuple[int | None, str]:
    """The axis of an activation's tokens, or None for a vector, and ``""`` or the reason why the axis is unknown.

    ``shape`` is the shape of the activation, with the batch first, and ``axis`` the axis of its channels. ``tokens`` is
    the number of tokens including padding, or None if unknown.

    >>> token_axis((8, 5, 16), axis=2, tokens=5), token_axis((8, 16), axis=1, tokens=5)
    ((1, ''), (None, ''))
    >>> token_axis((8, 3, 16), axis=2, tokens=5)
    (None, 'its input of shape (8, 3, 16) has no unique axis for the 5 tokens')
    """
    others = [d for d in range(1, len(shape)) if d != axis]
    wide = [d for d in others if shape[d] > 1]
    found = wide if tokens is None else [d for d in others if shape[d] == tokens]
    if len(found) == 1:
        return found[0], ""
    what = "tokens" if tokens is None else f"{tokens} tokens"
    return None, f"its input of shape {tuple(shape)} has no unique axis for the {what}" if wide else ""


def pool(tensor: Tensor, kind: str, axis: int, mask: Tensor | None = None, along: int | None = None) -> Tensor:
    """Pool activations of shape (n, ...), whose channels lie along ``axis``, to samples.

    ``kind`` is a ``pool`` of :class:`affscore.settings.Settings`. The samples have shape (n, channels), or for
    ``"tokens"`` (positions of all samples, channels). ``"trailing"`` averages over the last axis of 3-dimensional and
    the last two axes of 4-dimensional tensors, wherever the channels are, and flattens the rest.

    ``mask``, bool (n, tokens), is False for padding, which is ignored; ``"trailing"`` accepts no mask. ``along`` is the
    axis of the tokens (:func:`token_axis`), which a mask, ``"first"`` and ``"last"`` need; it is None for a vector.
    Averages are computed in float64 (in float32 on a device without float64), so that they are as exact as the
    activations; entries that are not averaged stay float64 or become float32.

    >>> tokens = torch.arange(12.0).reshape(1, 2, 6)                 # (n, tokens, channels)
    >>> pool(tokens, "spatial", axis=2).shape, pool(tokens, "trailing", axis=2).shape
    (torch.Size([1, 6]), torch.Size([1, 2]))
    >>> pool(tokens, "spatial", axis=2, mask=torch.tensor([[True, False]]), along=1)
    tensor([[0., 1., 2., 3., 4., 5.]], dtype=torch.float64)
    """
    wide = tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32
    if kind == "tokens":
        rows = tensor.movedim(axis, -1)
        if mask is not None and along is not None:
            rows = tensor.movedim((along, axis), (1, -1))[mask]
        return rows.to(wide, copy=True).reshape(-1, tensor.shape[axis])
    dims = _averaged(tensor, kind, axis)
    if not dims:
        # This is a copy, because the next layer may overwrite the tensor in place.
        return tensor.to(wide, copy=True).flatten(1)
    if along is None:
        return _mean(tensor, dims)
    mask = tensor.new_ones((len(tensor), tensor.shape[along]), dtype=torch.bool) if mask is None else mask
    if kind != "spatial":
        count = mask.cumsum(1)
        mask = mask & (count == (1 if kind == "first" else count[:, -1:]))
    mean = _mean(_kept(tensor, mask, along), dims)
    return mean * (mask.shape[1] / mask.sum(1, keepdim=True).to(mean.dtype))


def _mean(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """The mean over some axes in float64, flattened to (n, channels)."""
    if tensor.device.type != "cpu":
        return tensor.mean(dim=list(dims), dtype=_double(tensor)).flatten(1)
    # NumPy converts to float64 while it adds, five times as fast as PyTorch, which copies the tensor first.
    return torch.from_numpy(_array(tensor).mean(axis=tuple(dims), dtype=np.float64)).flatten(1)


def _norm(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """The Euclidean norm over some axes in float64, flattened to (channels,)."""
    if tensor.device.type != "cpu":
        return torch.linalg.vector_norm(tensor, dim=list(dims), dtype=_double(tensor)).flatten()
    values, axes = _array(tensor), list(range(tensor.ndim))
    kept = [axis for axis in axes if axis not in dims]
    return torch.as_tensor(np.einsum(values, axes, values, axes, kept, dtype=np.float64)).sqrt().flatten()


def _array(tensor: Tensor) -> np.ndarray:
    """A tensor on the CPU as an array; half precision becomes float32, as NumPy has no bfloat16."""
    single = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float32)
    return single.detach().resolve_neg().numpy()


def _double(tensor: Tensor) -> torch.dtype:
    """The dtype float64, or float32 on a device without float64."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def _kept(tensor: Tensor, mask: Tensor, along: int) -> Tensor:
    """The activations with 0 wherever the mask is False."""
    return torch.where(mask.view([n if d in (0, along) else 1 for d, n in enumerate(tensor.shape)]), tensor, 0)


def _averaged(tensor: Tensor, kind: str, axis: int) -> list[int]:
    trailing = range(max(2, tensor.ndim - 2), tensor.ndim)
    return [d for d in range(1, tensor.ndim) if (d in trailing if kind == "trailing" else d != axis)]


def entries_of(
    tensor: Tensor, pooled: Tensor, kind: str, mask: Tensor | None = None, along: int | None = None
) -> float:
    """The number of entries averaged in a value of ``pooled``, without padding; the minimum over the samples.

    >>> x = torch.zeros(2, 3, 8, 8)
    >>> entries_of(x, pool(x, "spatial", axis=1), "spatial")
    64.0
    """
    if kind not in ("spatial", "trailing"):
        return 1.0
    share = 1.0 if mask is None or along is None else mask.sum(1).min().item() / mask.shape[1]
    return tensor[0].numel() / pooled.shape[1] * share


def rounding(
    tensor: Tensor, pooled: Tensor, kind: str, axis: int, mask: Tensor | None = None, along: int | None = None
) -> Tensor:
    """The size of rounding errors in each channel of ``pooled``, which :func:`pool` computed from ``tensor``.

    It is ``eps / 2 * rms / sqrt(k)``, where eps belongs to the dtype of ``tensor``, rms is the root mean square of the
    channel's entries, and k is :func:`entries_of`. If the pool keeps single entries, only these count. The result has
    shape (channels,), in float64 where the device supports it.

    >>> x = torch.tensor([[[3.0, -3.0]], [[3.0, -3.0]]])                            # (n, channels, positions)
    >>> rounding(x, pool(x, "spatial", axis=1), "spatial", axis=1) * 2**24 * 2**0.5
    tensor([3.], dtype=torch.float64)
    """
    averaged = kind in ("spatial", "trailing")
    if averaged and mask is not None and along is not None:
        tensor = _kept(tensor, mask, along)
    half = torch.finfo(tensor.dtype).eps / 2 / math.sqrt(entries_of(tensor, pooled, kind, mask, along))
    # Four samples are enough for this root mean square, and are faster than all samples.
    entries, dims = (tensor[:: math.ceil(len(tensor) / 4)], _averaged(tensor, kind, axis)) if averaged else (pooled, [])
    norm = _norm(entries, [0, *dims])
    return half * norm / math.sqrt(entries.numel() / len(norm))


def sparsity(tensor: Tensor, mask: Tensor | None = None, along: int | None = None) -> Tensor:
    """The fraction of entries with ``|x| <= 1e-3``, as the paper's public code counts zeros; shape (), float64.

    ``mask`` and ``along`` are as in :func:`pool`: entries of padding are not counted.

    >>> sparsity(torch.tensor([0.0, 0.001, -0.0005, 0.5])).item()
    0.75
    """
    if mask is not None and along is not None:
        tensor = tensor.movedim(along, 1)[mask]
    if tensor.dtype not in (torch.float32, torch.float64) or tensor.device.type != "cpu":
        return torch.count_nonzero(tensor.abs() <= ZERO).double() / tensor.numel()
    # In memory order and in pieces that fit the cache, NumPy counts three times as fast as PyTorch.
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    flat = _array(tensor.permute(order)).reshape(-1)
    pieces = (flat[start : start + PIECE] for start in range(0, len(flat), PIECE))
    zeros = sum(int(np.count_nonzero(np.abs(piece) <= ZERO)) for piece in pieces)
    return torch.tensor(zeros / tensor.numel(), dtype=torch.float64)
