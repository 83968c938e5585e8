"""Why the scores of EfficientNet-Lite zigzag: where the inputs of the two ReLU6 calls of a block lie.

A block widens its channels (first call), filters each channel on its own (second call) and narrows them again. Channel
c of the second call is the filtered channel c of the first. So one can ask: what would the second call score if each of
its channels were moved until ReLU6 cuts as large a share of it to 0 as in the first call?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.kit.statistics import student_interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table

__all__ = ["Block", "Zigzag", "intervention_table", "load_zigzag"]


@dataclass(frozen=True)
class Block:
    """The two calls of one block.

    Attributes
    ----------
    number, skip
        Number of the block; whether it adds its input to its output.
    cut
        Share of the inputs that ReLU6 sets to 0, in the first and in the second call.
    score
        Their affinity scores.
    moved
        Score of the second call with each channel moved so that the share of it that is cut is the first call's.
    shuffled
        The same for a control: each channel moved to the share of *another channel of the second call*, so that
        the call as a whole keeps its shares.
    """

    number: int
    skip: bool
    cut: tuple[float, float]
    score: tuple[float, float]
    moved: float
    shuffled: float

    @property
    def step(self) -> float:
        """Score of the second call minus that of the first."""
        return self.score[1] - self.score[0]


@dataclass(frozen=True)
class Zigzag:
    """The blocks of one network on one batch."""

    name: str
    blocks: list[Block]

    def of(self, skip: bool) -> list[Block]:
        """The blocks with a skip connection, or those without one."""
        return [block for block in self.blocks if block.skip == skip]

    def row(self, skip: bool) -> dict[str, Any]:
        """Means over the blocks of one kind; ``step``, ``moved`` and ``control`` are second call minus first.

        ``low`` and ``high`` are the ends of Student's interval of the step.
        """
        blocks = self.of(skip)
        first = np.array([block.score[0] for block in blocks])
        return {
            "network": self.name,
            "skip": "yes" if skip else "no",
            "second lower": f"{sum(block.step < 0 for block in blocks)} of {len(blocks)}",
            "extra cut": float(np.mean([block.cut[1] - block.cut[0] for block in blocks])),
            **dict(zip(("step", "low", "high"), student_interval([block.step for block in blocks]), strict=True)),
            "moved": float(np.mean([block.moved for block in blocks] - first)),
            "control": float(np.mean([block.shuffled for block in blocks] - first)),
        }


def load_zigzag(path: str | Path) -> list[Zigzag]:
    """The networks that ``zigzag.py`` stored; errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(data: dict[str, Any]) -> list[Zigzag]:
        return [
            Zigzag(name, [Block(**row | {"cut": tuple(row["cut"]), "score": tuple(row["score"])}) for row in rows])
            for name, rows in data["networks"].items()
        ]

    return read_results(path, build, "book/data/first_signature/zigzag.py")


def intervention_table(networks: Sequence[Zigzag]) -> Table:
    """The step in the blocks with a skip connection, and what is left of it; a row a network."""
    columns = ("network", "second lower", "step", "moved", "control")
    return Table.from_rows([{name: network.row(True)[name] for name in columns} for network in networks], digits=3)
