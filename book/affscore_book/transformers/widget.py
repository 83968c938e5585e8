"""The moving picture of the chapter on transformers: which tokens of a sentence bend, in which layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import traitlets

from affscore_book.kit.picture import LOOKS, Panel, picture
from affscore_book.kit.widgets import ComputedWidget
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

    _esm = Path(__file__).with_name("token_bends.js")

    def score(self) -> float:
        """The root mean square of the tokens' bends in the chosen layer; NaN if there is no sentence."""
        shown = self._shown()
        return math.nan if shown is None else _together(shown["bends"][_layer(shown, self.layer)])

    def __repr__(self) -> str:
        if not self.sentences:
            return super().__repr__()
        chosen = f"selected={self.selected!r}, order={self.order!r}, layer={self.layer}"
        return f"TokenBends({len(self.sentences)} sentences, {chosen})"

    def fallback(self) -> str:
        """The layers on the left, the tokens of the chosen layer on the right."""
        shown = self._shown()
        rows = shown["bends"] if shown else []
        most = _most(self.sentences)
        left = Panel(
            label="The bend of the sentence in each layer", xlim=(0, len(rows) + 1), ylim=(0, most),
            xlabel="layer", ylabel="bend", height=320,
            legend=[("score-curve", "sentence"), ("bound-curve", "other texts")],
        )  # fmt: skip
        left.line("bound-curve", range(1, len(rows) + 1), self.levels[: len(rows)])
        left.line("score-curve", range(1, len(rows) + 1), [_together(row) for row in rows])
        if shown is None:
            text = "There is no sentence to show."
            return picture(left, score=math.nan, text=text, headline=_headline(math.nan, 0))
        at = _layer(shown, self.layer)
        left.dot("score-dot", at + 1, self.score(), 6)
        row, tokens = shown["bends"][at], shown["tokens"]
        right = Panel(
            label=f"The bend of each token in layer {at + 1}", xlim=(0, len(row) + 1), ylim=(-0.45 * most, most),
            xlabel="token", ylabel="bend", height=320, legend=[("bound-curve", "other texts")],
        )  # fmt: skip
        right.line("bound-curve", [0, len(row) + 1], [self.levels[at]] * 2)
        for place, (token, bend) in enumerate(zip(tokens, row, strict=True), start=1):
            right.line("input-curve", [place, place], [0, bend])
            right.dot("input-dot", place, bend, 4)
            x, y = float(right.x_at(place)) + 4, float(right.y_at(0)) + 6
            turned = f'transform="rotate(-90 {x:g} {y:g})"'
            place_of = f'x="{x:g}" y="{y:g}" text-anchor="end" {turned}'
            right.add(f'<text class="label" {LOOKS["label"]} {place_of}>{escape(token)}</text>')
        return picture(left, right, score=self.score(), text=_text(shown, at), headline=_headline(self.score(), at))

    def _shown(self) -> Mapping[str, Any] | None:
        named = [sentence for sentence in self.sentences if sentence["name"] == self.selected]
        return next((each[self.order] for each in [*named, *self.sentences]), None)


def token_bends(sentences: Mapping[str, Mapping[str, Sentence]], levels: Sequence[float]) -> TokenBends:
    """The widget for these sentences, rounded so that every machine stores the same text."""
    rows = [
        {"name": name}
        | {order: {"tokens": each.tokens, "bends": [[round(v, 3) for v in row] for row in each.bends.tolist()]}
           for order, each in orders.items()}
        for name, orders in sentences.items()
    ]  # fmt: skip
    return TokenBends(sentences=rows, levels=[round(float(level), 3) for level in levels], selected=rows[0]["name"])


# What follows stands in token_bends.js as well.


def _layer(shown: Mapping[str, Any], layer: int) -> int:
    return min(layer, len(shown["bends"])) - 1


def _together(row: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in row) / len(row))


def _most(sentences: Sequence[Mapping[str, Any]]) -> float:
    """Tenths above every bend."""
    every = [v for each in sentences for order in ORDERS for row in each[order]["bends"] for v in row]
    return math.ceil(max(every, default=1.0) * 10 - 1e-9) / 10


def _headline(bend: float, at: int) -> str:
    return "There is no bend." if math.isnan(bend) else f"Bend {bend:.3f} in layer {at + 1}"


def _text(shown: Mapping[str, Any], at: int) -> str:
    row, tokens = shown["bends"][at], shown["tokens"]
    high, low = row.index(max(row)), row.index(min(row))
    return f"most: {tokens[high]} ({row[high]:.3f}), least: {tokens[low]} ({row[low]:.3f})"
