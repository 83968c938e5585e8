"""The widget of the chapter on activations: any activation of the catalogue, any normal input."""

from __future__ import annotations

from pathlib import Path

import traitlets

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import score_curve
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ActivationExplorer"]

# The same numbers stand in activation_explorer.js.
LIMIT = 10.0


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
