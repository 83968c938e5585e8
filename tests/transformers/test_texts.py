"""Texts: prose without code, the same words in another order, pieces of real lines; and the stored ones are such."""

import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from scripts import load_script

from affscore_study.transformers.texts import (
    MODULES,
    TEXTS,
    kind_of_text,
    prose_of_reference,
    words_shuffled,
)

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers"
PROSE = " ".join(["A sentence of words"] * 6) + "."


@pytest.mark.parametrize("piece", [
    "   for x in y:\n       " + "print(x) " * 30 + ".",  # code: lines of several indents
    "* " + PROSE,  # a list
    'atom ::= "a" ' + PROSE,  # a grammar
    "A | table\n==== | ====\n" + PROSE,
    PROSE.removesuffix("."),  # a heading, or what leads to an example
    "Too short.",
    " ".join([PROSE] * 6),
])  # fmt: skip
def test_what_is_no_prose_is_left_out(piece):
    first, second = PROSE.split(" of ", 1)  # indented prose is prose, with its lines joined, and counts once
    text = f"{PROSE}\n\n{piece}\n\n   {first} of\n   {second}"
    assert prose_of_reference({"topic": text}) == [PROSE]


@pytest.mark.parametrize("seed", range(2))
def test_shuffling_keeps_the_words_of_each_text_and_moves_them(seed):
    texts = [f"{i} " + PROSE + " and some other words at its end" for i in range(20)]
    found = words_shuffled(texts, seed)
    assert [Counter(text.split()) for text in found] == [Counter(text.split()) for text in texts]
    assert all(a != b for a, b in zip(found, texts, strict=True))
    assert found == words_shuffled(texts, seed) != words_shuffled(texts, seed + 1)


def test_script_writes_prose_and_code_of_pythons_library(tmp_path):
    """The script writes prose and lines of the running Python, and the stored texts are of this kind."""
    (tmp_path / "minilm").mkdir()
    load_script(FOLDER / "minilm" / "make.py").main(["texts", "--out", str(tmp_path / "minilm")])
    folder = Path(sysconfig.get_paths()["stdlib"])
    everything = " ".join(" ".join((folder / f"{name}.py").read_text(encoding="utf-8").split()) for name in MODULES)
    for place in (tmp_path, FOLDER):
        english, code = (kind_of_text(kind, place) for kind in ("english", "code"))
        for texts in (english, code):
            assert len(texts) == len(set(texts)) == TEXTS
            assert all(20 <= len(text.split()) <= 120 for text in texts)
        assert all(text.endswith(".") for text in english) and english != sorted(english)  # any part is a sample
        assert not any("://" in text for text in code) and (place == FOLDER or all(text in everything for text in code))
        shuffled = kind_of_text("shuffled", place, seed=3)
        assert [Counter(text.split()) for text in shuffled] == [Counter(text.split()) for text in english]
    with pytest.raises(ValueError, match="kind is 'random'"):  # tokens, and no text
        kind_of_text("random", FOLDER)
