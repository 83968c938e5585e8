"""Which tokens bend: how far each token's output lies from the affine map of its layer.

The affine map ``T`` of a layer's GELU is fitted once, with every token of many texts a sample. A token with input ``x``
and output ``y`` then has the

    bend = |y - T(x)| / sqrt(2 tr S),

``S`` the covariance of the outputs of all tokens. It needs no sample of its own. The root mean square of the bends of
the tokens that the map was fitted to is 1 − their paired affinity score; so a bend is on the scale of 1 - score.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from affscore_book.kit.stored import read_results

__all__ = ["ORDERS", "Sentence", "StoredBends", "load_sentences"]

ORDERS = ("as written", "shuffled", "reversed")


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
