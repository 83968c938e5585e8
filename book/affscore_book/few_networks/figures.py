"""The intervals of many studies, as one picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from affscore_book.kit.drawing import Drawing
from affscore_book.kit.picture import Panel

__all__ = ["plot_studies"]

#: What the panel shows of the gaps, in points; bars that leave it end at its edge.
FRAME = (-3.0, 5.0)


def plot_studies(low: ArrayLike, high: ArrayLike, truth: float) -> Drawing:
    """A vertical bar for each study, from ``low`` to ``high``, both of shape (studies,), and the truth as a line."""
    ends = np.clip(np.stack([low, high], axis=1), *FRAME)
    held = (np.asarray(low) <= truth) & (np.asarray(high) >= truth)
    panel = Panel(
        label=f"The intervals of {len(ends)} studies, and the truth", xlim=(0, len(ends) + 1), ylim=FRAME,
        xlabel="study (vertical: gap in points)",
        legend=[("curve", "holds"), ("image-line", "misses"), ("score-curve", "the truth")],
    )  # fmt: skip
    for look, chosen in (("curve", held), ("image-line", ~held)):
        at = np.flatnonzero(chosen)
        gap = np.full(len(at), np.nan)
        xs = np.stack([at + 1.0, at + 1.0, gap], axis=1).ravel()
        panel.line(look, xs, np.stack([*ends[at].T, gap], axis=1).ravel())
    panel.line("score-curve", [0, len(ends) + 1], [truth, truth])
    return Drawing(panel)
