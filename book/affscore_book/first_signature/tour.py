"""A signature call by call: where the inputs of every ReLU6 call lie, for the moving picture of the introduction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from affscore_book.first_signature.twins import load_twins
from affscore_book.kit.stored import read_results

__all__ = ["BINS", "RANGE", "load_tour"]

#: The bars of the picture: 20 for what ReLU6 cuts to 0, 20 for what it passes, 10 for what it cuts to 6.
BINS, RANGE = 50, (-6.0, 9.0)


def load_tour(folder: str | Path) -> list[dict[str, Any]]:
    """The rows that ``book/data/first_signature/tour.py`` stored, each with the score of its linear ``twin``.

    ``folder`` is the book's ``data``.
    """
    here = Path(folder) / "first_signature"
    rows = read_results(here / "tour.json", lambda found: list(found["calls"]), "book/data/first_signature/tour.py")
    twins = load_twins(here / "twins.json")["twin"][0].round(4).tolist()
    return [row | {"twin": twin} for row, twin in zip(rows, twins, strict=True)]
