"""The measurement of the bends of tokens: the affine map of a layer, and the bends of a sentence in three orders.

:mod:`affscore_book.transformers.bends` defines a bend.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from affscore.affine import AffineMap, affine_map
from affscore.arguments import check_choice
from affscore_book.transformers.bends import ORDERS
from affscore_study.transformers.minilm import MiniLM, gelu_pairs

__all__ = ["SENTENCES", "LayerMap", "fit_layer", "in_order", "sentence_bends"]

SENTENCES = (
    "the cat that the dog chased ran up the old tree",
    "she did not say that he stole the money",
    "prices rose by seven percent in the third quarter of 2019",
    "the bank of the river was steep and covered with grass",
    "the bank refused to lend me any more money",
    "to be or not to be that is the question",
    "colorless green ideas sleep furiously",
    "a method is a function that belongs to an object",
)


class LayerMap(NamedTuple):
    """The affine map of a layer, the trace of its outputs' covariance, and the root mean squared bend of all tokens."""

    affine: AffineMap
    spread: float
    level: float

    def bends(self, before: Tensor, after: Tensor) -> Tensor:
        """The bend of each token, float64 of shape (tokens,), from inputs and outputs of shape (tokens, channels)."""
        missed = after.double() - self.affine(before)
        return missed.norm(dim=1) / math.sqrt(2 * self.spread)


def fit_layer(before: Tensor, after: Tensor) -> LayerMap:
    """The map of a layer, fitted without shrinkage to inputs and outputs of many tokens, both (tokens, channels).

    >>> import torch
    >>> x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    >>> bool(fit_layer(x, 3 * x + 1).level < 1e-6)                    # an affine layer bends no token
    True
    """
    y = after.double()
    fitted = LayerMap(affine_map(before, after, covariance="empirical"), float(y.var(dim=0, correction=0).sum()), 0.0)
    return fitted._replace(level=float(fitted.bends(before, after).square().mean().sqrt()))


def in_order(sentence: str, order: str) -> str:
    """A sentence with its words in one of the ``ORDERS``; a sentence is always shuffled in the same way.

    Raises ValueError for another order.

    >>> in_order("one two three", "reversed")
    'three two one'
    """
    check_choice("order", order, ORDERS)
    words = sentence.split()
    if order == "shuffled":
        random.Random(sentence).shuffle(words)
    return " ".join(words[::-1] if order == "reversed" else words)


def sentence_bends(network: MiniLM, maps: list[LayerMap], text: str) -> tuple[list[str], NDArray[np.float64]]:
    """The tokens of a text, and their bends in each layer, float64 of shape (layers, tokens)."""
    ids = network.tokens([text])["input_ids"]
    pairs = gelu_pairs(network.model, {"input_ids": ids})
    rows = [fitted.bends(x[0], y[0]).numpy() for fitted, (x, y) in zip(maps, pairs, strict=True)]
    return network.tokens.tokenizer.convert_ids_to_tokens(ids[0]), np.stack(rows)
