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
import torch
from numpy.typing import NDArray
from torch import Tensor

from affscore import signature
from affscore.forward import evaluating
from affscore_book.kit.stored import read_results
from affscore_book.transformers.measured import START_SEEDS

__all__ = ["BLOCKS", "VIT_BATCHES", "VIT_POOLS", "VitScores", "attention_scores", "load_vits"]

#: By network, the number of its blocks.
BLOCKS = {"vit_4": 4, "vit_8": 12}
#: Disjoint batches of validation images, for the trained network.
VIT_BATCHES = 4
VIT_POOLS = ("spatial", "tokens")


@torch.no_grad()
def attention_scores(network: Any, images: Tensor, pool: str) -> NDArray[np.float64]:
    """The score of each block's GELU with the block's own attention and without it, float64 (2, blocks).

    Without, each token goes on alone: the MLP of the block sees what came into the block, through its norm.

    Parameters
    ----------
    network
        Torchvision's VisionTransformer.
    images
        One batch.
    pool
        As in :func:`affscore.signature`.
    """
    streams: list[Tensor] = []
    hooks = [
        norm.register_forward_pre_hook(lambda module, args: streams.append(args[0].clone()))
        for block in network.encoder.layers
        for norm in (block.ln_1, block.ln_2)
    ]
    try:
        with evaluating(network):
            network(images)
    finally:
        for hook in hooks:
            hook.remove()
    scores = [
        [signature(block.mlp, [block.ln_2(stream)], pool=pool).mean[0] for stream in (after, before)]
        for block, before, after in zip(network.encoder.layers, streams[::2], streams[1::2], strict=True)
    ]
    return np.array(scores).T


@dataclass(frozen=True)
class VitScores:
    """What was stored: by "network|state|pool|batch" the scores of :func:`attention_scores`."""

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
