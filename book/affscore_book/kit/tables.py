"""A small table that prints as text and as HTML, and is written as CSV."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Table"]


class Table:
    """A table of columns with equal length that prints as text and as HTML, with rounded numbers.

    ``pandas.DataFrame(table.columns)`` is a data frame with the same columns.

    Parameters
    ----------
    columns
        Maps a heading to its values: numbers, texts, or None for no value. NaN and None print as ``-``.
    digits
        Number of decimals of floating-point numbers.
    notes
        Sentences below the table.
    align
        Whether HTML aligns numbers right and texts left; False leaves the alignment to the page.

    Examples
    --------
    >>> table = Table({"model": ["a", "b"], "score": [0.5, float("nan")]}, notes=["b is dead."])
    >>> table
    model | score
    a     |  0.50
    b     |     -
    b is dead.
    >>> table["score"]
    array([0.5, nan])
    """

    def __init__(
        self, columns: Mapping[str, Sequence[Any]], *, digits: int = 2, notes: Iterable[str] = (), align: bool = True
    ) -> None:
        self.columns = {name: list(values) for name, values in columns.items()}
        self.digits = digits
        self.notes = list(notes)
        self.align = align
        if len({len(values) for values in self.columns.values()}) > 1:
            lengths = ", ".join(f"{len(values)} ({name})" for name, values in self.columns.items())
            raise ValueError(f"columns have {lengths} values; they should have the same number.")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], **options: Any) -> Table:
        """The table with these rows, which all have the headings of the first row."""
        return cls({name: [row[name] for row in rows] for name in rows[0]}, **options)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __getitem__(self, column: str) -> np.ndarray:
        """A column as an array: float64 with NaN for None if it holds numbers, otherwise an array of texts."""
        values = self.columns[column]
        if any(isinstance(value, str) for value in values):
            return np.array(values, dtype=object)
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per row, with unrounded numbers."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    def row(self, name: str) -> dict[str, Any]:
        """The row whose first column is ``name``."""
        names = next(iter(self.columns.values()))
        if name not in names:
            raise KeyError(f"there is no row {name!r}; there are {', '.join(map(str, names))}.")
        return self.rows()[names.index(name)]

    def _text(self, value: Any) -> str:
        if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
            return "-"
        if isinstance(value, float | np.floating):
            text = f"{value:.{self.digits}f}"
            return text.removeprefix("-") if float(text) == 0 else text
        return str(value)

    def _cells(self) -> tuple[list[list[str]], list[bool]]:
        """All cells as text, with the headings first, and whether each column holds numbers."""
        body = [[self._text(value) for value in row] for row in zip(*self.columns.values(), strict=True)]
        numeric = [not any(isinstance(value, str) for value in values) for values in self.columns.values()]
        return [list(self.columns), *body], numeric

    def __repr__(self) -> str:
        cells, numeric = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        sides = [f"{'>' if right else '<'}{width}" for width, right in zip(widths, numeric, strict=True)]
        lines = (" | ".join(map(format, row, sides)).rstrip() for row in cells)
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        (head, *body), numeric = self._cells()
        sides = [f' style="text-align: {"right" if right else "left"}"' if self.align else "" for right in numeric]
        lines = ["".join(f'<th scope="col"{s}>{html.escape(cell)}</th>' for s, cell in zip(sides, head, strict=True))]
        for row in body:
            lines.append("".join(f"<td{s}>{html.escape(cell)}</td>" for s, cell in zip(sides, row, strict=True)))
        rows = "".join(f"<tr>{line}</tr>\n" for line in lines)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f'<table class="table">\n{rows}</table>{notes}'

    def csv(self) -> str:
        """Comma-separated values, with all digits of numbers, "" for undefined numbers, and an apostrophe before a text
        that a spreadsheet would read as a formula."""

        def cell(value: Any) -> Any:
            if not isinstance(value, str):
                return "" if self._text(value) == "-" else value
            text = " ".join(value.splitlines())
            return f"'{text}" if re.match(r"\s*[=+@-].", text) else text

        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        for row in (self.columns, *zip(*self.columns.values(), strict=True)):
            writer.writerow(map(cell, row))
        return file.getvalue()
