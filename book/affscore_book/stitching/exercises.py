"""Checks of the exercises of the chapter on stitching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from affscore_book.kit.answers import function, mapping, numbers, one_number, whole
from affscore_book.kit.checks import case, exercise, report
from affscore_book.kit.networks import myrtle
from affscore_book.stitching.toy import toy_stitch

#: Points that a full stitch from :func:`untrained_network` loses against the second network alone (the solution's run
#: on 2,000 test images), and how far an answer may lie from it (all test images lie within).
LOST = {"relu1": (2.6, 0.75), "relu4": (28.4, 2.0)}


def untrained_network() -> nn.Module:
    """The untrained Myrtle CNN of the exercise, of the width of the trained ones, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return myrtle(width=16, channels=1).eval()


@exercise("stitching-untrained", losses=mapping(one_number))
def check_untrained(losses: Mapping[str, float]) -> None:
    """Are these the points that full stitches from the untrained network lose against the second network alone?"""
    gaps = {layer: losses.get(layer, np.nan) - lost for layer, (lost, _) in LOST.items()}
    if all(gap < -20 for gap in gaps.values()):
        hint = "these are penalties, against the mean of both networks; take the accuracy of `other` alone."
    else:
        hint = "fit on `train`, sew with `sew`, and take the loss of `other` alone in points, 100 times a share."
    right = all(abs(gaps[layer]) < room for layer, (_, room) in LOST.items())
    report("stitching-untrained", right, "little is lost early, and much late.", hint)


@exercise("stitching-points", counts=mapping(whole))
def check_points(counts: Mapping[str, int], x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """From these numbers of points on, does each stitch find the matrix that takes x (n, 8) to y (n, 8)?"""
    truth = toy_stitch("g_relu", x, y)
    for kind in ("g_relu", "full"):
        gaps = [float(np.abs(toy_stitch(kind, x[:n], y[:n]) - truth).max()) for n in range(2, len(x) + 1)]
        first = 2 + max(n for n, gap in enumerate(gaps, 1) if gap > 1e-3)
        found = counts.get(kind)
        if found != first:
            late = found is not None and found > first
            hint = f"{kind} finds it with fewer points." if late else f"on so few points {kind} finds another matrix."
            return report("stitching-points", False, "", hint)
    report("stitching-points", True, "the fewer numbers are free, the fewer points it takes.", "")


@exercise("stitching-build", stitch=function)
def check_build(stitch: Callable[[NDArray[np.float64], NDArray[np.float64]], Any]) -> None:
    """Does ``stitch(x, y)`` give the best element of G_ReLU, (C, C), that takes features x (n, C) to y (n, C)?

    Once an element is hidden, and twice no element fits: all channels of y are nearest to one channel of x; and neither
    the nearest channels one after the other nor cosines give the pairing with the largest sum of correlations.
    """
    rng = np.random.default_rng(0)
    x = rng.exponential(size=(200, 6))
    order, scale = rng.permutation(6), rng.uniform(0.5, 2.0, 6)
    blend = x[:, order] + 1.5 * x[:, order[[0]]] + rng.exponential(0.3, (200, 6))
    other = np.random.default_rng(190)  # of this seed the other pairings lose 0.1 of the sum, or more
    far = other.exponential(size=(200, 6)) + other.uniform(0, 2, 6)
    mixed = far @ other.exponential(size=(6, 6)).T + other.exponential(0.5, (200, 6))
    for name, inputs, outputs in (
        ("a hidden element", x, scale * x[:, order]),
        ("channels that are nearest to one", x, scale * blend),
        ("mixed channels", far, mixed),
    ):
        with case(name):
            found = numbers(stitch(inputs, outputs))
            if found.shape != (6, 6):
                return report("stitching-build", False, "", f"the matrix has shape {found.shape}; it should be 6 x 6.")
            truth = toy_stitch("g_relu", inputs, outputs)
            if not np.allclose(found, truth, rtol=0, atol=1e-6):
                return report("stitching-build", False, "", _why_not(found, truth, name == "a hidden element"))
    report("stitching-build", True, "the hidden element is found, and the best one where none is hidden.", "")


def _why_not(found: NDArray[np.float64], truth: NDArray[np.float64], hidden: bool) -> str:
    """The hint for a matrix (6, 6) that is not the true one."""
    if ((found != 0).sum(0) != 1).any() or ((found != 0).sum(1) != 1).any():
        return "each row and each column of the matrix should have one number that is not 0."
    if np.array_equal(found != 0, truth.T != 0):
        return "rows of the matrix belong to y and columns to x; this one is the other way round."
    if not np.array_equal(found != 0, truth != 0):
        return "another pairing has a larger sum of correlations: of centred channels, divided by their spreads."
    return "the pairing is right; the scales are not." + (
        "" if hidden else " Without intercept, they are sums of x times y over sums of x squared."
    )


@exercise("stitching-unseen", matrix=numbers)
def check_unseen(matrix: Any) -> None:
    """Does a stitch change nothing for :func:`last_layer`, although no element of G_ReLU makes the features agree?"""
    m, last = torch.from_numpy(matrix), last_layer()
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
