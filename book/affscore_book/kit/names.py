"""Finds the names that a cell of a notebook reads and binds, without running the cell.

A page that runs cells needs them to find out which earlier cells a cell needs (:mod:`affscore_book.kit.session`).
"""

from __future__ import annotations

import builtins
import dis
import inspect
from types import CodeType

__all__ = ["read_and_bound"]

#: Names that Python itself reads and binds where a cell annotates names.
_OF_ANNOTATIONS = {"__annotations__", "__annotate__", "__conditional_annotations__"}


def read_and_bound(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a cell reads before it binds them, without builtins, and the names that it binds.

    A name that a function of the cell reads counts unless the cell binds the name anywhere, since the function is
    called later. Raises SyntaxError if the source is not Python.

    >>> read, bound = read_and_bound("y = [x * k for k in range(3)]")
    >>> sorted(read), sorted(bound)
    (['x'], ['y'])
    """
    read, bound, later = _names(compile(source, "cell", "exec"))
    read = (read | (later - bound)) - set(dir(builtins))
    return frozenset(read - _OF_ANNOTATIONS), frozenset(bound - _OF_ANNOTATIONS)


def _names(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """What code reads before it binds it, what it binds, and what its functions read when they are called."""
    read: set[str] = set()
    bound: set[str] = set()
    later: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and step.argval not in bound:
            read.add(step.argval)
        elif step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif isinstance(inner := step.argval, CodeType):
            inner_read, _, inner_later = _names(inner)
            # The body of a class, or of a comprehension, runs at once.
            at_once = not inner.co_flags & inspect.CO_OPTIMIZED or inner.co_name.endswith(("comp>", "expr>"))
            read |= inner_read - bound if at_once else set()
            later |= inner_later if at_once else inner_read | inner_later
    return read, bound, later
