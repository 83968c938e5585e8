"""The book's first widgets: one activation and its score in one dimension; a network's signature, call by call."""

from __future__ import annotations

import math

import numpy as np
import traitlets

from affscore.score import affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ScoreSlider", "SignatureTour"]

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

    >>> widget = ScoreSlider(activation="relu", centre=1.0)
    >>> widget
    ScoreSlider(activation='relu', centre=1.0)
    >>> round(widget.score(), 3)
    0.866
    """

    activation = traitlets.Enum(CHOICES, default_value="relu").tag(sync=True)
    centre = traitlets.Float(0.0, min=-LIMIT, max=LIMIT).tag(sync=True)

    def score(self) -> float:
        """The score of the present state; NaN where the activation is constant on the inputs."""
        x = self.centre - HALF_WIDTH + 2 * HALF_WIDTH * (np.arange(POINTS) + 0.5) / POINTS
        return affinity_score(x, CATALOGUE[self.activation](x).numpy(), covariance="empirical").item()


class SignatureTour(ComputedWidget):
    """A signature call by call: the score of each, where its inputs lie, and what ReLU6 does to them.

    Parameters
    ----------
    calls
        One dictionary a call, as :func:`affscore_book.first_signature.tour.load_tour` gives them.
    call
        The number of the chosen one, from 1 to 999.
    """

    _told = ("calls", "call")

    calls = traitlets.List(traitlets.Dict()).tag(sync=True)
    call = traitlets.Int(1, min=1, max=999).tag(sync=True)

    def score(self) -> float:
        """The score of the chosen call; NaN if there is none."""
        return self.calls[self.call - 1]["score"] if self.call <= len(self.calls) else math.nan
