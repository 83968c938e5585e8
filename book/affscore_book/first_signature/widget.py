"""The book's first widget: one activation, one slider, one picture of the score in one dimension."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import traitlets

from affscore.score import affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES, uniform_grid
from affscore_book.kit.picture import Panel, picture, score_panel
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ScoreSlider"]

# The protocol of the paper's Figure 2A: inputs uniform on an interval of width 4 whose centre goes from -4 to 4.
POINTS, HALF_WIDTH, LIMIT = 400, 2.0, 4.0


class ScoreSlider(ComputedWidget):
    """The affinity score of an activation for inputs uniform on [centre - 2, centre + 2].

    Parameters
    ----------
    activation
        One of ``"relu"``, ``"leaky_relu"``, ``"gelu"``, ``"tanh"``, ``"sigmoid"``, ``"hardtanh"``.
    centre
        Middle of the inputs, from -4 to 4.

    Raises
    ------
    traitlets.TraitError
        If ``activation`` or ``centre`` is not one of these.

    >>> widget = ScoreSlider(activation="relu", centre=1.0)
    >>> widget
    ScoreSlider(activation='relu', centre=1.0)
    >>> round(widget.score(), 3)
    0.866
    """

    _esm = Path(__file__).with_name("score_slider.js")

    activation = traitlets.Enum(list(CHOICES), default_value="relu").tag(sync=True)
    centre = traitlets.Float(0.0, min=-LIMIT, max=LIMIT).tag(sync=True)

    def _samples(self, centre: float) -> tuple[np.ndarray, np.ndarray]:
        x = uniform_grid(centre - HALF_WIDTH, centre + HALF_WIDTH, POINTS)
        return x, CATALOGUE[self.activation](x).numpy()

    def _score(self, centre: float) -> float:
        return affinity_score(*self._samples(centre), covariance="empirical").item()

    def score(self) -> float:
        """The score of the present state; NaN where the activation is constant on the inputs."""
        return self._score(self.centre)

    def fallback(self) -> str:
        """The picture for the present state: the activation with its affine image, and the score's curve."""
        score = self.score()
        x, y = self._samples(self.centre)
        ends = (self.centre - HALF_WIDTH, self.centre + HALF_WIDTH)
        image = y.mean() + y.std() / x.std() * (np.array(ends) - x.mean())
        limit = LIMIT + HALF_WIDTH
        domain = np.linspace(-limit, limit, 121)
        curve = CATALOGUE[self.activation](domain).numpy()
        low, high = min(curve.min(), image.min()), max(curve.max(), image.max())
        pad = 0.05 * (high - low)

        left = Panel(
            label=f"{CHOICES[self.activation]}, the range of its inputs, and the affine image",
            xlim=(-limit, limit), ylim=(low - pad, high + pad), xlabel="input",
            legend=[("input-curve", "output"), ("image-line", "affine image")],
        )  # fmt: skip
        left.band("input-band", *ends)
        left.line("curve", domain, curve)
        inside = np.linspace(*ends, 81)
        left.line("input-curve", inside, CATALOGUE[self.activation](inside).numpy())
        left.line("image-line", ends, image)

        centres = np.linspace(-LIMIT, LIMIT, 81)
        scores = np.array([self._score(centre) for centre in centres])
        right = score_panel(
            centres, scores, self.centre, score, gaps=True,
            label="The affinity score against the centre of the inputs", xlabel="centre of the inputs",
        )  # fmt: skip
        bounds = " to ".join(f"{end:.1f}".replace("-", "\u2212") for end in ends)
        return picture(left, right, score=score, text=f"{CHOICES[self.activation]}, inputs from {bounds}")
