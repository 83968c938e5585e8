"""Checks of the exercises of the chapter on similarity."""

from __future__ import annotations

from typing import Any

from affscore_book.kit.checks import report
from affscore_book.similarity.channels import unit_channels
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes


def check_blind(x: Any, y: Any) -> None:
    """Is ``y`` made by mixing the channels of ``x``, the same for linear CKA, but not for G_ReLU-Procrustes?"""
    linear, relu = cka(x, y, null=0).value, procrustes(x, y, null=0).value
    old = (unit_channels(x).T @ unit_channels(y)).abs().amax(0) > 1 - 1e-9
    hint = ""
    if linear < 0.999:
        hint = f"linear CKA is {linear:.3f}; it should be above 0.999. What does it not see?"
    elif bool(old.all()):
        hint = "each channel is an old one, scaled, shifted or with its sign turned; mix the channels."
    elif relu >= 0.8:
        hint = f"G_ReLU-Procrustes is {relu:.3f}; it should be below 0.8. Mix more."
    report(
        "similarity-blind", not hint, "a rotation mixes the channels, and no matching of channels undoes that.", hint
    )


def check_dependent(x: Any, y: Any) -> None:
    """Do ``x`` and ``y``, (n, 1), have nothing in common for linear CKA, and something for the Laplace kernel?"""
    linear, laplace = (cka(x, y, kernel, null=0).value for kernel in ("linear", "laplace"))
    hint = ""
    if abs(linear) >= 0.02:
        hint = (
            f"linear CKA is {linear:.3f}; it should be within 0.02 of 0. Which functions of x are uncorrelated with x?"
        )
    elif laplace <= 0.1:
        hint = f"CKA with the Laplace kernel is {laplace:.3f}; it should be above 0.1, so y has to depend on x."
    report("similarity-dependent", not hint, "uncorrelated, and yet one is a function of the other.", hint)


def check_largest_share(share: float) -> None:
    """Is ``share`` the largest part of all pixels that a concept may cover and still be found at the usual cuts?"""
    report(
        "similarity-share",
        abs(share - 0.005 / 0.04) < 1e-3,
        "a unit is active on 0.5 % of the pixels, so the intersection is no more than that.",
        "if all active pixels lie in the concept, the intersection is 0.5 % of all pixels. And the union?",
    )
