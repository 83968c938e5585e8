"""The stored networks of the first seed, as they were trained."""

from __future__ import annotations

import os
from pathlib import Path

from torch import nn

from affscore_book.decade.networks import build
from affscore_book.kit.training import load_weights

__all__ = ["stored_network"]


def stored_network(folder: str | os.PathLike[str], name: str) -> nn.Module:
    """The trained network of the first seed, in evaluation mode on the CPU; its weights were stored in half precision.

    ``folder`` is ``book/data/decade``, and ``name`` one of :data:`affscore_book.decade.networks.SETTINGS`.
    """
    network = build(name)
    load_weights(network, Path(folder) / "weights" / f"{name}-0.safetensors")
    return network
