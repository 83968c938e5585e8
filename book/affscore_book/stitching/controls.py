"""What stitches got out of features that are surely not those of a network trained on the task: stored results.

References: Smith et al., ICML 2025 (noise in clusters stitches well); Athanasiadis et al., ICML 2026 (compatible
forwards is not enough). Of the second we read the abstract: what is measured here is ours.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from affscore_book.kit.stored import read_results

__all__ = ["FIRST_HALVES", "Controls", "load_controls"]

#: Where the features come from that are stitched into a trained network, most alike first.
FIRST_HALVES = ("another seed", "other task", "shuffled labels", "untrained", "clustered noise", "noise")


class Controls(NamedTuple):
    """The stored controls: by the first half, arrays (layers, second halves).

    ``lost`` is in points of the second network's accuracy, by a stitch learned from the closed form. ``forwards`` and
    ``backwards`` are the shares of variance that linear stitches explain, of the second network's features from the
    first half's and the other way round.
    """

    layers: list[str]
    lost: dict[str, np.ndarray]
    forwards: dict[str, np.ndarray]
    backwards: dict[str, np.ndarray]


def load_controls(path: str | os.PathLike[str]) -> Controls:
    """What ``book/data/stitching/control.py`` stored; raises as :func:`affscore_book.kit.stored.read_results`."""

    def build(content: dict) -> Controls:
        records = content["records"]
        layers = list(dict.fromkeys(record["layer"] for record in records))

        def tables(value) -> dict[str, np.ndarray]:
            return {
                kind: np.array([[value(r) for r in records if (r["first"], r["layer"]) == (kind, layer)]
                                for layer in layers])
                for kind in FIRST_HALVES
            }  # fmt: skip

        return Controls(
            layers,
            tables(lambda r: 100 * (r["accuracy"] - r["learned"])),
            tables(lambda r: r["forwards"]),
            tables(lambda r: r["backwards"]),
        )

    return read_results(path, build, "book/data/stitching/control.py")
