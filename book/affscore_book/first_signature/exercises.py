"""Checks of the exercises of the chapter on the first signature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore import signature
from affscore.score import affinity_score
from affscore_book.kit.answers import function, numbers, one_number
from affscore_book.kit.checks import case, exercise, report


@exercise("first-dead", centre=one_number)
def check_dead_centre(centre: float, width: float = 4) -> None:
    """Is ``centre`` the largest centre of an interval of this width on which ReLU is constant?"""

    def score(middle: float) -> float:
        x = np.linspace(middle - width / 2, middle + width / 2, 401)
        return affinity_score(x, np.maximum(x, 0)).item()

    if not math.isnan(score(centre)):
        return report("first-dead", False, "", "with this centre some inputs are positive, and the output varies.")
    if math.isnan(score(centre + 0.05)):
        return report("first-dead", False, "", "the output is constant here, but also a little further right.")
    report("first-dead", True, "a little further right, the first inputs become positive.", "")


@exercise("first-affine", x=numbers, y=numbers)
def check_score_one(x: Any, y: Any) -> None:
    """Do ``x`` and ``y``, of shape (n, d), have score 1 although each channel of ``y`` mixes channels of ``x``?"""
    if x.shape != y.shape or y.ndim != 2:
        return report("first-affine", False, "", f"the outputs have shape {y.shape}; it should be {x.shape}.")
    score = affinity_score(x, y, covariance="empirical").item()
    if not (1 - score) ** 2 < 1e-10:
        return report("first-affine", False, "", f"the score is {score:.3f}, not 1.")
    centred = y - y.mean(axis=0)
    matrix = np.linalg.lstsq(x - x.mean(axis=0), centred, rcond=None)[0]
    if not np.allclose((x - x.mean(axis=0)) @ matrix, centred, rtol=0, atol=1e-4 * np.abs(centred).max()):
        hint = (
            "the score is 1, but no row of y follows from the same row of x: another order of rows mixes no channels."
        )
        return report("first-affine", False, "", hint)
    mixed = (np.abs(matrix) > 1e-6 * np.abs(matrix).max()).sum(axis=0)
    if not (mixed >= 2).all():
        hint = f"the score is 1, but {(mixed < 2).sum()} channels depend on no more than one channel of x."
        return report("first-affine", False, "", hint)
    report("first-affine", True, "any symmetric matrix without negative eigenvalues does, and any shift.", "")


class Twice(nn.Module):
    """A small network whose only ReLU works in place and is called twice."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.filters = nn.ModuleList([nn.Conv2d(3, 6, 3), nn.Conv2d(6, 5, 3)])
        for weight in self.filters.parameters():
            weight.data.normal_(generator=generator)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        for one in self.filters:
            x = self.relu(one(x))
        return x


@exercise("first-hook", scores=function)
def check_hooks(scores: Callable[[nn.Module, Tensor], Sequence[float]]) -> None:
    """Does ``scores(model, batch)`` give the score of every call of a ReLU module, and leave no hook behind?"""
    model, x = Twice(), torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), case("a network that calls one ReLU in place twice"):
        exact, mine = signature(model, [x]).mean, numbers(scores(model, x)).ravel()
    if len(mine) != len(exact):
        hint = f"this network calls its one ReLU {len(exact)} times, and you return {len(mine)} scores."
        return report("first-hook", False, "", hint)
    if not np.allclose(mine, exact, rtol=0, atol=1e-6):
        hint = f"the scores are {exact.round(3)}, and yours {np.round(mine, 3)}. Look at the inputs before ReLU does."
        return report("first-hook", False, "", hint)
    if any(part._forward_hooks or part._forward_pre_hooks for part in model.modules()):
        return report(
            "first-hook", False, "", "the scores are right, but hooks are left: handle.remove() takes one away."
        )
    report("first-hook", True, "both calls of the one ReLU, although it overwrites its inputs.", "")


@exercise("first-without", factor=one_number)
def check_without_first(factor: float, trained: NDArray[np.float64], untrained: NDArray[np.float64]) -> None:
    """Is ``factor`` the ratio of the scores' standard deviations, the first call left out, to 1 %?"""
    exact = trained[1:].std() / untrained[1:].std()
    if not abs(factor / exact - 1) < 1e-2:
        hint = "by_hand[1:] has all scores but the first, and .std() is their standard deviation."
        return report("first-without", False, "", hint)
    report("first-without", True, "the unevenness is not that of the first call.", "")
