"""The table of the chapter on activations: a sweep split in two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.sweeps import Sweep
from affscore_book.kit.tables import Table

__all__ = ["SplitTable"]


class SplitTable(Table):
    """Average scores of a sweep and of its law in one dimension, where a second activation has a score and where not.

    ``names`` are the activations of the rows, ``other`` is the activation that splits the inputs. A dash stands where
    an activation has no score on a part.
    """

    def __init__(self, sweep: Sweep, names: Sequence[str], other: str) -> None:
        law, alive, title = sweep.law(), sweep.alive(other), CATALOGUE[other].title
        columns: dict[str, list[str]] = {"activation": [CATALOGUE[name].title for name in names]}
        many = f"d = {sweep.settings['d']}"
        for words, part in ((f"{title} alive", alive), (f"{title} dead", ~alive)):
            for dimension, scores in ((many, sweep), ("d = 1", law)):
                cells = [part & sweep.alive(name) for name in names]
                columns[f"{words}: {dimension}"] = [
                    f"{np.nanmean(scores.scores[name][where]):.2f}" if where.any() else "-"
                    for name, where in zip(names, cells, strict=True)
                ]
        super().__init__(columns, align=False)
