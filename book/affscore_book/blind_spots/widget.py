"""The widget of the chapter on blind spots: a cloud is turned, its outputs are shuffled, and one score sees it."""

from __future__ import annotations

import math

import numpy as np
import traitlets
from numpy.typing import NDArray

from affscore.score import affinity_score, paired_affinity_score
from affscore_book.kit.affinity2d import POINTS, cloud
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ShuffleAndTurn"]

Array = NDArray[np.float64]

STRETCH, STEP = 0.8, 23


def rows(share: float, n: int = POINTS) -> NDArray[np.int64]:
    """Which row each of ``n`` outputs comes from when this share of them is shuffled, without random numbers.

    >>> rows(0.0, 4), sorted(rows(1.0, 4).tolist())
    (array([0, 1, 2, 3]), [0, 1, 2, 3])
    """
    moved = np.sort((np.arange(n) * STEP % n)[: math.floor(share * n + 0.5)])  # rounded as JavaScript does
    found = np.arange(n)
    found[moved] = np.roll(moved, 2)
    return found


class ShuffleAndTurn(ComputedWidget):
    """A cloud in the plane, turned, and a share of its outputs shuffled, with its affinity and its paired score.

    Covariances are empirical. The round cloud is that of :func:`affscore_book.kit.affinity2d.cloud`, the skewed one its
    exponential.

    Parameters
    ----------
    shape
        ``"skewed"`` or ``"round"``.
    angle
        By how many degrees the outputs are the inputs turned, from 0 to 180.
    shuffled
        The share of the outputs that change places, from 0 to 1.

    >>> widget = ShuffleAndTurn(shuffled=1.0)
    >>> round(widget.score(), 3), abs(widget.paired()) < 0.1
    (1.0, True)
    """

    angle = traitlets.Float(0.0, min=0.0, max=180.0).tag(sync=True)
    shape = traitlets.Enum(["skewed", "round"], default_value="skewed").tag(sync=True)
    shuffled = traitlets.Float(0.0, min=0.0, max=1.0).tag(sync=True)

    def samples(self, shuffled: float | None = None) -> tuple[Array, Array]:
        """Inputs and outputs of the present state, or with another share shuffled, each of shape (56, 2), float64."""
        x = cloud() if self.shape == "round" else np.exp(STRETCH * cloud())
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        y = x @ np.array([[cos, sin], [-sin, cos]])
        return x, y[rows(self.shuffled if shuffled is None else shuffled)]

    def score(self) -> float:
        """The affinity score of the present state."""
        return affinity_score(*self.samples(), covariance="empirical").item()

    def paired(self) -> float:
        """The paired score of the present state."""
        return paired_affinity_score(*self.samples(), covariance="empirical").item()
