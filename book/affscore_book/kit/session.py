"""Runs the cells of a page in the browser: finds the cells that must run before a given cell, and shows their outputs.

The worker of the page (``_static/run_worker.js``) holds one :class:`Session` and passes on what the session emits. The
module needs only the standard library, so that the tests and the browser use the same module.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from io import TextIOBase
from typing import Any

from affscore_book.kit.names import read_and_bound

__all__ = ["Session", "texts_behind"]

#: A function that takes an output of a cell: its kind, "text", "html" or "error", and its text.
Emit = Callable[[str, str], None]

#: The number of characters that a cell may print; an endless loop must not fill the page.
LONGEST = 20_000


class _Printed(TextIOBase):
    """The standard output, which emits the printed text line by line."""

    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._emit, self._held, self._left = emit, "", LONGEST

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._held += text
        if "\n" in text or len(self._held) > 1000:
            self.flush()
        return len(text)

    def flush(self) -> None:
        text, self._held = self._held, ""
        if text and self._left >= 0:
            self._emit("text", text[: self._left])
            self._left -= len(text)
            if self._left < 0:
                self._emit("text", f"\n... (a cell shows {LONGEST:,} characters)\n")


class Session:
    """The state that the cells of one page share, in the order in which a reader runs them.

    A cell is known by its ``id``. It *needs* the cells above it that last bound the names it reads, and the cells that
    these cells need. They run first, unless they have run with the same text and no other cell has bound the names
    since. The session does not notice changes that a cell makes in place, nor a name that a function reads and that a
    cell below the function binds again.
    """

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__", "display": self._display}
        self._emit: Emit = lambda kind, text: None
        self._text_of: dict[str, str] = {}
        self._turn_of: dict[str, int] = {}
        self._owner: dict[str, str] = {}

    def plan(self, cells: Mapping[str, str], wanted: str) -> list[str]:
        """The cells to run, in order, with ``wanted`` last. ``cells`` maps the ids of the page, in its order, to texts.

        A cell with a syntax error is run alone, so that its error is shown.
        """
        order = list(cells)
        known = {cell: _names(source) for cell, source in cells.items()}
        sources = _sources(wanted, known)
        # Run the outdated cells again, in page order, and the sources of names that they would find bound elsewhere.
        steps = {wanted}
        while True:
            more = {cell for cell in sources if cell not in steps and self._out_of_date(cell, cells, sources, steps)}
            for cell in steps | more:
                for name, source in sources[cell].items():
                    above = order[: order.index(cell)][::-1]
                    run = next((c for c in above if c in steps | more and name in known[c][1]), None)
                    if (run or self._owner.get(name)) != source:
                        more.add(source)
            if more <= steps:
                return [cell for cell in order if cell in steps]
            steps |= more

    def _out_of_date(
        self, cell: str, cells: Mapping[str, str], sources: Mapping[str, Mapping[str, str]], steps: set[str]
    ) -> bool:
        """Whether the cell has not run with this text, or a cell that it needs has run since or is about to run."""
        turn = self._turn_of.get(cell)
        if turn is None or self._text_of.get(cell) != cells[cell]:
            return True
        return any(source in steps or self._turn_of.get(source, turn) >= turn for source in sources[cell].values())

    def run(self, cell: str, source: str, emit: Emit) -> bool:
        """Run a cell and emit its outputs. Returns False after an error, which is emitted as a few lines."""
        self._emit = emit
        printed = _Printed(emit)
        name = f"<cell {cell}>"
        self.names.pop("__warningregistry__", None)  # a second run warns again
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                value = self._execute(source, name)
                printed.flush()
                if value is not None:
                    self._display(value)
        except BaseException as error:  # KeyboardInterrupt and SystemExit as well: the worker continues
            printed.flush()
            emit("error", _short(error, name))
            self._text_of.pop(cell, None)
            self._owner |= dict.fromkeys(_names(source)[1], cell)  # it may have bound some of them
            return False
        self._text_of[cell] = source
        self._turn_of[cell] = 1 + max(self._turn_of.values(), default=0)
        self._owner |= dict.fromkeys(read_and_bound(source)[1], cell)
        return True

    def _execute(self, source: str, name: str) -> Any:
        """The value of the last expression; None if there is none, or if a semicolon follows it."""
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self.names)
        if last is None:
            return None
        assert isinstance(last, ast.Expr)
        value = eval(compile(ast.Expression(last.value), name, "eval"), self.names)
        return None if source.rstrip().endswith(";") else value

    def _display(self, *values: Any) -> None:
        """Show values as a notebook does, with their HTML or SVG if they have one."""
        for value in values:
            for method in ("_repr_html_", "_repr_svg_"):
                if not isinstance(value, type) and hasattr(value, method):
                    self._emit("html", getattr(value, method)())
                    break
            else:
                text = repr(value)
                self._emit("text", f"{text if len(text) <= LONGEST else text[:LONGEST] + ' ...'}\n")


def _sources(wanted: str, known: Mapping[str, tuple[frozenset[str], frozenset[str]]]) -> dict[str, dict[str, str]]:
    """For a cell and each cell it needs, the last cell above that binds each name; ``known`` has names in order."""
    order = list(known)

    def needs(cell: str) -> dict[str, str]:
        above = order[: order.index(cell)][::-1]
        found = {name: next((c for c in above if name in known[c][1]), None) for name in known[cell][0]}
        return {name: source for name, source in found.items() if source is not None}

    sources = {wanted: needs(wanted)}
    for cell in order[: order.index(wanted)][::-1]:
        if any(cell in found.values() for found in sources.values()):
            sources[cell] = needs(cell)
    return sources


def texts_behind(cells: Mapping[str, str]) -> dict[str, str]:
    """For each cell one text, made of its text and the texts of the cells it needs; its output depends on these only.

    >>> texts_behind({"a": "x = 1", "b": "y = 2", "c": "print(x)"})["c"]
    'c: print(x)\\na: x = 1'
    """
    known = {cell: _names(source) for cell, source in cells.items()}
    return {cell: "\n".join(f"{c}: {cells[c].rstrip()}" for c in _sources(cell, known)) for cell in cells}


def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    try:
        return read_and_bound(source)
    except SyntaxError:
        # Roughly the names that it would bind: a cell that needs it should show this error, not use an older value.
        found = re.findall(r"^(?:async\s+)?(?:def|class)\s+(\w+)|^([\w, ]+?)\s*=(?!=)", source, re.MULTILINE)
        return frozenset(), frozenset(name for pair in found for part in pair for name in re.findall(r"\w+", part))


def _short(error: BaseException, name: str) -> str:
    """The error, and the lines of the cell at which it occurred, without the frames of libraries."""
    lines = list(_frames(error, name))
    if isinstance(error, SyntaxError) and error.filename == name:
        lines = [f"line {error.lineno}: {(error.text or '').strip()}"]
        error = type(error)(error.msg)
    if len(lines) > 8:  # for example, a function that calls itself endlessly
        lines[4:-4] = ["..."]
    return "\n".join([*lines, "".join(traceback.format_exception_only(error)).strip()])


def _frames(error: BaseException, name: str) -> Iterator[str]:
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith("<cell "):
            where = "" if frame.filename == name else "another cell, "
            yield f"{where}line {frame.lineno}: {frame.line}"
