"""The page and Python say the same of every sentence, order and layer."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from grids import each

from affscore_book.transformers.bends import ORDERS, Sentence, load_sentences
from affscore_book.transformers.widget import TokenBends, token_bends

STORED = Path(__file__).parents[2] / "book" / "data" / "transformers" / "minilm" / "sentences.json"
PLANTED = {
    name: {order: Sentence(["[CLS]", *order.split(), "[SEP]"],
                           np.random.default_rng([i, k]).random((3, 2 + len(order.split()))))
           for k, order in enumerate(ORDERS)}
    for i, name in enumerate(("first one", "second one"))
}  # fmt: skip
LEVELS = [0.3, 0.4, 0.5]


def choices() -> list[TokenBends]:
    made = []
    for name, order, layer in itertools.product(("first one", "second one", ""), ORDERS, (1, 2, 3, 7)):
        widget = token_bends(PLANTED, LEVELS)
        widget.selected, widget.order, widget.layer = name, order, layer
        made.append(widget)
    return made


def test_the_page_computes_what_python_computes(node):
    widgets = choices()
    found = node(TokenBends._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                 [widget.state() for widget in widgets])  # fmt: skip
    np.testing.assert_allclose(found, [widget.score() for widget in widgets], atol=1e-12)


@each("layer", [1, 2, 3])
def test_the_number_is_the_root_mean_square_of_the_layers_bends(layer):
    widget = token_bends(PLANTED, LEVELS)
    widget.layer = layer
    row = PLANTED["first one"]["as written"].bends[layer - 1]
    assert widget.score() == pytest.approx(np.linalg.norm(row) / math.sqrt(len(row)), abs=1e-3)


def test_what_it_says_of_a_layer():
    widget = token_bends(PLANTED, LEVELS)
    widget.selected, widget.order, widget.layer = "second one", "reversed", 2
    each = PLANTED["second one"]["reversed"]
    row = each.bends[1].round(3)
    told = f"most: {each.tokens[row.argmax()]} ({row.max():.3f}), least: {each.tokens[row.argmin()]} ({row.min():.3f})"
    assert told in widget.fallback() and f"Bend {widget.score():.3f} in layer 2" in widget.fallback()
    assert repr(widget) == "TokenBends(2 sentences, selected='second one', order='reversed', layer=2)"


def test_without_sentences_it_says_so(node):
    empty = TokenBends()
    assert math.isnan(empty.score()) and "There is no sentence to show." in empty.fallback()
    assert node(TokenBends._esm, "(m, state) => Number.isNaN(m.evaluate(state).score)", empty.state())


def test_the_stored_sentences_fit_the_page():
    stored = load_sentences(STORED)
    widget = token_bends(stored.sentences, stored.held_out)
    assert len(widget.sentences) == 8 and len(widget.levels) == 6
    assert len(str(widget.state())) < 60_000
    assert 0.1 < widget.score() < 1
