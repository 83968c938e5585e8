"""Hooks of torch that are taken off again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from torch.utils.hooks import RemovableHandle

__all__ = ["attached"]


@contextmanager
def attached(hooks: Iterable[RemovableHandle]) -> Iterator[None]:
    """A context in which these hooks stay on their modules; at its end, by an error too, all are removed."""
    with ExitStack() as stack:
        for hook in hooks:
            stack.enter_context(hook)
        yield
