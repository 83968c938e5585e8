"""The steps of the zigzag by three measures: the score, its distance to the linear twin, and the unshrunk score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore.companions import linear_twin
from affscore.score import affinity_score
from affscore_book.kit.statistics import leaving_out
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_study.first_signature.zigzag import pooled_calls

__all__ = ["load_yardsticks", "measure_yardsticks", "yardsticks_table"]

YARDSTICKS = ("score", "score − twin", "score without shrinkage")


def measure_yardsticks(
    model: nn.Module, pairs: Sequence[tuple[int, bool, int, int]], parts: Sequence[Tensor]
) -> dict[str, list[list[float]]]:
    """For each measure, a row for each pair: its first call, its second call, the second one moved, and the control.

    The parameters are those of :func:`affscore_study.first_signature.zigzag.measure_blocks`.
    """
    found: dict[str, list[list[float]]] = {name: [] for name in YARDSTICKS}
    for _, calls in pooled_calls(model, pairs, parts):
        scores = [affinity_score(*call).item() for call in calls]
        twins = [affinity_score(x, linear_twin(x, y)).item() for x, y in calls]
        plain = [affinity_score(*call, covariance="empirical").item() for call in calls]
        gaps = [score - twin for score, twin in zip(scores, twins, strict=True)]
        for name, row in zip(YARDSTICKS, (scores, gaps, plain), strict=True):
            found[name].append(row)
    return found


def load_yardsticks(path: str | Path) -> dict[str, NDArray[np.float64]]:
    """For each measure, the array (blocks, 4) that ``book/data/first_signature/yardsticks.py`` stored.

    The blocks are those with a skip connection.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not such a file.
    """

    def build(data: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        return {name: np.array(data["blocks"][name], dtype=np.float64).reshape(-1, 4) for name in YARDSTICKS}

    return read_results(path, build, "book/data/first_signature/yardsticks.py")


def yardsticks_table(blocks: dict[str, NDArray[np.float64]]) -> Table:
    """A table of the mean steps from the first call to the second, to the second moved, and to the control.

    ``part`` is the step to the control as a fraction of the whole step, the part of the amount of cutting. ``low`` and
    ``high`` are the ends of its interval, which leaves out one block at a time.
    """
    rows = []
    for by, scores in blocks.items():
        steps = scores[:, 1:] - scores[:, :1]
        means = dict(zip(("step", "moved", "control"), steps.mean(axis=0).tolist(), strict=True))
        part, low, high = leaving_out(partial(_amount, steps), len(steps))
        rows.append({"by": by, **means, "part": part, "low": low, "high": high})
    return Table.from_rows(rows, digits=3)


def _amount(steps: NDArray[np.float64], kept: NDArray[np.int64]) -> float:
    step, _, control = steps[kept].mean(axis=0)
    return float(control / step)
