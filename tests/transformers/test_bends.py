"""Bends of tokens: against the map written out with matrix roots, and their mean is the paired score."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm

from affscore import paired_affinity_score
from affscore_book.transformers.bends import ORDERS, load_sentences
from affscore_study.transformers.bends import SENTENCES, fit_layer, in_order, sentence_bends
from affscore_study.transformers.minilm import all_one_length, gelu_pairs, load_minilm
from affscore_study.transformers.texts import kind_of_text

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers"
FILE = FOLDER / "minilm" / "sentences.json"


def cloud(seed: int, tokens: int = 800, channels: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randn(tokens, channels, generator=generator) @ torch.randn(channels, channels, generator=generator)
    return mixed, torch.nn.functional.gelu(mixed)


def test_bends_are_their_formula_and_give_the_paired_score():
    """Bends are their formula written out, and their root mean square is one minus the paired score."""
    before, after = cloud(0)
    x, y = (value.double().numpy() for value in (before, after))
    cov_x, cov_y = np.cov(x.T, bias=True), np.cov(y.T, bias=True)
    root = sqrtm(cov_x).real
    back = np.linalg.inv(root)
    a = back @ sqrtm(root @ cov_y @ root).real @ back
    missed = y - ((x - x.mean(axis=0)) @ a.T + y.mean(axis=0))
    expected = np.linalg.norm(missed, axis=1) / np.sqrt(2 * np.trace(cov_y))
    fitted = fit_layer(before, after)
    assert fitted.bends(before, after).numpy() == pytest.approx(expected, abs=1e-6)
    score = paired_affinity_score(before, after, covariance="empirical").item()
    assert fitted.level == pytest.approx(1 - score, abs=1e-9)


def test_orders_keep_the_words():
    for sentence in SENTENCES:
        assert in_order(sentence, "as written") == sentence
        assert in_order(in_order(sentence, "reversed"), "reversed") == sentence
        assert Counter(in_order(sentence, "shuffled").split()) == Counter(sentence.split())
        assert len({in_order(sentence, order) for order in ORDERS}) == 3
    with pytest.raises(ValueError, match="order is 'random'"):
        in_order("a b", "random")


def test_bends_of_a_sentence_are_those_of_its_tokens():
    network = load_minilm()
    batch = all_one_length(kind_of_text("english", FOLDER)[:4], 16, network.tokens)
    maps = [fit_layer(before.flatten(0, 1), after.flatten(0, 1)) for before, after in gelu_pairs(network.model, batch)]
    tokens, bends = sentence_bends(network, maps, "The loop ends.")
    assert tokens == ["[CLS]", "the", "loop", "ends", ".", "[SEP]"]
    pairs = gelu_pairs(network.model, {"input_ids": network.tokens(["The loop ends."])["input_ids"]})
    for row, fitted, (before, after) in zip(bends, maps, pairs, strict=True):
        alone = [fitted.bends(before[0, i : i + 1], after[0, i : i + 1]).item() for i in range(len(tokens))]
        assert row == pytest.approx(alone)


def test_stored_sentences_are_the_sentences():
    found, levels, held_out = load_sentences(FILE)
    assert list(found) == list(SENTENCES) and levels.shape == held_out.shape == (6,)
    assert (held_out > levels).all()  # a map fits its own tokens best
    for sentence, orders in found.items():
        assert list(orders) == list(ORDERS)
        for order, each in orders.items():
            words = "".join(token.removeprefix("##") for token in each.tokens[1:-1])
            assert words == in_order(sentence, order).replace(" ", "")
            assert (each.bends > 0).all() and (each.bends < 3).all()
