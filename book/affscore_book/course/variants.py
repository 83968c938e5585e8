"""A student's own numbers: with a name, the exercises that allow it have other numbers than the book."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["student", "variant"]

T = TypeVar("T")
_name = ""


def student(name: str) -> None:
    """Give the exercises that follow the numbers of this student, or with ``""`` those of the book.

    Capitals and the number of blanks make no difference.
    """
    global _name
    _name = " ".join(unicodedata.normalize("NFC", name).casefold().split())


def variant(what: str, book: T, others: Sequence[T]) -> T:
    """The book's value, or with a student's name one of the others: for the same name always the same.

    >>> variant("width", 4, [3, 5, 6, 8])
    4
    >>> student("Ada Lovelace")
    >>> width = variant("width", 4, [3, 5, 6, 8])
    Your width: 3 (the book has 4).
    >>> student("")
    """
    if not _name:
        return book
    digest = hashlib.sha256(f"{_name}\n{what}\n{book}".encode(errors="backslashreplace")).digest()
    value = others[int.from_bytes(digest[:8], "big") % len(others)]
    print(f"Your {what}: {value} (the book has {book}).")
    return value
