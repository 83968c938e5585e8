"""Texts: prose without code, the same words in another order, pieces of real lines; and the stored ones are such."""

from __future__ import annotations

import sysconfig
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from grids import each

from affscore_book.transformers.texts import (
    MODULES,
    TEXTS,
    code_of_library,
    kind_of_text,
    prose_of_reference,
    words_shuffled,
)

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers"
PROSE = " ".join(["A sentence of words"] * 6) + "."


def test_prose_is_paragraphs_of_20_to_120_words_each_once():
    found = prose_of_reference(topics)
    assert len(found) > 500
    assert found == sorted(set(found))
    assert all(20 <= len(text.split()) <= 120 and text.endswith(".") for text in found)


@each(
    "piece",
    [
        "   for x in y:\n       " + "print(x) " * 30 + ".",  # code: lines of several indents
        "* " + PROSE,  # a list
        'atom ::= "a" ' + PROSE,  # a grammar
        "A | table\n==== | ====\n" + PROSE,
        PROSE.removesuffix("."),  # a heading, or what leads to an example
        "Too short.",
        " ".join([PROSE] * 6),
    ],
)
def test_what_is_no_prose_is_left_out(piece):
    assert prose_of_reference({"topic": f"{PROSE}\n\n{piece}\n\n{PROSE}"}) == [PROSE]


def test_indented_prose_counts_once_with_its_lines_joined():
    first, second = PROSE.split(" of ", 1)
    assert prose_of_reference({"topic": f"{PROSE}\n\n   {first} of\n   {second}"}) == [PROSE]


@each("seed", range(2))
def test_shuffling_keeps_the_words_of_each_text_and_moves_them(seed):
    texts = [f"{i} " + PROSE + " and some other words at its end" for i in range(20)]
    found = words_shuffled(texts, seed)
    assert [Counter(text.split()) for text in found] == [Counter(text.split()) for text in texts]
    assert all(a != b for a, b in zip(found, texts, strict=True))
    assert found == words_shuffled(texts, seed) != words_shuffled(texts, seed + 1)


def test_code_is_lines_of_the_library():
    pieces = code_of_library(0)
    folder = Path(sysconfig.get_paths()["stdlib"])
    everything = " ".join(" ".join((folder / f"{name}.py").read_text(encoding="utf-8").split()) for name in MODULES)
    assert len(set(pieces)) == TEXTS and all(piece in everything for piece in pieces)
    assert not any("://" in piece for piece in pieces)


def test_the_stored_texts_are_512_of_each_kind():
    english, code = (kind_of_text(kind, FOLDER) for kind in ("english", "code"))
    for texts in (english, code):
        assert len(texts) == len(set(texts)) == TEXTS
        assert all(20 <= len(text.split()) <= 120 for text in texts)
    assert english != sorted(english)  # so that any part of them is a sample
    assert [Counter(text.split()) for text in kind_of_text("shuffled", FOLDER, seed=3)] == [
        Counter(text.split()) for text in english
    ]
    with pytest.raises(ValueError, match="kind is 'random'"):  # tokens, and no text
        kind_of_text("random", FOLDER)
