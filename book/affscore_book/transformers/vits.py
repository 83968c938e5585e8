"""Vision transformers of the decade: what attention does to the score of each block's GELU, trained and at the start.

The source's sentence on a focusing lens is about such networks. ``book/data/transformers/minilm/make.py vits`` measures
them; of each architecture one trained network is stored with its weights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from affscore_book.kit.stored import read_results
from affscore_book.transformers.measured import START_SEEDS

__all__ = ["BLOCKS", "VIT_BATCHES", "VIT_POOLS", "VitScores", "load_vits"]

#: By network, the number of its blocks.
BLOCKS = {"vit_4": 4, "vit_8": 12}
#: Disjoint batches of validation images, for the trained network.
VIT_BATCHES = 4
VIT_POOLS = ("spatial", "tokens")


@dataclass(frozen=True)
class VitScores:
    """What was stored: by "network|state|pool|batch" the scores of each block's GELU, (2, blocks).

    The first row is with the block's own attention, the second without it.
    """

    scores: Mapping[str, NDArray[np.float64]]

    def effect(self, network: str, pool: str = "spatial", trained: bool = True) -> NDArray[np.float64]:
        """By how much each block's score rises when its attention is taken out: (batches or starts, blocks).

        Trained: a row for each batch. Otherwise a row for each start, on the first batch.

        >>> stored = {f"vit|start {seed}|spatial|0": np.array([[0.5], [0.75]]) for seed in START_SEEDS}
        >>> VitScores(stored).effect("vit", trained=False).tolist()
        [[0.25], [0.25], [0.25]]
        """
        trained_names = [f"{network}|trained|{pool}|{batch}" for batch in range(VIT_BATCHES)]
        names = trained_names if trained else [f"{network}|start {seed}|{pool}|0" for seed in START_SEEDS]
        return np.array([self.scores[name][1] - self.scores[name][0] for name in names])


def load_vits(path: str | os.PathLike[str]) -> VitScores:
    """The stored results; errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(content: dict[str, Any]) -> VitScores:
        found = VitScores({name: np.array(rows, dtype=np.float64) for name, rows in content["scores"].items()})
        for network, blocks in BLOCKS.items():
            for pool in VIT_POOLS:
                for trained in (True, False):
                    if (shape := found.effect(network, pool, trained).shape[1]) != blocks:
                        raise ValueError(f"{network} has {shape} blocks")
        return found

    return read_results(path, build, "book/data/transformers/minilm/make.py")
