"""Three trained networks of the paper, each beside the same architecture before training, on the same 512 crops.

``book/data/imagenet_signatures/make_paper.py`` wrote them, in three draws of the crops and, before training, of the
weights. What the paper says of them is looked for in :mod:`affscore_study.imagenet_signatures.seen`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from affscore.signatures import Signature

__all__ = ["PAPER_NETWORKS", "Pair", "paper_networks"]

#: Their names in titles, and the packages that their weights are from.
PAPER_NETWORKS = {"resnet152": "ResNet-152", "resnet50": "ResNet-50", "vgg16": "VGG-16"}
_STARTS = {"resnet152": "calibrated", "resnet50": "calibrated", "vgg16": "random"}


class Pair(NamedTuple):
    """One network with trained weights and before training, with the same calls on the same crops."""

    trained: Signature
    start: Signature


def paper_networks(folder: str | os.PathLike[str], draw: int = 0) -> dict[str, Pair]:
    """The pairs of one draw by name, in the order of :data:`PAPER_NETWORKS`.

    Raises FileNotFoundError if one is not stored.
    """
    return {
        name: Pair(*(
            Signature.load(Path(folder, "paper", f"{name}.{state}.photographs.{draw}.json"))
            for state in ("trained", _STARTS[name])
        )) for name in PAPER_NETWORKS
    }  # fmt: skip
