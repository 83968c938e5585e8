"""Which tokens bend: how far each token's output lies from the affine map of its layer.

The affine map ``T`` of a layer's GELU is fitted once, with every token of many texts a sample. A token with input ``x``
and output ``y`` then has the

    bend = |y - T(x)| / sqrt(2 tr S),

``S`` the covariance of the outputs of all tokens. It needs no sample of its own. The root mean square of the bends of
the tokens that the map was fitted to is 1 − their paired affinity score; so a bend is on the scale of 1 - score.
"""

from __future__ import annotations

import math
import os
import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from affscore.affine import AffineMap, affine_map
from affscore.arguments import check_choice
from affscore_book.kit.stored import read_results
from affscore_book.transformers.minilm import MiniLM, gelu_pairs

__all__ = [
    "ORDERS", "SENTENCES", "LayerMap", "Sentence", "StoredBends", "fit_layer", "in_order", "load_sentences",
    "sentence_bends",
]  # fmt: skip

ORDERS = ("as written", "shuffled", "reversed")
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
    """The affine map of a layer, the spread of its outputs (trace of their covariance), and the bend of all tokens."""

    affine: AffineMap
    spread: float
    level: float

    def bends(self, before: Tensor, after: Tensor) -> Tensor:
        """The bend of each token: float64 (tokens,), from inputs and outputs (tokens, channels)."""
        missed = after.double() - self.affine(before)
        return missed.norm(dim=1) / math.sqrt(2 * self.spread)


def fit_layer(before: Tensor, after: Tensor) -> LayerMap:
    """The map of a layer from the inputs and outputs of many tokens, (tokens, channels) each, without shrinkage.

    >>> import torch
    >>> x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    >>> bool(fit_layer(x, 3 * x + 1).level < 1e-6)                    # an affine layer bends no token
    True
    """
    y = after.double()
    fitted = LayerMap(affine_map(before, after, covariance="empirical"), float(y.var(dim=0, correction=0).sum()), 0.0)
    return fitted._replace(level=float(fitted.bends(before, after).square().mean().sqrt()))


def in_order(sentence: str, order: str) -> str:
    """The words of a sentence in one of :data:`ORDERS`; a sentence is always shuffled in the same way.

    >>> in_order("one two three", "reversed")
    'three two one'
    """
    check_choice("order", order, ORDERS)
    words = sentence.split()
    if order == "shuffled":
        random.Random(sentence).shuffle(words)
    return " ".join(words[::-1] if order == "reversed" else words)


def sentence_bends(network: MiniLM, maps: list[LayerMap], text: str) -> tuple[list[str], NDArray[np.float64]]:
    """The tokens of a text, and their bends in each layer: float64 (layers, tokens)."""
    ids = network.tokens([text])["input_ids"]
    pairs = gelu_pairs(network.model, {"input_ids": ids})
    rows = [fitted.bends(x[0], y[0]).numpy() for fitted, (x, y) in zip(maps, pairs, strict=True)]
    return network.tokens.tokenizer.convert_ids_to_tokens(ids[0]), np.stack(rows)


class Sentence(NamedTuple):
    """A sentence in one order.

    Attributes
    ----------
    tokens
        With the special ones at the ends.
    bends
        Of each token in each layer: float64 (6, tokens).
    """

    tokens: list[str]
    bends: NDArray[np.float64]


class StoredBends(NamedTuple):
    """What was measured of tokens.

    Attributes
    ----------
    sentences
        By sentence and order.
    levels
        The bend, as a root mean square, of the tokens that the maps were fitted to: float64 (6,).
    held_out
        The same of as many tokens of other texts, float64 (6,): with what other sentences are to be compared.
    """

    sentences: dict[str, dict[str, Sentence]]
    levels: NDArray[np.float64]
    held_out: NDArray[np.float64]


def load_sentences(path: str | os.PathLike[str]) -> StoredBends:
    """The stored bends; errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(content: dict[str, Any]) -> StoredBends:
        found = {
            text: {order: Sentence(row["tokens"], np.array(row["bends"], np.float64)) for order, row in orders.items()}
            for text, orders in content["sentences"].items()
        }
        for orders in found.values():
            for each in orders.values():
                if each.bends.shape != (len(content["levels"]), len(each.tokens)):
                    raise ValueError(f"bends has shape {each.bends.shape} for {len(each.tokens)} tokens")
        return StoredBends(found, np.array(content["levels"]), np.array(content["held_out"]))

    return read_results(path, build, "book/data/transformers/minilm/make.py")
