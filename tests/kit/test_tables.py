"""Tables give the same numbers as text, HTML and CSV."""

import csv
import io
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from affscore_book.kit.tables import Table


def test_tables_give_the_same_numbers_in_every_form():
    table = Table(
        {"model": ["a|b", "<c>"], "n": [3, None], "score": [0.123456789, math.nan]}, digits=3, notes=["A note."]
    )
    assert repr(table) == "model | n | score\na|b   | 3 | 0.123\n<c>   | - |     -\nA note."
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert rows == [{"model": "a|b", "n": "3", "score": "0.123456789"}, {"model": "<c>", "n": "", "score": ""}]
    html = table._repr_html_()
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    assert [cell.text for cell in tree.iter("td")] == ["a|b", "3", "0.123", "<c>", "-", "-"]
    assert [cell.text for cell in tree.iter("th")] == ["model", "n", "score"]
    np.testing.assert_array_equal(table["n"], [3, math.nan])


def test_tables_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"columns have 2 \(a\), 1 \(b\) values; they should have the same number"):
        Table({"a": [1, 2], "b": [1]})
    with pytest.raises(KeyError, match="there is no row 'z'; there are a, b"):
        Table({"name": ["a", "b"]}).row("z")
    assert repr(Table({"x": [-0.0001]})) == "   x\n0.00"


def test_tables_from_rows_and_without_alignment():
    """Oracle: the same table from columns."""
    rows = [{"name": "a", "n": 1.0}, {"n": 2.5, "name": "b"}]
    table, plain = Table.from_rows(rows), Table({"name": ["a", "b"], "n": [1.0, 2.5]}, align=False)
    assert table.rows() == rows and repr(table) == repr(plain)
    assert re.sub(r' style="text-align: (right|left)"', "", table._repr_html_()) == plain._repr_html_()
    assert "style" in table._repr_html_() and "style" not in plain._repr_html_()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n@x", "=cmd|' /C calc'!A0"])
def test_a_spreadsheet_takes_no_text_for_a_formula(text):
    """Numbers stay numbers, headings are texts too."""
    table = Table({text: [text, "-", "a=b", "a\rb"], "n": [-1.5, 2, None, math.nan]})
    safe = f"'{' '.join(text.splitlines())}"
    rows = list(csv.reader(io.StringIO(table.csv(), newline="")))
    assert rows == [[safe, "n"], [safe, "-1.5"], ["-", "2"], ["a=b", ""], ["a b", ""]]
