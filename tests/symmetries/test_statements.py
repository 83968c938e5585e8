"""The paper's statements: what holds, what fails, and that a planted error is seen."""

from affscore_study.symmetries import statements


def test_every_lemma_holds_in_every_case():
    table = statements.lemma_table()
    assert [row["right"] for row in table.rows()] == [row["cases"] for row in table.rows()]
    assert min(row["cases"] for row in table.rows()) > 60


def test_measures_are_judged_as_a_closed_form_says():
    rows = {row.what: row for row in statements.similarity_claims()}
    shifts = "ignores shifts too, of 10 draws"
    assert rows[f"Procrustes as printed: {shifts}"].ours == 0 and rows[f"Procrustes centred: {shifts}"].ours == 10
    # In three dimensions exp(-|x - y|_p) is positive definite for p up to 2, and for no larger p.
    assert rows["kernels of other norms with no negative eigenvalue, of p = 1.5, 3, 4, 8"].ours == 1
    definitions = [f"{name}: 1 for Y = XA + 1v, of 10 draws" for name in statements.MEASURES]
    assert [rows[what].ours for what in definitions] == [0, 10, 10]


def test_the_wording_decides_two_statements():
    """Slope -1 is the absolute value, and x + 1 is no linear function; the proofs exclude both."""
    rows = statements.wording_claims()
    assert {row.verdict for row in rows} == {"depends on the wording"}
    assert [row.ours for row in rows] == [5, 6, 1, 0]


def test_numbers_of_parameters_are_the_printed_ones():
    rows = statements.size_claims()
    assert [row.ours for row in rows] == [int(row.theirs.replace(",", "")) for row in rows]
