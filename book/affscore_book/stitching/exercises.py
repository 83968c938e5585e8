"""Checks of the exercises of the chapter on stitching."""

from __future__ import annotations

from typing import Any

import torch

from affscore_book.kit.checks import report
from affscore_book.stitching.maps import Birkhoff, sinkhorn


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


def check_passes(matrix: Any) -> None:
    """Can this 3 x 3 matrix be moved through ReLU, and does it change more than the order of the channels?"""
    a = torch.as_tensor(matrix, dtype=torch.float64)
    if a.shape != (3, 3) or abs(float(torch.linalg.det(a))) < 1e-9:
        return report(
            "stitching-passes", False, "", f"the matrix has shape {tuple(a.shape)}; it should be 3 x 3 and invertible."
        )
    x = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    if not torch.allclose(torch.relu(x @ a.T), torch.relu(x) @ a.T):
        return report("stitching-passes", False, "", "for some features it matters whether ReLU comes before or after.")
    report(
        "stitching-passes",
        bool(((a != 0) & (a != 1)).any()),
        "a permutation with positive scales, an element of the group.",
        "that is a permutation; give it scales.",
    )


def check_rate(rate: float, *, alpha: float, learning_rate: float) -> None:
    """Does plain gradient descent at ``rate`` without the norm term do the step of ``learning_rate`` with ``alpha``?

    On the 6 x 6 matrix of the exercise, whose Frobenius norm is printed there.
    """
    start = exercise_matrix()
    slope = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    steps: list[torch.Tensor] = []
    for strength, step in ((alpha, learning_rate), (0.0, rate)):
        stitch = Birkhoff(start, torch.ones(6), alpha=strength)
        ((stitch.transport * slope).sum() + stitch.penalty()).backward()
        with torch.no_grad():
            assert stitch.transport.grad is not None
            stitch.transport.sub_(step * stitch.transport.grad)
        stitch.project(step)
        steps.append(stitch.transport.detach())
    gap = float((steps[0] - steps[1]).abs().max())
    report(
        "stitching-alpha",
        gap < 1e-5,
        "the term only slows the descent down.",
        f"after one step the matrices differ by {gap:.5f}. Which factor does the step with alpha put on P?",
    )


def exercise_matrix() -> torch.Tensor:
    """The doubly stochastic matrix of the exercise, float32 (6, 6)."""
    return sinkhorn(torch.rand(6, 6, generator=torch.Generator().manual_seed(0)), 100)
