"""The moving picture of the chapter on transformers: which tokens of a sentence bend, in which layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import traitlets

from affscore_book.kit.widgets import ComputedWidget, chosen
from affscore_book.transformers.bends import ORDERS, Sentence

__all__ = ["TokenBends", "token_bends"]


class TokenBends(ComputedWidget):
    """A sentence in an order of words: its bend in every layer, and each token's bend in one of them.

    Make it with :func:`token_bends`. The bends were measured before; the page only averages and draws.

    Parameters
    ----------
    sentences
        Each with name, and under the name of each order tokens and bends, a list of lists: one number a token, for
        each layer.
    levels
        The bend of the tokens of other texts in each layer.
    selected
        The name of the sentence that is shown; by default the first.
    order
        ``"as written"``, ``"shuffled"`` or ``"reversed"``.
    layer
        From 1; the last one where the network has fewer.
    """

    sentences = traitlets.List(traitlets.Dict()).tag(sync=True)
    levels = traitlets.List(traitlets.Float()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    order = traitlets.Enum(ORDERS, default_value="as written").tag(sync=True)
    layer = traitlets.Int(1, min=1, max=99).tag(sync=True)

    _told = ("sentences", "selected", "order", "layer")

    def score(self) -> float:
        """The root mean square of the tokens' bends in the chosen layer; NaN if there is no sentence."""
        sentence = chosen(self.sentences, self.selected)
        if sentence is None:
            return math.nan
        bends = sentence[self.order]["bends"]
        row = bends[min(self.layer, len(bends)) - 1]
        return math.sqrt(sum(value * value for value in row) / len(row))


def token_bends(sentences: Mapping[str, Mapping[str, Sentence]], levels: Sequence[float]) -> TokenBends:
    """The widget for these sentences, rounded so that every machine stores the same text."""
    rows = [
        {"name": name}
        | {order: {"tokens": each.tokens, "bends": [[round(v, 3) for v in row] for row in each.bends.tolist()]}
           for order, each in orders.items()}
        for name, orders in sentences.items()
    ]  # fmt: skip
    return TokenBends(sentences=rows, levels=[round(float(level), 3) for level in levels], selected=rows[0]["name"])
