"""The widget of the chapter on theory: a cloud in the plane goes through an activation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import traitlets
from numpy.typing import NDArray

from affscore.affine import affine_map
from affscore.coupling import partners
from affscore.score import affinity_score, wasserstein2
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.kit.affinity2d import POINTS, cloud
from affscore_book.kit.picture import LOOKS, Panel, picture, readout
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["CloudThroughActivation"]

Array = NDArray[np.float64]

CENTRE, WIDTHS, FRAME, HEIGHT = 3.0, (0.02, 1.0), (-5.5, 5.5), 346


def frame(values: Array) -> tuple[float, float]:
    """Limits that hold all values and seldom change while a slider moves: multiples of a power of two.

    >>> frame(np.array([0.1, 0.9]))
    (-0.0625, 1.0625)
    """
    low, high = float(values.min()), float(values.max())
    step = 2.0 ** math.ceil(math.log2(high - low)) / 4 if high > low else 1.0
    return (math.floor(low / step) - 0.25) * step, (math.ceil(high / step) + 0.25) * step


def _add_legend(panel: Panel) -> None:
    """Marks of three kinds, where a panel's own legend has lines only."""
    panel.add(f'<circle class="input-dot" {LOOKS["input-dot"]} cx="12" cy="12" r="4"/>')
    panel.add(f'<path class="image-line" {LOOKS["image-line"]} d="M88 8L96 16M88 16L96 8"/>')
    panel.add(f'<path class="w2-curve" {LOOKS["w2-curve"]} d="M200 12L224 12"/>')
    for at, text in ((22, "output"), (102, "affine image"), (230, "coupling")):
        panel.write("label", at, 16, text)


class CloudThroughActivation(ComputedWidget):
    """A cloud in the plane through an activation: outputs, affine image, optimal coupling and affinity score.

    Covariances are empirical. The cloud is that of :func:`cloud`.

    Parameters
    ----------
    activation
        One of ``"relu"``, ``"leaky_relu"``, ``"gelu"``, ``"tanh"``, ``"sigmoid"``, ``"hardtanh"``.
    centre
        Both coordinates of the cloud's centre, from -3 to 3.
    width
        Standard deviation across the cloud's long direction, from 0.02 to 1; along it, it is 1.
    angle
        The long direction, in degrees from the first axis, from 0 to 180.

    Raises
    ------
    traitlets.TraitError
        If a value is not one of these.

    >>> widget = CloudThroughActivation(activation="relu", centre=0.0, width=0.5, angle=45.0)
    >>> 0.6 < widget.score() < 0.7
    True
    """

    _esm = Path(__file__).with_name("cloud_through_activation.js")
    _css = Path(__file__).with_name("cloud_through_activation.css")

    activation = traitlets.Enum(list(CHOICES), default_value="relu").tag(sync=True)
    angle = traitlets.Float(30.0, min=0.0, max=180.0).tag(sync=True)
    centre = traitlets.Float(0.0, min=-CENTRE, max=CENTRE).tag(sync=True)
    width = traitlets.Float(0.5, min=WIDTHS[0], max=WIDTHS[1]).tag(sync=True)

    def samples(self) -> tuple[Array, Array]:
        """Inputs and outputs of the present state, each of shape (56, 2), float64."""
        x = cloud(self.width, self.angle, self.centre)
        return x, CATALOGUE[self.activation](x).numpy()

    def score(self) -> float:
        """The score of the present state; NaN where the activation is constant on the cloud."""
        return affinity_score(*self.samples(), covariance="empirical").item()

    def fallback(self) -> str:
        """The picture for the present state: the inputs, and the outputs coupled with the affine image."""
        x, y = self.samples()
        image = affine_map(x, y, covariance="empirical")(x)
        partner = partners(image, y)
        w2 = wasserstein2(image, y).item()
        bound = math.sqrt(2 * y.var(axis=0).sum())

        left = Panel(
            label="The input cloud", xlim=FRAME, ylim=FRAME, xlabel="first input", ylabel="second input", height=HEIGHT
        )  # fmt: skip
        for across, up in x:
            left.dot("input-dot", across, up, radius=3)
        limits = frame(np.concatenate([image, y]))
        parts = "the outputs, the affine image of the inputs, and the optimal coupling between them"
        right = Panel(
            label=f"{CHOICES[self.activation]}: {parts}",
            xlim=limits, ylim=limits, xlabel="first output (vertical: second output)", height=HEIGHT,
        )  # fmt: skip
        _add_legend(right)
        gap = np.full(POINTS, np.nan)
        right.line("w2-curve", *(np.stack([image[:, k], y[partner, k], gap], axis=1).ravel() for k in (0, 1)))
        for across, up in y:
            right.dot("input-dot", across, up, radius=4)
        right.crosses("image-line", image, 4)
        text = f"{CHOICES[self.activation]}: W\u2082 {readout(w2)} of at most {readout(bound)}"
        return picture(left, right, score=self.score(), text=text)
