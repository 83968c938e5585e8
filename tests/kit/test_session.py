"""Cells that run in a page: what runs before what, and what is shown."""

from __future__ import annotations

import sys
import warnings

import pytest

from affscore_book.kit.session import LONGEST, Session, texts_behind

PAGE = {"a": "x = 1", "b": "y = x + 1", "c": "x = 10", "d": "z = x + y", "e": "print(z)"}


class Reader:
    """A reader of a page: presses Run, and sees what the page shows."""

    def __init__(self, cells: dict[str, str]) -> None:
        self.cells, self.session, self.ran = dict(cells), Session(), []

    def press(self, wanted: str) -> list[tuple[str, str]]:
        self.ran = self.session.plan(self.cells, wanted)
        shown: list[tuple[str, str]] = []
        for cell in self.ran:
            shown.clear()
            if not self.session.run(cell, self.cells[cell], lambda *part: shown.append(part)):
                break
        return shown


def test_cells_that_a_cell_needs_run_first_in_order():
    """The cells that a cell needs run before it, in the order of the page."""
    reader = Reader(PAGE)
    assert reader.press("e") == [("text", "12\n")] and reader.ran == ["a", "b", "c", "d", "e"]


def test_a_cell_that_needs_nothing_runs_alone():
    reader = Reader(PAGE)
    reader.press("c")
    assert reader.ran == ["c"]


def test_what_has_run_does_not_run_again():
    reader = Reader(PAGE)
    reader.press("e")
    reader.press("e")
    assert reader.ran == ["e"]


def test_a_changed_cell_is_used_by_what_follows():
    reader = Reader(PAGE)
    reader.press("e")
    reader.cells["a"] = "x = 5"
    assert reader.press("e") == [("text", "16\n")]
    assert reader.ran == ["a", "b", "c", "d", "e"], "c runs again, for its x comes after that of a"


def test_a_cell_that_ran_since_is_used_by_what_follows():
    reader = Reader(PAGE)
    reader.press("e")
    reader.cells["c"] = "x = 20"
    reader.press("c")
    assert reader.press("e") == [("text", "22\n")] and reader.ran == ["d", "e"]


def test_name_is_bound_by_the_last_cell_above():
    """A name is bound by the last cell above that binds it, not by one below."""
    reader = Reader(PAGE)
    reader.press("e")
    reader.cells["f"] = "y"
    reader.press("b")
    assert reader.ran == ["a", "b"], "x is bound by c, further down"
    assert reader.session.names["y"] == 2


def test_cell_that_rebinds_a_name_starts_from_above():
    """A cell that reads and binds a name starts from the value of the cell above."""
    reader = Reader({"a": "n = 0", "b": "n = n + 1", "c": "n"})
    for _ in range(2):
        reader.press("b")
        assert reader.press("c") == [("text", "1\n")]


def test_a_function_is_run_again_after_what_it_calls():
    reader = Reader({"a": "def f(): return 1", "b": "def g(): return f()", "c": "g()"})
    assert reader.press("c") == [("text", "1\n")]
    reader.cells["a"] = "def f(): return 2"
    assert reader.press("c") == [("text", "2\n")]


def test_after_an_error_the_cells_that_follow_do_not_run():
    reader = Reader({"a": "x = 1 / 0", "b": "x"})
    assert reader.press("b") == [("error", "line 1: x = 1 / 0\nZeroDivisionError: division by zero")]
    reader.cells["a"] = "x = 1"
    assert reader.press("b") == [("text", "1\n")]


def test_an_error_in_another_cell_says_so():
    reader = Reader({"a": "def f(x):\n    return 1 / x", "b": "f(0)"})
    ((kind, text),) = reader.press("b")
    assert kind == "error" and text.splitlines()[:2] == ["line 1: f(0)", "another cell, line 2: return 1 / x"]


def test_the_note_of_an_error_is_shown():
    reader = Reader({"a": "e = ValueError('no')\ne.add_note('with ReLU')\nraise e"})
    assert reader.press("a")[0][1].splitlines() == ["line 3: raise e", "ValueError: no", "with ReLU"]


def test_an_error_of_syntax_names_its_line():
    assert Reader({"a": "x = 1\ny = ("}).press("a") == [("error", "line 2: y = (\nSyntaxError: '(' was never closed")]


@pytest.mark.parametrize("source", ["1 + 1;", "x = 2", "None", ""])
def test_what_has_no_value_shows_nothing(source):
    assert Reader({"a": source}).press("a") == []


def test_a_value_shows_its_html_and_prints_stand_before_it():
    source = "class T:\n    def _repr_html_(self): return '<b>t</b>'\nprint('first')\nT()"
    assert Reader({"a": source}).press("a") == [("text", "first\n"), ("html", "<b>t</b>")]


def test_display_shows_a_value_in_the_middle():
    assert Reader({"a": "display(1)\nprint(2)"}).press("a") == [("text", "1\n"), ("text", "2\n")]


def test_what_exits_leaves_the_session_alive():
    reader = Reader({"a": "raise SystemExit", "b": "1"})
    assert reader.press("a")[0][0] == "error" and reader.press("b") == [("text", "1\n")]


def test_a_long_output_is_cut():
    shown = Reader({"a": "for k in range(100_000): print(k)"}).press("a")
    assert sum(len(text) for _, text in shown) < LONGEST + 100 and "20,000 characters" in shown[-1][1]


def test_broken_cell_shows_its_error_and_hides_old_values():
    """A broken cell above shows its error, and no older value is used."""
    reader = Reader({"a": "x = 1", "b": "print(x)"})
    reader.press("b")
    reader.cells["a"] = "x = 5)"
    assert reader.press("b")[0][0] == "error" and reader.ran == ["a", "b"]


def test_value_bound_before_an_error_is_not_reused():
    """A value that a cell bound before its error is not taken for that of another cell."""
    reader = Reader({"a": "x = 1", "d": "print(x)", "b": "x = 2\n1 / 0"})
    for cell in ("d", "b", "d"):
        shown = reader.press(cell)
    assert shown == [("text", "1\n")]


def test_a_warning_is_shown_at_every_run(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: print(message, file=sys.stderr))
    reader = Reader({"a": "import warnings\nwarnings.simplefilter('default')\nwarnings.warn('low')"})
    assert all("low" in "".join(text for _, text in reader.press("a")) for _ in range(2))


def test_long_values_and_deep_errors_are_cut():
    shown = Reader({"a": "list(range(100_000))"}).press("a")
    assert len(shown[0][1]) < LONGEST + 10
    (_, text) = Reader({"a": "def f(n): return f(n)\nf(1)"}).press("a")[-1]
    assert len(text.splitlines()) < 12


def test_a_class_is_shown_as_itself():
    assert Reader({"a": "class T:\n    def _repr_html_(self): return ''\nT"}).press("a")[0][0] == "text"


def test_output_depends_only_on_the_cells_it_needs():
    """An output depends on the texts of the cells that it needs and on no others."""
    before = texts_behind(PAGE)
    after = texts_behind(PAGE | {"b": "y = 5"})
    assert {cell for cell in PAGE if before[cell] != after[cell]} == {"b", "d", "e"}


def test_spaces_at_the_end_of_a_cell_change_no_output():
    assert texts_behind(PAGE) == texts_behind({cell: f"{text}\n" for cell, text in PAGE.items()})
