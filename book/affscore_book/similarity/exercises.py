"""Checks of the exercises of the chapter on similarity."""

from __future__ import annotations

from typing import Any

from affscore_book.kit.checks import report
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes


def check_blind(x: Any, y: Any) -> None:
    """Is ``y`` the same as ``x`` for linear CKA, but not for G_ReLU-Procrustes?"""
    linear, relu = cka(x, y, null=0).value, procrustes(x, y, null=0).value
    if linear < 0.999:
        return report(
            "similarity-blind",
            False,
            "",
            f"linear CKA is {linear:.3f}; it should be above 0.999. What does it not see?",
        )
    report(
        "similarity-blind",
        relu < 0.8,
        "a rotation mixes the channels, and no matching of channels undoes that.",
        f"G_ReLU-Procrustes is {relu:.3f}; it should be below 0.8. Swaps and scales are too little.",
    )


def check_largest_share(share: float) -> None:
    """Is ``share`` the largest part of all pixels that a concept may cover and still be found at the usual cuts?"""
    report(
        "similarity-share",
        abs(share - 0.005 / 0.04) < 1e-3,
        "a unit is active on 0.5 % of the pixels, so the intersection is no more than that.",
        "if all active pixels lie in the concept, the intersection is 0.5 % of all pixels. And the union?",
    )
