"""The page and Python say the same of every sentence, order and layer."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

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


def test_the_page_computes_what_python_computes(node):
    widgets = []
    for name, order, layer in itertools.product(("first one", "second one", ""), ORDERS, (1, 2, 3, 7)):
        widgets.append(token_bends(PLANTED, LEVELS))
        widgets[-1].selected, widgets[-1].order, widgets[-1].layer = name, order, layer
    found = node(TokenBends._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                 [widget.state() for widget in widgets])  # fmt: skip
    np.testing.assert_allclose(found, [widget.score() for widget in widgets], atol=1e-12)


def test_number_is_the_bends_root_mean_square():
    """The number is the root mean square of the layer's bends, and the text names the most and the least bent token."""
    widget = token_bends(PLANTED, LEVELS)
    widget.selected, widget.order, widget.layer = "second one", "reversed", 2
    each = PLANTED["second one"]["reversed"]
    row = each.bends[1].round(3)
    assert widget.score() == pytest.approx(np.linalg.norm(row) / math.sqrt(len(row)))
    told = f"most: {each.tokens[row.argmax()]} ({row.max():.3f}), least: {each.tokens[row.argmin()]} ({row.min():.3f})"
    assert told in widget.picture() and f"Bend {widget.score():.3f} in layer 2" in widget.picture()
    assert repr(widget) == "TokenBends(2 sentences, selected='second one', order='reversed', layer=2)"
    assert "There is no sentence to show." in TokenBends().picture()


def test_the_stored_sentences_fit_the_page():
    stored = load_sentences(STORED)
    widget = token_bends(stored.sentences, stored.held_out)
    assert len(widget.sentences) == 8 and len(widget.levels) == 6
    assert len(str(widget.state())) < 60_000
    assert 0.1 < widget.score() < 1
