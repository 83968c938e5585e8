"""The paper's statements: what holds, what fails, and that a planted error is seen."""

import pytest
import torch

from affscore_book.symmetries import statements
from affscore_book.symmetries.groups import Monomial


def test_every_lemma_holds_in_every_case():
    table = statements.lemma_table()
    assert [row["right"] for row in table.rows()] == [row["cases"] for row in table.rows()]
    assert min(row["cases"] for row in table.rows()) > 60


def test_a_wrong_group_is_seen(monkeypatch):
    """Signs pass through no function but odd ones: as a group of all, they fail the rules of slopes and of phi."""
    monkeypatch.setattr(statements, "intertwiner", lambda name: Monomial("one", flip=-1))
    rows = {row["checked"]: row for row in statements.lemma_table().rows()}
    for lemma in ("Lemma 3.1: its formula gives our phi", "Lemma E.12: slopes obey the rule"):
        assert rows[lemma]["right"] < rows[lemma]["cases"]


def test_measures_are_judged_as_a_closed_form_says():
    rows = {row.what: row for row in statements.similarity_claims()}
    shifts = "ignores shifts too, of 10 draws"
    assert rows[f"Procrustes as printed: {shifts}"].ours == 0 and rows[f"Procrustes centred: {shifts}"].ours == 10
    # In three dimensions exp(-|x - y|_p) is positive definite for p up to 2, and for no larger p.
    assert rows["kernels of other norms with no negative eigenvalue, of p = 1.5, 3, 4, 8"].ours == 1
    corrected = [row for row in rows.values() if "centred" in row.what]
    assert [(row.kind, row.verdict) for row in corrected] == [("own", "held")] * 2, "no source has them"
    others = [row for row in rows.values() if "centred" not in row.what]
    assert {(row.kind, row.verdict) for row in others} == {("source", "agrees"), ("source", "disagrees")}


def test_a_measure_that_sees_everything_keeps_nothing(monkeypatch):
    monkeypatch.setattr(
        statements, "MEASURES", dict.fromkeys(statements.MEASURES, lambda x, y: float(torch.sum(x * y)))
    )
    assert [row.ours for row in statements.similarity_claims()[:5]] == [0] * 5


def test_the_wording_decides_two_statements(monkeypatch):
    """Slope -1 is the absolute value, and x + 1 is no linear function; the proofs exclude both."""
    rows = statements.wording_claims()
    assert {row.verdict for row in rows} == {"depends on the wording"}
    assert [row.ours for row in rows] == [5, 6, 1, 0]
    monkeypatch.setattr(statements, "passes", lambda function, a: True)
    assert statements.wording_claims()[3].ours > 60


@pytest.mark.parametrize("row", statements.size_claims(), ids=lambda row: row.what)
def test_numbers_of_parameters_are_the_printed_ones(row):
    assert row.ours == int(row.theirs.replace(",", ""))
