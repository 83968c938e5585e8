"""The twenty claims that matter: words by hand, verdicts and numbers from the rows of the ledger alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ledger
import matter
import pytest
from sphinx.errors import ExtensionError

BOOK = Path(__file__).resolve().parents[2] / "book"
ROW = {"source": "CVPR 2025, Figure 9", "what": "gap", "kind": "source", "ours": "0.71 [0.6, 0.8]", "verdict": "agrees",
       "chapter": "Theory", "address": "theory.html#claims-theory-1"}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "claims").mkdir(parents=True)

    def write(*claims):
        (tmp_path / "data" / "claims" / "matter.json").write_text(json.dumps(claims), encoding="utf-8")
        return tmp_path

    return write


def test_twenty_claims_are_found_and_each_source_has_some():
    found = list(matter.claims_that_matter(BOOK, ledger.every_row(BOOK)))
    assert len(found) == 20 == len({says for _, says, _ in found})
    assert {source for source, *_ in found} == {"CVPR 2025", "Symmetries", "Nonlinear Advantage v1"}
    assert all(says.endswith(".") and not re.search(r"\d", says) for _, says, _ in found)


def test_rows_are_those_of_the_place_with_the_words_and_none_of_ours(folder):
    claim = {"source": "CVPR 2025", "place": "Figure 9", "says": "It rises.", "only": "gap"}
    others = [ROW | {"source": "CVPR 2025, Figure 9, top"}, ROW | {"kind": "own"}, ROW | {"what": "width"}]
    ((source, says, rows),) = matter.claims_that_matter(folder(claim), [ROW, *others])
    assert (source, says, rows) == ("CVPR 2025", "It rises.", [ROW])
    with pytest.raises(ExtensionError, match="no row of the ledger is about 'CVPR 2025, Figure 9'"):
        list(matter.claims_that_matter(folder(claim), others))


def test_verdict_and_number_are_the_rows_own():
    other = ROW | {"what": "width", "ours": "-", "verdict": "undecided"}
    text = matter.item("It rises.", [other, ROW]).astext()
    assert "It rises. Mixed: 1 undecided, 1 agrees (gap: 0.71 [0.6, 0.8])." in text
    assert "2 measurements" in text and "width, undecided" in text and "Theory" in text
    alone = matter.item("It rises.", [ROW | {"verdict": "disagrees", "ours": "0.1"}]).astext()
    assert "Disagrees (gap: 0.1)." in alone and "One measurement" in alone
    proved = matter.item("It rises.", [ROW | {"ours": "", "verdict": "proved", "address": ""}]).astext()
    assert "It rises. Proved." in proved


def test_each_measurement_links_to_its_cell():
    (link,) = matter.item("It rises.", [ROW]).findall(matter.nodes.reference)
    assert link["refuri"] == ROW["address"] and link.astext() == "Theory"
