"""The files in which a script that trains networks keeps the results of each network and seed, and its checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from affscore.files import replacing

__all__ = ["RunFiles", "read_checkpoint", "write_checkpoint"]


class RunFiles:
    """The files of one network and seed; the folders of the files are created.

    Parameters
    ----------
    out
        Folder of the script: ``results``, ``signatures`` and ``weights`` are part of the repository, ``work`` is not.
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


def read_checkpoint(
    file: str | os.PathLike[str] | None, parts: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[dict[str, float]]:
    """Load the states that :func:`write_checkpoint` stored into network, optimiser and schedule; returns the history.

    If ``file`` is None or does not exist, nothing is loaded and the history is empty.

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
    """Store the states of ``parts``; an error leaves the file as it was before. If it is None, nothing happens."""
    if file is None:
        return
    state = {name: part.state_dict() for name, part in parts.items()}
    with replacing(Path(file)) as beside:
        torch.save(state | {"history": history, "settings": dict(settings)}, beside)
