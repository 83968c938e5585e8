"""A sample that a reader typed: its numbers, or a sentence that says what is wrong with it."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST", "read_numbers"]

#: As many numbers as are taken, none larger than LARGEST.
MOST, LARGEST = 5000, 1e100
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
SPACE = "[ \\t\\r\\n\u00a0]"
BETWEEN = re.compile(f"{SPACE}*[,;]{SPACE}*|{SPACE}+")
AROUND = re.compile(f"\\A{SPACE}+|({SPACE}|[,;])+\\Z")
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]


def _ordinal(count: int) -> str:
    if count <= len(ORDINALS):
        return ORDINALS[count - 1]
    ending = "th" if count // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


def read_numbers(text: str) -> NDArray[np.float64]:
    """The numbers in a text, separated by spaces, commas, semicolons or new lines.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If an entry is no number or larger than LARGEST, or if there are fewer than two numbers, more than MOST, or all
        are equal.

    >>> read_numbers("1.5, -2; 3e1")
    array([ 1.5, -2. , 30. ])
    >>> read_numbers("1 2 abc")
    Traceback (most recent call last):
    ValueError: The third entry, 'abc', is not a number.
    """
    inner = AROUND.sub("", text.replace("\u2212", "-"))
    entries = BETWEEN.split(inner) if inner else []
    if len(entries) > MOST:
        raise ValueError(f"There are {len(entries)} entries; at most {MOST} are taken.")
    for i, entry in enumerate(entries):
        which = f"The {_ordinal(i + 1)} entry"
        shown = entry if len(entry) <= 20 else f"{entry[:20]}\u2026"
        if not entry:
            raise ValueError(f"{which} is empty.")
        if not NUMBER.fullmatch(entry):
            raise ValueError(f"{which}, '{shown}', is not a number.")
        if abs(float(entry)) > LARGEST:
            raise ValueError(f"{which}, '{shown}', is too large to compute with.")
    numbers = np.array([float(entry) for entry in entries])
    if len(numbers) < 2:
        found = "There is one number" if len(numbers) else "There are no numbers"
        raise ValueError(f"{found}; a score needs at least two.")
    if (numbers == numbers[0]).all():
        raise ValueError(f"All {len(numbers)} numbers are equal; a score needs numbers that differ.")
    return numbers
