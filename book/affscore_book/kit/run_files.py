"""The checkpoints of a script that trains networks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from affscore.files import replacing

__all__ = ["read_checkpoint", "write_checkpoint"]


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
