"""The widget of the chapter on activations: any activation of the catalogue, any normal input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import traitlets

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import score_curve
from affscore_book.kit.picture import Panel, picture, score_panel
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ActivationExplorer"]

# The same numbers stand in activation_explorer.js.
LIMIT, EDGE = 10.0, 12.0


class ActivationExplorer(ComputedWidget):
    """The affinity score of one activation for inputs from N(mean, std^2), in one dimension.

    Parameters
    ----------
    activation
        A name in :data:`affscore_book.activations.catalogue.CATALOGUE`.
    mean
        Mean of the input, from -10 to 10.
    std
        Standard deviation of the input, from 0.05 to 4.

    Raises
    ------
    traitlets.TraitError
        If one of them is not.

    >>> widget = ActivationExplorer(activation="tanh", mean=1.0)
    >>> widget
    ActivationExplorer(activation='tanh', mean=1.0, std=1.0)
    >>> round(widget.score(), 3)
    0.69
    """

    _esm = Path(__file__).with_name("activation_explorer.js")

    activation = traitlets.Enum(list(CATALOGUE), default_value="silu").tag(sync=True)
    mean = traitlets.Float(0.0, min=-LIMIT, max=LIMIT).tag(sync=True)
    std = traitlets.Float(1.0, min=0.05, max=4.0).tag(sync=True)

    def score(self) -> float:
        """The exact score of the present state; NaN where the output cannot be told from a constant."""
        return score_curve(self.activation, self.mean, self.std).item()

    def fallback(self) -> str:
        """The picture for the present state: the activation with the input's density, and the score's curve."""
        row = CATALOGUE[self.activation]
        domain = np.linspace(-EDGE, EDGE, 241)
        values = row(domain).numpy()
        centre = values[np.abs(domain) <= 4]
        pad = 0.12 * (centre.max() - centre.min())
        low, high = centre.min() - 3 * pad, centre.max() + pad

        left = Panel(
            label=f"{row.title} and the density of the input",
            xlim=(-EDGE, EDGE), ylim=(low, high), xlabel="input",
            legend=[("curve", "output"), ("input-curve", "density")],
        )  # fmt: skip
        left.band("input-band", max(-EDGE, self.mean - 2 * self.std), min(EDGE, self.mean + 2 * self.std))
        left.line("curve", domain, np.where((values < low) | (values > high), np.nan, values))
        z = np.linspace(-4, 4, 81)
        x = self.mean + self.std * z
        bell = low + 0.45 * (high - low) * np.exp(-0.5 * z**2)
        left.line("input-curve", x, np.where(np.abs(x) > EDGE, np.nan, bell))

        means = np.linspace(-LIMIT, LIMIT, 81)
        score = self.score()
        right = score_panel(
            means, score_curve(row, means, self.std).numpy(), self.mean, score, gaps=False,
            label="The affinity score against the mean of the input", xlabel="mean of the input",
        )  # fmt: skip

        mean = f"{self.mean:.1f}".replace("-", "\u2212")
        text = f"{row.title}, normal input with mean {mean} and standard deviation {self.std:.2f}"
        return picture(left, right, score=score, text=text)
