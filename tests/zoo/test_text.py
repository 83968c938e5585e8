"""Text as data: every line once, in the network's own tokens; a damaged file is a sentence."""

import numpy as np
import pytest
import torch
from image_files import pixels
from small_hub import LONGEST, SENTENCES, WORDS, text_folder, tokenizer

from affscore import signature
from affscore.zoo.datasets import check_name, fingerprint, load_dataset
from affscore.zoo.models import load_model
from affscore.zoo.text import Tokens, read_texts, text_files

LINES = SENTENCES.split("\n")[:-1]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text(SENTENCES, encoding="utf-8")
    return path


def test_a_line_is_a_sample(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n  two  \n\n \t\nthree\rfour äß\u2028five".encode())
    assert read_texts(f"text:{path}")[0] == ["one", "two", "three", "four äß\u2028five"]


def test_folder_of_texts_is_sorted_and_hashed(tmp_path):
    """The texts of a folder are read in the order of their names, and its fingerprint follows their content."""
    for name, text in (("b.txt", "three\n"), ("a/z.txt", "one\ntwo"), ("c.md", "not this")):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text(text)
    texts, facts = read_texts(f"text:{tmp_path / 't'}")
    assert texts == ["one", "two", "three"]
    assert (facts["dataset"], facts["texts"], facts["source"]) == ("t", 3, "lines of text")
    assert fingerprint(f"text:{tmp_path / 't'}") == facts
    (tmp_path / "t/b.txt").write_text("Three\n")
    assert read_texts(f"text:{tmp_path / 't'}")[1]["sha256"] != facts["sha256"]


@pytest.mark.parametrize(("content", "words"), [
    (b"good\nb\xffd", r"a\.txt is not UTF-8 text \(byte 6 is invalid start byte\)"),
    ("wide".encode("utf-16-le"), "is not a text file: it contains null bytes"),
    (b"", "holds no text"),
    (b" \n\r\n\t\n", "holds no text"),
])  # fmt: skip
def test_damaged_and_empty_files_are_sentences(tmp_path, content, words):
    (tmp_path / "a.txt").write_bytes(content)
    for name in (f"text:{tmp_path / 'a.txt'}", f"text:{tmp_path}"):
        with pytest.raises(ValueError, match=words):
            read_texts(name)


def test_what_is_no_file_is_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file and no folder .*nothing\.txt"):
        check_name(f"text:{tmp_path / 'nothing.txt'}")
    with pytest.raises(FileNotFoundError, match=r"holds no file whose name ends with \.txt"):
        check_name(f"text:{tmp_path}")
    assert text_files("imagenet") == text_files(tmp_path) == []


@pytest.mark.parametrize("pad", ["[PAD]", None])
def test_tokens_are_those_of_each_text_alone(pad):
    """Padding is on the right, masked, and at no place of a token; long texts are cut."""
    tokens = Tokens(tokenizer(pad), LONGEST)
    batch = tokens(LINES)
    assert batch.keys() == {"input_ids", "attention_mask"} and batch["input_ids"].dtype == torch.int64
    for line, ids, mask in zip(LINES, batch["input_ids"], batch["attention_mask"], strict=True):
        alone = [2, *(WORDS.index(word) for word in line.split()[: LONGEST - 2]), 3]
        assert ids[mask == 1].tolist() == alone and mask.tolist() == sorted(mask.tolist(), reverse=True)
        assert tokens([line])["input_ids"].tolist() == [alone]
    assert batch["input_ids"].shape == (6, LONGEST)


def test_token_limit_is_the_smaller_of_network_and_tokenizer():
    """The limit on tokens is that of the network or the tokenizer, or there is none."""
    words = tokenizer()
    assert (Tokens(words).longest, Tokens(words, 5).longest) == (None, 5)
    assert Tokens(words)(["the " * 2000])["input_ids"].shape == (1, 2002)
    words.model_max_length = 4
    assert Tokens(words, 5).longest == Tokens(words).longest == 4
    assert Tokens(words)(["the " * 9])["input_ids"].shape == (1, 4)
    assert "longest=4" in repr(Tokens(words)) and repr(Tokens(words)) == repr(Tokens(words))


@pytest.mark.parametrize("seed", range(2))
def test_batches_hold_every_text_once_in_an_order_of_the_seed(file, seed):
    made = [load_dataset(f"text:{file}", preprocess=Tokens(tokenizer()), batch_size=2, seed=seed) for _ in range(2)]
    rows = [ids[mask == 1].tolist() for batch in made[0] for ids, mask in zip(*batch.values(), strict=True)]
    assert sorted(rows) == sorted(Tokens(tokenizer())([line])["input_ids"][0].tolist() for line in LINES)
    assert all(torch.equal(a[key], b[key]) for a, b in zip(*made, strict=True) for key in a)
    facts = made[0].provenance
    assert (facts["texts"], facts["batches"], facts["seed"]) == (6, 3, seed) and "images" not in facts
    assert repr(made[0]) == "Batches('lines.txt', 3 of 2 texts)"
    ((batch, _),) = made[0].read([2])
    assert torch.equal(batch["input_ids"], made[0][2]["input_ids"])


@pytest.mark.parametrize(("name", "options", "words"), [
    ("random", {"preprocess": Tokens(tokenizer())}, "'random' does not suit this network; it should be text"),
    ("text:FILE", {"preprocess": pixels}, "does not suit this network; it should be images"),
    ("text:FILE", {"batch_size": 7}, r"lines\.txt has 6 texts, too few for 1 x 7"),
    ("text:FILE", {"batch_size": 1}, "batch_size is 1; it should be a whole number of at least 2"),
    ("text:FILE", {"workers": 2}, "workers is 2; it should be 0 for texts"),
])  # fmt: skip
def test_what_does_not_fit_is_a_sentence(file, name, options, words):
    options = {"preprocess": Tokens(tokenizer()), "batch_size": 2} | options
    with pytest.raises(ValueError, match=words):
        load_dataset(name.replace("FILE", str(file)), **options)


@pytest.mark.parametrize("kind", ["BertModel", "GPT2Model"])
def test_scores_of_text_do_not_depend_on_the_pieces(tmp_path, file, kind):
    """Nor on the padding: against the sentences one by one, the longest of which is cut."""
    net = load_model(f"hf:{text_folder(tmp_path / kind, kind)}")
    batches = load_dataset(f"text:{file}", preprocess=net.preprocess, batch_size=6)
    whole = signature(net.model, batches)
    for micro_batch in (1, 4):
        parts = signature(net.model, batches, micro_batch=micro_batch)
        np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-5)
    assert [call.masked for call in whole.calls] == [True, True] + [False] * (kind == "BertModel")
