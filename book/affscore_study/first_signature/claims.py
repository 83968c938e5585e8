"""The change of the signature of a small EfficientNet by training, and the paper's sentence on larger ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from affscore import Signature
from affscore_book.kit.tables import Table
from affscore_study.kit.claims import ClaimTable
from affscore_study.kit.rules import judged

__all__ = ["before_and_after", "not_run"]


def before_and_after(folder: str | Path) -> Table:
    """A table of the median and the spread of the stored scores of EfficientNet-Lite0 in batches of two sizes.

    The state "before" has random weights and batch norm set.
    """
    pairs = [
        [Signature.load(Path(folder) / f"efficientnet_lite0.{kind}.photographs.{size}.spatial.json")
         for kind in ("calibrated0", "imagenet")] for size in (64, 128)
    ]  # fmt: skip
    rows = []
    for before, after in pairs:
        row: dict[str, float] = {"batch": before.batch_sizes[0]}
        for what, number in (("median", np.median), ("spread", np.std)):
            row |= {f"{what} before": float(number(before.mean)), f"{what} after": float(number(after.mean))}
        rows.append(row)
    return Table.from_rows(rows)


def not_run() -> ClaimTable:
    """The table of the source's sentence on the skewness of its own networks, which is not run here."""
    return ClaimTable(judged("first_signature", "not_run", {}))
