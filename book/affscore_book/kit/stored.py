"""Stores the results of a script of ``book/data`` as JSON, completely or not at all, and reads them for a chapter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from affscore.files import replacing

__all__ = ["open_results", "read_results", "rounded", "store_results"]

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


def open_results(file: Path, settings: dict[str, Any], **empty: Any) -> dict[str, Any]:
    """The results in ``file``, or ``empty`` results with ``settings`` if there is no file, marked with the versions.

    If the file was made with other settings, the script ends with a sentence.
    """
    import scipy  # here, since a page that only reads results has neither SciPy nor torch

    from affscore.measuring import versions

    results: dict[str, Any] = {"settings": settings, **empty, "seconds": 0.0}
    if file.exists():
        results = json.loads(file.read_text(encoding="utf-8"))
        if results["settings"] != settings:
            raise SystemExit(f"{file.name} has other settings than this script; remove it to start again.")
    results["made_with"] = versions() | {"scipy": scipy.__version__, "device": "cpu, one thread"}
    return results


def rounded(values: Any) -> Any:
    """Lists and dictionaries of numbers as JSON can hold them: floats rounded to six decimals, and NaN as None.

    >>> rounded({"score": [0.12345678, float("nan")], "calls": 2})
    {'score': [0.123457, None], 'calls': 2}
    """
    text = json.dumps(values)
    return json.loads(text, parse_float=lambda digits: round(float(digits), 6), parse_constant=lambda _: None)


def store_results(file: Path, results: dict[str, Any], indent: int | None = None) -> None:
    """Write all results; an error leaves the file as it was before."""
    with replacing(file) as beside:
        separators = None if indent else (",", ":")  # spaces after separators would be an eighth of a large file
        text = json.dumps(results, indent=indent, separators=separators, allow_nan=False)
        beside.write_text(text + "\n", encoding="utf-8")
