"""NumPy arrays and torch tensors by the same code: the score runs on either, and torch is imported for tensors alone.

Functions of NumPy and of torch that have one name and take ``axis`` are called on the :func:`namespace` of their
argument. This module handles the differences.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

import numpy as np

__all__ = [
    "constant_of", "double", "identity", "is_tensor", "namespace", "needs_gradient", "of_kind", "on_one_thread",
    "stay_on_one_thread", "sum_of_squares", "to_numpy",
]  # fmt: skip


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a torch tensor; without torch there is none.

    >>> is_tensor([1.0]), is_tensor(np.ones(2))
    (False, False)
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def namespace(value: Any) -> Any:
    """The module whose functions take ``value``: ``torch`` for a tensor, else ``numpy``."""
    return sys.modules["torch"] if is_tensor(value) else np


def double(value: Any) -> Any:
    """``value`` as float64; a tensor keeps its device and its gradient."""
    return value.to(sys.modules["torch"].float64) if is_tensor(value) else np.asarray(value, dtype=np.float64)


def needs_gradient(*values: Any) -> bool:
    """Whether a derivative in one of them may be asked for."""
    return any(is_tensor(value) and value.requires_grad for value in values)


def constant_of(value: Any) -> Any:
    """The value without its gradient."""
    return value.detach() if is_tensor(value) else value


def to_numpy(value: Any) -> np.ndarray:
    """``value`` as an array in the memory of the processor."""
    return value.detach().cpu().numpy() if is_tensor(value) else np.asarray(value)


def of_kind(value: Any, like: Any) -> Any:
    """Numbers, an array or a tensor as ``like``: a tensor with its dtype on its device, or an array with its dtype."""
    if is_tensor(like):  # via NumPy: torch reads Python's numbers as float32, and rejects negative strides
        torch = sys.modules["torch"]
        return (value if is_tensor(value) else torch.from_numpy(np.array(value, dtype=np.float64, order="C"))).to(like)
    return np.asarray(to_numpy(value), dtype=like.dtype)


def identity(size: int, like: Any) -> Any:
    """The identity matrix (size, size), of the dtype and on the device of ``like``."""
    if is_tensor(like):
        return sys.modules["torch"].eye(size, dtype=like.dtype, device=like.device)
    return np.eye(size, dtype=like.dtype)


def sum_of_squares(value: Any) -> Any:
    """The sum of the squares of all entries, without an array of the squares."""
    flat = value.reshape(-1)
    return flat @ flat


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch's linear algebra on one thread, so that no bit of a result depends on the caller's settings.

    NumPy's threads stay as they are, and NumPy is as silent as torch where an intermediate number overflows.

    A thread takes its number from the whole process when it first asks for it. While another thread is in this block
    that number is 1, so a new thread takes the number that the other one has found.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        with np.errstate(all="ignore"):
            yield
        return
    with _LOCK:
        known = hasattr(_THREAD, "known") or not _INSIDE
        before, _THREAD.known = torch.get_num_threads() if known else max(_INSIDE), True
        _INSIDE.append(before)
        if before > 1:
            torch.set_num_threads(1)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _LOCK:
            _INSIDE.remove(before)
            if before > 1:
                torch.set_num_threads(before)


_LOCK, _THREAD = Lock(), local()
# The numbers of threads of those that are in the block.
_INSIDE: list[int] = []

#: Decorator: the function runs on one thread.
on_one_thread = _one_thread()


def stay_on_one_thread() -> None:
    """Give this thread one thread of linear algebra for good: the initialiser of the workers."""
    _THREAD.known = True
    sys.modules["torch"].set_num_threads(1)
