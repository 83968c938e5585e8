"""Tables of the catalogue of activations, and of the statistics of their score curves."""

from __future__ import annotations

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import Summary
from affscore_book.kit.tables import Table

__all__ = ["ActivationTable", "SummaryTable"]


class ActivationTable(Table):
    """The catalogue as a table; formulas are LaTeX, which Markdown shows as formulas.

    >>> ActivationTable().row("ReLU")["limits"]
    '0, ∞'
    """

    def __init__(self) -> None:
        rows = CATALOGUE.values()
        super().__init__(
            {
                "name": [row.title for row in rows],
                "formula": [f"${row.formula}$" for row in rows],
                "limits": [", ".join(map(_limit, row.limits)) for row in rows],
                "monotone": ["yes" if row.monotone else "no" for row in rows],
                "torch": [row.torch or "-" for row in rows],
                "source": [row.reference for row in rows],
            }
        )

    # Formulas in Markdown, unlike those in HTML, are typeset in Jupyter, in Colab and in the book.
    _repr_html_ = None  # type: ignore[assignment]

    def _repr_markdown_(self) -> str:
        cells = [[cell.replace("|", r"\|") for cell in row] for row in zip(*self.columns.values(), strict=True)]
        rows = [list(self.columns), ["---"] * len(self.columns), *cells]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class SummaryTable(Table):
    """A table of the statistics of each activation, sorted by the lowest score.

    >>> SummaryTable({"relu": Summary(0.036, -3.2, 4.8, 16.8), "tanh": Summary(0.147, -20.0, 40.0, 0.0)})
    name | lowest score | at mean | width | dead
    ReLU | 0.04         | -3.2    | 4.8   | 16.8
    tanh | 0.15         | -20.0   | 40.0  | 0.0
    """

    def __init__(self, summaries: dict[str, Summary]) -> None:
        names = sorted(summaries, key=lambda name: (round(summaries[name].lowest, 2), name))
        rows = [summaries[name] for name in names]
        super().__init__(
            {
                "name": [CATALOGUE[name].title for name in names],
                "lowest score": [f"{row.lowest + 0:.2f}" for row in rows],
                "at mean": [f"{round(row.lowest_at, 1) + 0.0:.1f}" for row in rows],
                "width": [f"{row.width:.1f}" for row in rows],
                "dead": [f"{row.dead:.1f}" for row in rows],
            },
            align=False,
        )


def _limit(value: float) -> str:
    return f"{value:.4g}".replace("nan", "none").replace("inf", "∞").replace("-", "−")
