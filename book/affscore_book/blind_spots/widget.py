"""The widget of the chapter on blind spots: a cloud is turned, its outputs are shuffled, and one score sees it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import traitlets
from numpy.typing import NDArray

from affscore.score import affinity_score, paired_affinity_score
from affscore_book.kit.affinity2d import POINTS, cloud
from affscore_book.kit.picture import LOOKS, Panel, picture, readout
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ShuffleAndTurn"]

Array = NDArray[np.float64]

STRETCH, SHARES, FRAME, HEIGHT, STEP = 0.8, np.linspace(0, 1, 21), (-6.0, 6.0), 346, 23


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

    Raises
    ------
    traitlets.TraitError
        If a value is not one of these.

    >>> widget = ShuffleAndTurn(shuffled=1.0)
    >>> round(widget.score(), 3), abs(widget.paired()) < 0.1
    (1.0, True)
    """

    _esm = Path(__file__).with_name("shuffle_and_turn.js")
    _css = Path(__file__).with_name("shuffle_and_turn.css")

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

    def fallback(self) -> str:
        """The picture for the present state: the pairs, and both scores for every share."""
        x, y = self.samples()
        left = Panel(
            label="Inputs, outputs, and which belongs to which", xlim=FRAME, ylim=FRAME,
            xlabel="first channel (vertical: second channel)", height=HEIGHT,
        )  # fmt: skip
        left.add(f'<circle class="input-dot" {LOOKS["input-dot"]} cx="12" cy="12" r="4"/>')
        left.add(f'<path class="image-line" {LOOKS["image-line"]} d="M78 8L86 16M78 16L86 8"/>')
        left.add(f'<path class="curve" {LOOKS["curve"]} d="M160 12L184 12"/>')
        for at, text in ((22, "input"), (92, "output"), (190, "pair")):
            left.write("label", at, 16, text)
        gap = np.full(len(x), np.nan)
        left.line("curve", *(np.stack([x[:, k], y[:, k], gap], axis=1).ravel() for k in (0, 1)))
        for across, up in x:
            left.dot("input-dot", across, up, radius=4)
        left.crosses("image-line", y, 4)
        right = Panel(
            label="Both scores against the share of outputs that is shuffled", xlim=(-0.05, 1.05), ylim=(-0.5, 1.05),
            xlabel="share of the outputs shuffled", height=HEIGHT,
            legend=[("score-curve", "affinity score"), ("w2-curve", "paired score")],
        )  # fmt: skip
        for look, dot, score, now in (
            ("score-curve", "score-dot", affinity_score, self.score()),
            ("w2-curve", "w2-dot", paired_affinity_score, self.paired()),
        ):
            values = [score(*self.samples(share), covariance="empirical").item() for share in SHARES]
            right.line(look, SHARES, values)
            right.dot(dot, self.shuffled, now)
        return picture(left, right, score=self.score(), text=f"Paired score {readout(self.paired())}")
