"""Checks of the exercises of the chapter on the first signature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from affscore import Signature, signature
from affscore.score import affinity_score
from affscore_book.kit.checks import report


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


def check_score_one(x: Any, y: Any) -> None:
    """Do ``x`` and ``y``, of shape (n, d), have score 1 although each channel of ``y`` mixes channels of ``x``?"""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    score = affinity_score(x, y, covariance="empirical").item()
    if not (1 - score) ** 2 < 1e-10:
        return report("first-affine", False, "", f"the score is {score:.3f}, not 1.")
    matrix = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(axis=0), rcond=None)[0]
    mixed = (np.abs(matrix) > 1e-6 * np.abs(matrix).max()).sum(axis=0)
    if not (mixed >= 2).all():
        hint = f"the score is 1, but {(mixed < 2).sum()} channels depend on no more than one channel of x."
        return report("first-affine", False, "", hint)
    report("first-affine", True, "any symmetric matrix without negative eigenvalues does, and any shift.", "")


def check_dead_network(model: nn.Module) -> None:
    """Does ``model``, fed with vectors of length 4, make exactly two activation calls, the second one dead?"""
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    found = signature(model, [x])
    if len(found.calls) != 2:
        return report("first-network", False, "", f"the network makes {len(found.calls)} activation calls, not 2.")
    dead = found.dead[0].tolist()
    if dead != [False, True]:
        return report("first-network", False, "", f"the calls should be alive and dead, but dead is {dead}.")
    report("first-network", True, "the first call is alive, and the second never fires: its score is undefined.", "")


def check_without_first(factor: float, trained: Signature, untrained: Signature) -> None:
    """Is ``factor`` the ratio of the scores' standard deviations, the first call left out, to 1 %?"""
    exact = trained.mean[1:].std() / untrained.mean[1:].std()
    if not abs(factor / exact - 1) < 1e-2:
        hint = "mean[1:] has all scores but the first, and .std() is their standard deviation."
        return report("first-without", False, "", hint)
    report("first-without", True, "the unevenness is not that of the first call.", "")
