"""Do networks of other widths and depths end in the same core? The runs of perceptrons of several sizes.

``book/data/linearized/make.py --network trunks`` makes them: late runs, five seeds, the three middle strengths. The
rule was fixed before the runs: where one trunk is four times as wide (or deep) as another, a near constant core is at
most 1.5 times as wide (or deep) as the other's, and at least a 1.5th.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.kit.stored import read_results
from affscore_book.linearized.results import LinearizedRuns, survivors_of
from affscore_book.linearized.slopes import effective_size

__all__ = ["Size", "load_trunks", "size_ratio", "with_mlp"]

#: Width and depth of a trunk.
Size = tuple[int, int]
#: By trunk and seed: effective width and depth of the core at each strength, (strengths, 2).
Cores = dict[Size, dict[int, np.ndarray]]


def load_trunks(folder: str | os.PathLike[str]) -> Cores:
    """Read ``trunks.json`` of a folder: by trunk and seed, effective (width, depth) at each strength, in rising order.

    Raises FileNotFoundError if there is no such file, and ValueError if it is damaged.
    """

    def build(raw: dict[str, Any]) -> Cores:
        cores: dict[Size, dict[int, list[tuple[float, float]]]] = {}
        for run in sorted(raw["runs"].values(), key=lambda run: run["strength"]):
            seeds = cores.setdefault((run["width"], run["depth"]), {})
            seeds.setdefault(run["seed"], []).append(effective_size(run["survivors"]))
        return {trunk: {seed: np.array(sizes) for seed, sizes in seeds.items()} for trunk, seeds in cores.items()}

    return read_results(Path(folder) / "trunks.json", build, "book/data/linearized/make.py")


def with_mlp(cores: Cores, study: LinearizedRuns) -> Cores:
    """The cores, and those of the perceptron of 64 and 6 that the other stored runs are of, at the same strengths."""
    found = {}
    for seed in study.seeds("mlp"):
        runs = study.sweep("mlp", "base", "late", seed)[2:5]  # without the one without a prior, and both ends
        found[seed] = np.array([effective_size(list(survivors_of(run).values())) for run in runs])
    return cores | {(64, 6): found}


def size_ratio(cores: Cores, large: Size, small: Size, which: str, strength: int | None = None) -> dict[int, float]:
    """By seed: effective ``"width"`` or ``"depth"`` of the core of one trunk over that of another.

    At one strength, counted from 0, or the geometric mean over all; NaN for a seed one of whose cores is empty.

    >>> cores = {(8, 2): {0: np.array([[4.0, 2.0], [1.0, 1.0]])}, (4, 2): {0: np.array([[2.0, 2.0], [2.0, 1.0]])}}
    >>> size_ratio(cores, (8, 2), (4, 2), "width"), size_ratio(cores, (8, 2), (4, 2), "width", strength=0)
    ({0: 1.0}, {0: 2.0})
    """
    column = ("width", "depth").index(which)
    rows = slice(None) if strength is None else slice(strength, strength + 1)
    found = {}
    for seed in sorted(cores[large].keys() & cores[small].keys()):
        one, other = (cores[trunk][seed][rows, column] for trunk in (large, small))
        whole = bool((one > 0).all() and (other > 0).all())
        found[seed] = float(np.exp(np.log(one / other).mean())) if whole else float("nan")
    return found
