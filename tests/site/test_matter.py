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
    assert len(found) == 20 == len({claim["says"] for claim, _ in found})
    assert {claim["source"] for claim, _ in found} == set(matter.PAPERS)
    assert all(claim["says"].endswith(".") and not re.search(r"\d", claim["says"]) for claim, _ in found)
    assert not any(re.search(r"[.,]\d|\.$", claim.get("here", "")) for claim, _ in found)


def test_rows_are_those_of_the_place_with_the_words_and_none_of_ours(folder):
    claim = {"source": "CVPR 2025", "place": "Figure 9", "says": "It rises.", "only": "gap"}
    others = [ROW | {"source": "CVPR 2025, Figure 9, top"}, ROW | {"kind": "own"}, ROW | {"what": "width"}]
    ((found, rows),) = matter.claims_that_matter(folder(claim), [ROW, *others])
    assert (found, rows) == (claim, [ROW])
    with pytest.raises(ExtensionError, match="no row of the ledger is about 'CVPR 2025, Figure 9'"):
        list(matter.claims_that_matter(folder(claim), others))


def test_verdict_and_number_are_the_rows_own():
    claim, other = {"says": "It rises."}, ROW | {"what": "width", "ours": "-", "verdict": "undecided"}
    text = matter.item(claim | {"here": "in two networks"}, [other, ROW]).astext()
    assert "It rises. Mixed: undecided once, agrees once, in two networks." in text
    assert "2 measurements" in text and "gap: 0.71 [0.6, 0.8], agrees" in text and "width, undecided" in text
    alone = matter.item(claim, [ROW | {"verdict": "disagrees", "ours": "0.1"}]).astext()
    assert "Disagrees (gap: 0.1)." in alone and "One measurement" in alone
    turned = matter.item(claim, [ROW | {"verdict": "depends on n"}, ROW | {"verdict": "depends on n"}]).astext()
    assert "Depends on n." in turned
    proved = matter.item(claim, [ROW | {"ours": "", "verdict": "proved", "address": ""}]).astext()
    assert "It rises. Proved." in proved
    (link,) = matter.item(claim, [ROW]).findall(matter.nodes.reference)
    assert link["refuri"] == ROW["address"] and link.astext() == "Theory"
