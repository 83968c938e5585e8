"""What the scripts in this folder share: open the results that a script stored before, and store them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import scipy

from affscore.files import replacing
from affscore.signatures import versions


def open_results(file: Path, settings: dict[str, Any], **empty: Any) -> dict[str, Any]:
    """The results in ``file``, or ``empty`` ones with ``settings`` where there is no file, marked with the versions.

    Ends the script with a sentence where the file was made with other settings.
    """
    results: dict[str, Any] = {"settings": settings, **empty, "seconds": 0.0}
    if file.exists():
        results = json.loads(file.read_text(encoding="utf-8"))
        if results["settings"] != settings:
            raise SystemExit(f"{file.name} has other settings than this script; remove it to start anew.")
    results["made_with"] = versions() | {"scipy": scipy.__version__, "device": "cpu, one thread"}
    return results


def store_results(file: Path, results: dict[str, Any], indent: int | None = None) -> None:
    """Write all results; the file is complete or as it was before."""
    with replacing(file) as beside:
        beside.write_text(json.dumps(results, indent=indent, allow_nan=False) + "\n", encoding="utf-8")
