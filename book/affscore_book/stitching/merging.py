"""The stored averages of two trained networks, of which one was brought into the other's channels by a group."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from affscore_book.kit.stored import read_results

__all__ = ["ALIGNMENTS", "Averages", "load_averages"]

#: What may be done to one network before the average, from nothing to everything.
ALIGNMENTS = ("nothing", "permutation", "G_ReLU", "orthogonal", "invertible")

#: The activations by their slope, as the stored results name it.
SLOPES = {"0": "ReLU", "0.5": "LeakyReLU 0.5", "1": "linear"}


class Averages(NamedTuple):
    """The stored averages, by activation and alignment, in points of accuracy.

    Attributes
    ----------
    accuracy
        Of the trained networks, (networks,), between 0 and 1.
    lost, repaired
        What the average loses against the mean of its two networks, without and with its statistics set anew:
        (networks, networks), NaN but for the first network before the second.
    moved
        What the second network alone has lost by its matrix, likewise.
    untrained
        What the average with an untrained network loses against the trained one, (networks,).
    """

    accuracy: dict[str, np.ndarray]
    lost: dict[str, dict[str, np.ndarray]]
    repaired: dict[str, dict[str, np.ndarray]]
    moved: dict[str, dict[str, np.ndarray]]
    untrained: dict[str, dict[str, np.ndarray]]


def load_averages(path: str | os.PathLike[str]) -> Averages:
    """What ``book/data/stitching/merge.py`` stored; raises as :func:`affscore_book.kit.stored.read_results`."""
    return read_results(path, _averages, "book/data/stitching/merge.py")


def _averages(content: dict[str, Any]) -> Averages:
    found = Averages({}, {}, {}, {}, {})
    for slope, name in SLOPES.items():
        records = content["slopes"][slope]
        own = found.accuracy[name] = np.array(records["accuracy"])
        for part in found[1:]:
            part[name] = {}
        for kind in ALIGNMENTS:
            lost, repair, moved = np.full((3, len(own), len(own)), np.nan)
            for pair in records["pairs"]:
                one, other = pair["one"], pair["other"]
                lost[one, other] = 100 * (own[[one, other]].mean() - pair[kind]["merged"])
                repair[one, other] = 100 * (own[[one, other]].mean() - pair[kind]["repaired"])
                moved[one, other] = 100 * (own[other] - pair[kind]["end"])
            found.lost[name][kind], found.repaired[name][kind], found.moved[name][kind] = lost, repair, moved
            found.untrained[name][kind] = np.array(
                [100 * (own[each["one"]] - each[kind]["merged"]) for each in records["untrained"]]
            )
    return found
