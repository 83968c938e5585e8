"""Finds and reads the results that a script of ``book/data`` stored as JSON, for a chapter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["read_results", "stored_files"]

T = TypeVar("T")


def read_results(path: str | os.PathLike[str], build: Callable[[dict[str, Any]], T], script: str) -> T:
    """The result of ``build`` for the JSON object in a file.

    Parameters
    ----------
    path
        The file.
    build
        A function of the object; its errors (a KeyError, a ValueError, ...) mean that the file is damaged.
    script
        The script that wrote the file, for the errors, such as ``"book/data/stitching/make.py"``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is cut off, or was not written by that script.

    >>> read_results("nowhere.json", dict, "make.py")
    Traceback (most recent call last):
    ...
    FileNotFoundError: path: there is no nowhere.json; make.py writes it.
    """
    try:
        return build(json.loads(Path(path).read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"path: there is no {path}; {script} writes it.") from error
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"path: {path} is not a complete file of {script} ({type(error).__name__}: {error})."
        ) from error


def stored_files(folder: str | os.PathLike[str], part: str, what: str, script: str) -> list[Path]:
    """The JSON files in a part of a folder, by name; a FileNotFoundError that names the script if there is none."""
    files = sorted(Path(folder, part).glob("*.json"))
    if not files:
        raise FileNotFoundError(f"folder: {folder} has no {what}; {script} writes them.")
    return files
