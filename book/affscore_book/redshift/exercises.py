"""Checks of the exercises of the chapter on neural redshift."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from affscore_book.kit.checks import report
from affscore_book.redshift.complexity import dct_frequency, fourier_frequency
from affscore_book.redshift.networks import Network, grid_points


def check_scale(c: float) -> None:
    """Does scaling the weights by ``c`` and the biases of layer l by c**l halve a ReLU network with three layers?"""
    if not abs(c**4 - 0.5) < 1e-4:
        return report("redshift-scale", False, "", f"with this c the output is multiplied by {c**4:.4g}, not by 0.5.")
    report("redshift-scale", True, "four layers of weights count, the output layer too.", "")


def check_symmetry(before: Network, after: Network) -> None:
    """Is ``after``, with ReLU, another network whose function is a positive multiple of that of ``before``?"""
    if [w.shape for w in before.weights] != [w.shape for w in after.weights]:
        return report("redshift-symmetry", False, "", "both networks should have layers of the same shapes.")
    if all(torch.allclose(a, b) for a, b in zip(before.weights, after.weights, strict=True)):
        return report("redshift-symmetry", False, "", "the weights should change.")
    points = grid_points(8)
    one, other = before(points, "relu"), after(points, "relu")
    factor = (other @ one) / (one @ one)
    if not (factor > 0 and (other - factor * one).abs().max() < 1e-6 * other.abs().max()):
        return report(
            "redshift-symmetry", False, "", "the image changes by more than a factor; what has to happen to the biases?"
        )
    report("redshift-symmetry", True, "the image is the same up to one factor.", "")


def check_floor(image: Any) -> None:
    """Is ``image`` as simple as can be for the cosine transform, and more complex than a wave for Fourier's?"""
    smooth, periodic = dct_frequency(image), fourier_frequency(image)
    if not smooth < 1.5:
        return report(
            "redshift-floor",
            False,
            "",
            f"its mean frequency by cosine transform is {smooth:.2f}; it should be below 1.5.",
        )
    if not periodic > 0.1:
        hint = f"its mean frequency by Fourier is {periodic:.3f}; it should be above 0.1. What happens at the edges?"
        return report("redshift-floor", False, "", hint)
    report(
        "redshift-floor", True, "the jump from one edge to the opposite one is all that Fourier's transform sees.", ""
    )


def check_draws(draws: float, one: Any, other: Any) -> None:
    """Is ``draws`` the number of unpaired draws that show ``other - one`` as sharply as these pairs, both (draws,)?"""
    one, other = np.asarray(one), np.asarray(other)
    apart = one.var(ddof=1) + other.var(ddof=1)
    right = len(one) * apart / (other - one).var(ddof=1)
    if abs(draws - right) < 0.02 * right:
        return report("redshift-draws", True, f"{right:.0f} draws of each, where {len(one)} pairs do.", "")
    hint = "without pairs the variances of the two means add up; with pairs it is the variance of the differences."
    if abs(draws - len(one)) < 0.02 * len(one):
        hint = f"{hint} Compute both."
    report("redshift-draws", False, "", hint)
