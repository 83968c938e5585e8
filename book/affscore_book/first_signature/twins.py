"""The scores of EfficientNet-Lite0 beside those of its linear twins, with its pairs and with other crops' outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from affscore_book.kit.stored import read_results

__all__ = ["load_twins"]

KINDS = ("score", "twin", "plain", "paired", "own", "strangers")


def load_twins(path: str | Path) -> dict[str, NDArray[np.float64]]:
    """What ``book/data/first_signature/twins.py`` stored: an array (draws, calls) for each of :data:`KINDS`;
    errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(data: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        draws = data["draws"]
        return {kind: np.array([draws[seed][kind] for seed in draws], dtype=np.float64) for kind in KINDS}

    return read_results(path, build, "book/data/first_signature/twins.py")
