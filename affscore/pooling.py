"""What is kept of an activation: its average over all axes but batch and channels, and how many entries are zero."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["POOLS", "pool", "sparsity"]

POOLS = ("spatial", "trailing")
ZERO = 1e-3  # what counts as zero for the sparsity
PIECE = 1 << 17


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
