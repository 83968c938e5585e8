"""The effect of attention on the score of a layer, which is measured with its own attention and without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from affscore import signature
from affscore.forward import evaluating
from affscore_book.kit.features import features

__all__ = ["attention_scores", "without_attention"]


@contextmanager
def without_attention(model: Any, layer: int) -> Iterator[None]:
    """A context in which the attention of one layer of MiniLM, counted from 0, adds nothing to the tokens."""
    output = model.encoder.layer[layer].attention.output.dense
    with output.register_forward_hook(lambda module, args, result: torch.zeros_like(result)):
        yield


@torch.no_grad()
def attention_scores(network: Any, images: Tensor, pool: str) -> NDArray[np.float64]:
    """The scores of each block's GELU with the block's own attention and without it, float64 of shape (2, blocks).

    Without attention, the MLP of a block gets the block's input through its own norm.

    Parameters
    ----------
    network
        A VisionTransformer of torchvision.
    images
        One batch of images.
    pool
        As in :func:`affscore.signature`.
    """
    blocks = dict(network.encoder.layers.named_children())
    norms = [f"encoder.layers.{name}.{norm}" for name in blocks for norm in ("ln_1", "ln_2")]
    with features(network, norms) as seen, evaluating(network):
        network(images)
    streams = [norm.input for norm in seen.values()]
    scores = [
        [signature(block.mlp, [block.ln_2(stream)], pool=pool).mean[0] for stream in (after, before)]
        for block, before, after in zip(blocks.values(), streams[::2], streams[1::2], strict=True)
    ]
    return np.array(scores).T
