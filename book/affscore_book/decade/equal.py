"""Stored scores with equally many numbers a call: of some random channels, or of one random position a channel.

A score falls or rises with the number of channels, and architectures differ in theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from affscore_book.decade.collection import SCRIPT
from affscore_book.kit.stored import read_results, stored_files

__all__ = ["CHANNELS", "DRAWS", "Equal", "load_equal"]

#: As many random channels of each call, or all where there are fewer; drawn this often.
CHANNELS, DRAWS = (8, 16), 6


class Equal(NamedTuple):
    """What ``make.py equal`` stored of a network of the first seed.

    ``channels`` has, by state and number of channels, the scores of each call, means over the draws, (calls,);
    ``positions``, by module, the scores of feature maps of which each channel is seen at one random position, empty for
    most; ``wide`` the scores of starts with all channels of the original, (seeds, calls), of VGG16 only.
    """

    channels: Mapping[tuple[str, int], np.ndarray]
    positions: Mapping[str, float]
    wide: np.ndarray


def _read(content: Mapping[str, Any]) -> Equal:
    means = {(state, int(count)): np.array(scores["mean"], dtype=np.float64)
             for state, counts in content["states"].items() for count, scores in counts.items()}  # fmt: skip
    return Equal(means, content.get("positions", {}), np.array(content.get("wide", []), dtype=np.float64))


def load_equal(folder: str | os.PathLike[str]) -> dict[str, Equal]:
    """By the name of the network. ``folder`` is ``book/data/decade``.

    Raises FileNotFoundError if there is nothing, ValueError if a file is damaged.
    """
    files = stored_files(folder, "equal", "scores with equally many numbers", SCRIPT)
    return {file.stem: read_results(file, _read, SCRIPT) for file in files}
