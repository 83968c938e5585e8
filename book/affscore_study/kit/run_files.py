"""The files in which scripts of ``book/data`` keep results, and the files of each network and seed.

A file is always replaced as a whole, so that an error leaves it as it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scipy
import torch

from affscore.files import replacing
from affscore.measuring import versions

__all__ = ["RunFiles", "open_results", "read_checkpoint", "rounded", "store_results", "write_checkpoint"]


class RunFiles:
    """The files of one network and seed; the folders of the files are created.

    Parameters
    ----------
    out
        The folder of the script, of which ``results``, ``signatures`` and ``weights`` are part of the repository, but
        not ``work``.
    name, seed
        The name and the seed of the network. A blank in the name becomes a dash in the names of files.
    kept
        Whether the weights are part of the repository.
    """

    def __init__(self, out: Path, name: str, seed: int, kept: bool) -> None:
        self.name, self.seed = name, seed
        stem = f"{name}-{seed}".replace(" ", "-")
        self.work = out / "work" / stem
        self.result = out / "results" / f"{stem}.json"
        self.signatures = out / "signatures" / f"{stem}.json"
        self.weights = out / ("weights" if kept else "work") / f"{stem}.safetensors"
        self.checkpoint = self.work.with_name(f"{stem}.checkpoint")  # a name may hold a dot
        for file in (self.work, self.result, self.signatures, self.weights):
            file.parent.mkdir(parents=True, exist_ok=True)

    def snapshot(self, step: int) -> Path:
        """The file of the weights after a step of the training."""
        return self.work.with_name(f"{self.work.name}-step{step}.safetensors")


def open_results(file: Path, settings: dict[str, Any], **empty: Any) -> dict[str, Any]:
    """The results in ``file``, or ``empty`` results with ``settings`` if there is no file, marked with the versions.

    If the file was made with other settings, the script ends with a sentence.
    """
    results: dict[str, Any] = {"settings": settings, **empty, "seconds": 0.0}
    if file.exists():
        results = json.loads(file.read_text(encoding="utf-8"))
        if results["settings"] != settings:
            raise SystemExit(f"{file.name} has other settings than this script; remove it to start again.")
    results["made_with"] = versions() | {"scipy": scipy.__version__, "device": "cpu, one thread"}
    return results


def rounded(values: Any) -> Any:
    """Lists and dictionaries of numbers in a form for JSON: floats are rounded to six decimals, and NaN becomes None.

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


def read_checkpoint(
    file: str | os.PathLike[str] | None, parts: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[dict[str, float]]:
    """Load the states that :func:`write_checkpoint` stored into ``parts``, and return the history.

    The parts are network, optimiser and schedule by name. If ``file`` is None or does not exist, nothing is loaded and
    the history is empty.

    Raises
    ------
    ValueError
        If the checkpoint belongs to a run with other settings.
    """
    if file is None or not Path(file).exists():
        return []
    state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    if state["settings"] != settings:
        raise ValueError(f"checkpoint: {file} belongs to a run with {state['settings']}; this one has {settings}.")
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return list(state["history"])


def write_checkpoint(
    file: str | os.PathLike[str] | None,
    parts: Mapping[str, Any],
    settings: Mapping[str, Any],
    history: list[dict[str, float]],
) -> None:
    """Store the states of ``parts``. An error leaves the file as it was. If ``file`` is None, nothing happens."""
    if file is None:
        return
    state = {name: part.state_dict() for name, part in parts.items()}
    with replacing(Path(file)) as beside:
        torch.save(state | {"history": history, "settings": dict(settings)}, beside)
