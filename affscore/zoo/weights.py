"""Reads weights from files without running any code, and loads them completely or not at all."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import line_of
from affscore.errors import INSTALL

__all__ = ["load_state", "read_state_dict", "require", "sha256"]


def require(module: str, extra: str = "pretrained") -> Any:
    """Import an optional dependency; the error names the extra of this package that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module.split('.')[0]} is needed here and cannot be imported ({error}): install it with "
            f"{INSTALL.format(extra=extra)}."
        ) from error


def read_state_dict(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a state dict without running any code from the file.

    Wrappers (``{"state_dict": ...}`` or ``{"model": ...}``) and the prefix ``module.`` (from ``DataParallel``) are
    removed. Raises ValueError if the file is damaged or holds something else.
    """
    path = Path(path)
    state: Any
    try:
        if path.suffix == ".safetensors":
            state = require("safetensors.torch").load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (FileNotFoundError, PermissionError, ImportError):
        raise
    except Exception as error:  # torch and safetensors raise nearly every kind for a damaged file
        raise ValueError(f"weights: {path} cannot be read as a state dict ({line_of(error)}).") from error
    for wrapper in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(wrapper), dict):
            state = state[wrapper]
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise ValueError(f"weights: {path} holds a {type(state).__name__}, not a state dict of named tensors.")
    if numbers := [key for key in state if not isinstance(key, str)]:
        raise ValueError(f"weights: {path} holds a tensor with the name {numbers[0]!r}; names should be text.")
    if state and all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return state


def load_state(model: torch.nn.Module, state: dict[str, Any], name: str, description: str) -> None:
    """Load all of ``state`` into ``model``; a ValueError says what does not fit."""
    does_not_fit = f"weights: {description} does not fit {name}"
    # Older torchvision files: DenseNet's "norm.1" is now "norm1"; the auxiliary heads are not built.
    used = {key: value for key, value in state.items() if not re.match(r"(aux[12]|AuxLogits)\.", key)}
    renamed: Any = OrderedDict((re.sub(r"(denselayer\d+\.\w+)\.([12])\.", r"\1\2.", key), used[key]) for key in used)
    # torch keeps versions in `_metadata`, which MNASNet requires and safetensors cannot store.
    renamed._metadata = getattr(state, "_metadata", None) or {"": {"version": getattr(model, "_version", 1)}}
    try:
        missing, extra = model.load_state_dict(renamed, strict=False)
    except Exception as error:  # one line for each wrong shape or kind after the first line, or an odd version
        raise ValueError(f"{does_not_fit}: {line_of(error, -1)}.") from error
    # Older files lack batch norm's counters of batches, which change no output.
    tensors, needed = model.state_dict(), [key for key in missing if not key.endswith("num_batches_tracked")]
    for keys, what in ((needed, "are missing"), (extra, "are unexpected")):
        if keys:
            raise ValueError(f"{does_not_fit}: {len(keys)} tensors {what}, first {keys[0]}.")
    # Torch silently converts integers (quantised weights) to floating point and back, and complex numbers to real.
    for key, value in renamed.items():
        if value.is_floating_point() != (key not in tensors or tensors[key].is_floating_point()):
            raise ValueError(f"{does_not_fit}: {key} holds values of {str(value.dtype).removeprefix('torch.')}.")
    for key, value in tensors.items():
        if not value.isfinite().all():
            raise ValueError(f"{does_not_fit}: {key} holds values that are not finite.")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
