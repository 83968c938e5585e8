"""Checks of the exercises of the chapter on ReLU in one dimension."""

from __future__ import annotations

import torch

from affscore_book.kit.checks import report
from affscore_book.relu_1d.exact import gaussian_input, monotone_score, uniform_input


def check_half(share: float) -> None:
    """Is ``share`` the share of positive inputs for which ReLU scores 1/2 on a uniform input?"""
    if not 0 < share <= 1:
        return report(
            "relu-1d-half", False, "", f"{share} is no share of positive inputs;\nit should be above 0 and at most 1."
        )
    score = uniform_input(share - 1, share).score.item()
    if not abs(score - 0.5) < 5e-4:
        return report("relu-1d-half", False, "", f"with this share the score is {score:.3f}.")
    report("relu-1d-half", True, "whatever the width of the range: only the share counts.", "")


def check_step(score: float) -> None:
    """Is ``score`` the score of the sign function for a standard normal input?"""
    exact = gaussian_input(0.0, 1.0, "hardtanh", low=-1e-12, high=1e-12).score.item()
    if not abs(score - exact) < 5e-4:
        return report(
            "relu-1d-step", False, "", "the correlation is E|X|: the sign has\nvariance 1, and X sign(X) = |X|."
        )
    report("relu-1d-step", True, "hardtanh on a tiny interval is the sign\nfunction, up to scale, and it agrees.", "")


def check_steep_leak(score: float) -> None:
    """Is ``score`` the score of LeakyReLU with slope 2 for an input uniform on [-1, 3]?"""
    x = torch.linspace(-1, 3, 400_001, dtype=torch.float64)
    if not abs(score - monotone_score(x, torch.where(x < 0, 2 * x, x)).item()) < 5e-4:
        hint = "turn both axes around. -f(-x) has slope 1\non the left and 2 on the right. Divide it by 2."
        return report("relu-1d-leak", False, "", hint)
    report("relu-1d-leak", True, "turning the axes around does not change the score.", "")


def check_mean(mean: float) -> None:
    """Is ``mean`` the mean at which ReLU scores 0.9 for a normal input of standard deviation 1?"""
    score = gaussian_input(float(mean), 1.0).score.item()
    if not abs(score - 0.9) < 1e-6:
        return report("relu-1d-mean", False, "", f"the score at this mean is {score:.6f}.")
    report("relu-1d-mean", True, "six digits, from a gradient through a closed form.", "")
