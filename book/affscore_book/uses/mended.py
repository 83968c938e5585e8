"""What is stored of networks that lost a random quarter of their calls and were trained again (P2).

Their rules stand in ``affscore_study.uses.mending``; ``book/data/uses/mend.py`` makes the runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from affscore_book.kit.stored import read_results

__all__ = ["MENDED", "Mended", "load_measures", "load_mended"]

#: By name, the family; the order in which the networks take turns.
MENDED = {
    "vgg11": "VGG",
    "vgg16": "VGG",
    "vgg16_bn": "VGG",
    "resnet18": "ResNet",
    "densenet28": "DenseNet",
    "mobilenet_v3": "MobileNet",
    "vit_8": "ViT",
    "swin": "Swin",
}

#: By the network's name: its measures (``"calls"``) and its runs (``"control"`` and ``"quarters"``).
Mended = dict[str, dict[str, Any]]

SCRIPT = "book/data/uses/mend.py"


def load_measures(folder: str | Path) -> Mended:
    """The measures of every network, taken before the trainings; ``folder`` is ``book/data/uses``.

    Raises FileNotFoundError if a network has none, ValueError if a file is damaged.
    """
    return {name: read_results(Path(folder) / "mending" / "measures" / f"{name}.json", dict, SCRIPT) for name in MENDED}


def load_mended(folder: str | Path) -> Mended:
    """The networks with measures and runs so far; networks without runs have empty lists. Raises as
    :func:`load_measures` does."""
    found = load_measures(folder)
    for name, record in found.items():
        file = Path(folder) / "mending" / "results" / f"{name}.json"
        runs = read_results(file, dict, SCRIPT) if file.exists() else {"control": [], "quarters": []}
        found[name] = record | runs
    return found
