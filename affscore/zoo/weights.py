"""Weights from files: read without running any code, and put into a network in full or not at all."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import line_of

__all__ = ["INSTALL", "load_state", "read_state_dict", "require", "sha256"]

#: The command that installs an extra of this package.
INSTALL = 'pip install "affscore[{extra}] @ git+https://github.com/affscore/affscore"'


def require(module: str, extra: str = "pretrained") -> Any:
    """Import an optional dependency, or say with which extra of this package it is installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module.split('.')[0]} is needed here and cannot be imported ({error}): install it with "
            f"{INSTALL.format(extra=extra)}."
        ) from error


def read_state_dict(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a state dict without running any code from the file.

    Files that wrap it (``{"state_dict": ...}`` or ``{"model": ...}``) and names that start with ``module.``
    (saved from ``DataParallel``) are understood. Raises ValueError if the file is damaged or holds something else.
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
        raise ValueError(f"weights: {path} holds a tensor of the name {numbers[0]!r}; names should be text.")
    if state and all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return state


def load_state(model: torch.nn.Module, state: dict[str, Any], name: str, description: str) -> None:
    """Fill ``model`` with ``state``, every tensor of it, or raise ValueError, which says what does not fit."""
    does_not_fit = f"weights: {description} does not fit {name}"
    # Older torchvision files: DenseNet's "norm.1" is "norm1" today; the auxiliary heads are not built.
    used = {key: value for key, value in state.items() if not re.match(r"(aux[12]|AuxLogits)\.", key)}
    renamed: Any = OrderedDict((re.sub(r"(denselayer\d+\.\w+)\.([12])\.", r"\1\2.", key), used[key]) for key in used)
    # torch keeps versions in `_metadata`. MNASNet refuses a state dict without one; safetensors cannot store it.
    renamed._metadata = getattr(state, "_metadata", None) or {"": {"version": getattr(model, "_version", 1)}}
    try:
        missing, extra = model.load_state_dict(renamed, strict=False)
    except Exception as error:  # wrong shapes and kinds, one line for each after the first; versions of any type
        raise ValueError(f"{does_not_fit}: {line_of(error, -1)}.") from error
    own, needed = model.state_dict(), _uncounted(missing)
    for keys, what in ((needed, "are missing"), (extra, "are unexpected")):
        if keys:
            raise ValueError(f"{does_not_fit}: {len(keys)} tensors {what}, first {keys[0]}.")
    if len(_uncounted(used)) > len(_uncounted(own)):
        raise ValueError(f"{does_not_fit}: it holds some tensors twice, under an old and a new name.")
    # Torch converts without a word: whole numbers (of quantised weights) to fractions and back, complex ones to real.
    for key, value in renamed.items():
        if value.is_floating_point() != (key not in own or own[key].is_floating_point()):
            raise ValueError(f"{does_not_fit}: {key} holds values of {str(value.dtype).removeprefix('torch.')}.")
    for key, value in own.items():
        if not value.isfinite().all():
            raise ValueError(f"{does_not_fit}: {key} holds values that are not finite.")


def _uncounted(keys: Iterable[str]) -> list[str]:
    """Names but for the counters of batches, which came to batch norm after some files were made and change nothing."""
    return [key for key in keys if not key.endswith("num_batches_tracked")]


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
