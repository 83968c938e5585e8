"""Checks of arguments. Their errors name the argument, what it was and what it should be."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

__all__ = ["check_choice", "did_you_mean", "expanded", "line_of", "whole_number"]


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int: a Python or NumPy integer from ``least`` to ``most``, not a bool; otherwise ValueError.

    Examples
    --------
    >>> whole_number("batch_size", 2.0, least=2)
    Traceback (most recent call last):
    ...
    ValueError: batch_size is 2.0; it should be a whole number of at least 2.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        size = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is {value!r}; it should be a whole number {size}.")
    return number


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Raise ValueError unless ``value`` is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it should be one of {', '.join(map(repr, choices))}.")


def expanded(name: str, path: str | os.PathLike[str]) -> Path:
    """A user's path with ``~`` expanded; ValueError if it is empty or that user has no home folder.

    Examples
    --------
    >>> expanded("root", "~nobody_of_this_name/images")
    Traceback (most recent call last):
    ...
    ValueError: root is '~nobody_of_this_name/images'; there is no home folder of that user.
    """
    text = os.fspath(path)
    if not text:
        raise ValueError(f"{name} is ''; it should be a path.")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{name} is {text!r}; there is no home folder of that user.") from error


def did_you_mean(name: str, names: Sequence[str], otherwise: str) -> str:
    """How an error ends: with the ``names`` close to ``name``, or ``otherwise``."""
    close = difflib.get_close_matches(name, names)
    return f"Did you mean {', '.join(close)}?" if close else otherwise


def line_of(error: BaseException, which: int = 0) -> str:
    """A line of an error's text: the first, or with ``which=-1`` the last."""
    return (str(error).strip() or type(error).__name__).splitlines()[which].strip().rstrip(".")
