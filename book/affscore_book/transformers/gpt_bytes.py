"""The bytes that the decoders are trained and measured on, and windows of them.

The text is that of ``pydoc_data.topics``, which every Python has; it differs between versions of Python.
"""

from __future__ import annotations

import pydoc_data.topics
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from affscore.arguments import whole_number
from affscore_book.transformers.gpt import CONTEXT

__all__ = ["ByteParts", "byte_parts", "cut_windows", "reference_bytes"]


class ByteParts(NamedTuple):
    """Bytes as int64 (n,): those that weights are fitted to, and the last tenth of the text, held out."""

    train: Tensor
    held_out: Tensor


def reference_bytes() -> bytes:
    """The topics of the Python Language Reference in the order of their names, a line between them, as UTF-8."""
    topics = pydoc_data.topics.topics
    return "\n".join(topics[name] for name in sorted(topics)).encode()


def byte_parts(text: bytes | Tensor) -> ByteParts:
    """The first nine tenths and the last one.

    >>> [len(part) for part in byte_parts(bytes(range(100)))]
    [90, 10]
    """
    values = text if isinstance(text, Tensor) else torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    return ByteParts(*values.tensor_split([len(values) * 9 // 10]))


def cut_windows(text: Tensor, count: int) -> Tensor:
    """``count`` windows of 129 bytes, evenly spaced from the first to the last: int64 (count, 129).

    The network sees the first 128 of each and is to tell the last 128. They overlap where the text is short.

    Raises
    ------
    ValueError
        If the text is shorter than one window, or ``count`` is less than 1.
    """
    whole_number("count", count, 1)
    if len(text) <= CONTEXT:
        raise ValueError(f"text has {len(text)} bytes; it should have at least {CONTEXT + 1}.")
    starts = np.linspace(0, len(text) - CONTEXT - 1, count).astype(int)
    return text.unfold(0, CONTEXT + 1, 1)[torch.from_numpy(starts)]
