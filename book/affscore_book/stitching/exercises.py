"""Checks of the exercises of the chapter on stitching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from affscore_book.kit.checks import report
from affscore_book.kit.networks import myrtle
from affscore_book.kit.statistics import over_pairs
from affscore_book.stitching.study import StitchingStudy
from affscore_book.stitching.toy import toy_stitch

#: Points that a full stitch from :func:`untrained_network` loses against the second network alone: the solution's run.
LOST = {"relu1": 2.2, "relu4": 26.7}


def untrained_network() -> nn.Module:
    """The untrained Myrtle CNN of the exercise, of the width of the trained ones, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return myrtle(width=16, channels=1).eval()


def check_untrained(losses: Mapping[str, float]) -> None:
    """Are these the points that full stitches from the untrained network lose against the second network alone?"""
    gaps = {layer: float(losses.get(layer, np.nan)) - lost for layer, lost in LOST.items()}
    if all(gap < -20 for gap in gaps.values()):
        hint = "these are penalties, against the mean of both networks; take the accuracy of `other` alone."
    else:
        hint = (
            "fit on `train`, measure batch norm anew with `reestimate`, and take the loss in points, 100 times a share."
        )
    right = all(abs(gap) < 0.75 for gap in gaps.values())
    report("stitching-untrained", right, "little is lost early, and much late.", hint)


def check_points(counts: Mapping[str, int], x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """From these numbers of points on, does each stitch find the matrix that takes x (n, 8) to y (n, 8)?"""
    truth = toy_stitch("g_relu", x, y)
    for kind in ("g_relu", "full"):
        gaps = [float(np.abs(toy_stitch(kind, x[:n], y[:n]) - truth).max()) for n in range(2, len(x) + 1)]
        first = 2 + max(n for n, gap in enumerate(gaps, 1) if gap > 1e-3)
        found = counts.get(kind)
        if found != first:
            late = isinstance(found, int) and found > first
            hint = f"{kind} finds it with fewer points." if late else f"on so few points {kind} finds another matrix."
            return report("stitching-points", False, "", hint)
    report("stitching-points", True, "the fewer numbers are free, the fewer points it takes.", "")


def check_saving(intervals: Mapping[str, Sequence[float]], study: StitchingStudy) -> None:
    """Are these the intervals, over networks, of the points that a stitched shortcut saves in two of the blocks?"""
    for block in ("block5", "block9"):
        alone, both = (
            study.table("resnet20", f"{block}.relu1", "g_relu", fit)
            for fit in ("closed form", "closed form, shortcut too")
        )
        mean, low, high = over_pairs(alone - both)
        answer = np.asarray(intervals.get(block, (np.nan, np.nan)), dtype=np.float64)
        if answer.shape != (2,) or not np.allclose(answer, (low, high), rtol=0, atol=0.5):
            centred = answer.shape == (2,) and abs(answer.mean() - mean) < 0.1
            hint = "the mean is right; the variance is 3/4 of the sum of squares, and Student's quantile that of 3."
            other = "drop the row and the column of a network, and take the mean of the pairs that are left."
            return report("stitching-saving", False, "", f"{block}: {hint if centred else other}")
    report("stitching-saving", True, "the larger saving is undecided, the smaller one decided.", "")


def check_unseen(matrix: Any) -> None:
    """Does a stitch change nothing for :func:`last_layer`, although no element of G_ReLU makes the features agree?"""
    m, last = torch.as_tensor(matrix, dtype=torch.float64), last_layer()
    if m.shape != (4, 4):
        return report("stitching-unseen", False, "", f"the matrix has shape {tuple(m.shape)}; it should be 4 x 4.")
    if not torch.allclose(last @ m, last):
        return report("stitching-unseen", False, "", "for some features the outputs change: is W M equal to W?")
    used = m.abs() > 1e-9
    report(
        "stitching-unseen",
        bool((used.sum(0) != 1).any() or (used.sum(1) != 1).any()),
        "every output is the same, so the penalty is 0, and the features are not.",
        "one entry in each row and column: with such a stitch the features do agree up to the group.",
    )


def last_layer() -> torch.Tensor:
    """The weights W of the exercise, float64 (2, 4): each class adds two channels."""
    return torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
