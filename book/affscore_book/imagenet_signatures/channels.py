"""ViT beside MNASNet before training, with all channels and with equally many, each score beside its linear twin's.

``book/data/imagenet_signatures/make.py --channels`` writes the stored scores. More channels than pictures can raise a
score, and a pool changes their number too; the linear twin (:func:`affscore.companions.linear_twin`) says how far
a score would fall for straight lines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from affscore.suite.architectures import facts
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.explained import group_gap
from affscore_book.kit.statistics import Interval
from affscore_book.kit.stored import read_results

__all__ = ["channel_gap", "channel_medians", "channel_table"]

#: Columns of the table: what is scored, and the name of its scores in the files.
SCORED = {"all channels": "spatial", "50 channels": "spatial50", "trailing": "trailing"}


def channel_medians(folder: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """For each stored network the medians over its calls, by the names in its file; the cheapest networks first.

    Raises
    ------
    FileNotFoundError
        If ``folder`` holds none.
    ValueError
        If a file is damaged.
    """
    files = sorted(Path(folder, "channels").glob("*.json"), key=lambda path: facts(path.stem).gflops or 0.0)
    if not files:
        raise FileNotFoundError(f"{folder} holds no scores with fewer channels; run make.py --channels.")
    found = {}
    for path in files:
        stored = read_results(path, dict, "make.py --channels")
        lists = {name: np.array(each, dtype=float) for name, each in stored.items() if isinstance(each, list)}
        found[path.stem] = {name: float(np.nanmedian(values)) for name, values in lists.items()}
    return found


def channel_table(medians: Mapping[str, Mapping[str, float]]) -> Table:
    """A row a network: its median score with all channels, with 50 and by the trailing pool, and those of the twins.

    Where the trailing pool averages the same axes as the spatial one, its scores are those of all channels.
    """
    rows = []
    for name, found in medians.items():
        row: dict[str, float | str] = {"network": name}
        for column, key in SCORED.items():
            key = key if key in found else "spatial"
            row |= {column: found[key], f"twin, {column.split()[0]}": found[f"{key}_twin"]}
        rows.append(row)
    return Table.from_rows(rows)


def channel_gap(medians: Mapping[str, Mapping[str, float]], one: str = "ViT", other: str = "MNASNet") -> Interval:
    """How far the medians of a family with 50 channels a call lie from those of another, with Welch's interval."""
    members: dict[str, list[float]] = {one: [], other: []}
    for name, found in medians.items():
        if facts(name).family in members:
            members[facts(name).family].append(found["spatial50"])
    return group_gap(members[one], members[other])
