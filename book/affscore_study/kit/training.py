"""Trains small networks of the book, and writes their weights."""

from __future__ import annotations

import json
import os
from typing import Any

from safetensors.torch import save_file
from torch import nn

from affscore.files import replacing

__all__ = ["save_weights"]


def save_weights(network: nn.Module, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
    """Write the state dict as safetensors, with floating-point values as float16 and ``about`` as JSON in the header.

    The file is written completely or not at all.
    """
    state = {
        name: (value.half() if value.is_floating_point() else value).contiguous().cpu()
        for name, value in network.state_dict().items()
    }
    with replacing(path) as beside:
        save_file(state, beside, metadata={"about": json.dumps(about)})
