"""The widgets of the chapter "ReLU in one dimension": a range of inputs that slides, and the reader's own numbers."""

from __future__ import annotations

import math
from typing import Any

import traitlets

from affscore import affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.relu_1d.exact import PIECEWISE_LINEAR, gaussian_input, uniform_input
from affscore_book.relu_1d.sample import read_numbers

__all__ = ["OwnSample", "ReluRange"]

LIMIT, LEAST, SLOPE = 5.0, 0.2, 0.1


class ReluRange(ComputedWidget):
    """The affinity score of ReLU, LeakyReLU or hardtanh for a range of inputs, with W2 and the bound.

    Parameters
    ----------
    activation
        ``"relu"``, ``"leaky_relu"`` (slope 0.1) or ``"hardtanh"`` (-1 to 1).
    law
        ``"uniform"`` on the range, or ``"gaussian"`` with the range as mean - 2 std to mean + 2 std.
    low, high
        Ends of the range, in [-5, 5], at least 0.2 apart.

    Raises
    ------
    traitlets.TraitError
        If an argument is none of these.

    >>> widget = ReluRange(low=-1.0, high=1.0)
    >>> widget
    ReluRange(activation='relu', high=1.0, law='uniform', low=-1.0)
    >>> round(widget.score(), 3)
    0.675
    """

    activation = traitlets.Enum(PIECEWISE_LINEAR, default_value="relu").tag(sync=True)
    law = traitlets.Enum(["uniform", "gaussian"], default_value="uniform").tag(sync=True)
    low = traitlets.Float(-2.0, min=-LIMIT, max=LIMIT - LEAST).tag(sync=True)
    high = traitlets.Float(3.0, min=LEAST - LIMIT, max=LIMIT).tag(sync=True)

    @traitlets.validate("low", "high")
    def _apart(self, proposal: Any) -> float:
        ends = {"low": self.low, "high": self.high} | {proposal["trait"].name: proposal["value"]}
        if not ends["high"] - ends["low"] >= LEAST - 1e-9:
            raise traitlets.TraitError(
                f"low is {ends['low']} and high is {ends['high']}; high should be at least {LEAST} above low."
            )
        return proposal["value"]

    def score(self) -> float:
        """The exact score of the present state; NaN where the activation is constant on the range."""
        if self.law == "uniform":
            return uniform_input(self.low, self.high, self.activation, slope=SLOPE).score.item()
        mean, std = (self.low + self.high) / 2, (self.high - self.low) / 4
        return gaussian_input(mean, std, self.activation, slope=SLOPE).score.item()


class OwnSample(ComputedWidget):
    """The affinity score of an activation on numbers that the reader types or pastes.

    Parameters
    ----------
    activation
        One of ``"relu"``, ``"leaky_relu"``, ``"gelu"``, ``"tanh"``, ``"sigmoid"``, ``"hardtanh"``.
    numbers
        A text; see :func:`affscore_book.relu_1d.sample.read_numbers`. Where it is no sample, the page says why, and
        the score is NaN.

    >>> widget = OwnSample(numbers="-1 0 1 2")
    >>> widget
    OwnSample(activation='relu', numbers='-1 0 1 2')
    >>> round(widget.score(), 3)
    0.763
    """

    activation = traitlets.Enum(CHOICES, default_value="relu").tag(sync=True)
    numbers = traitlets.Unicode("-2.1 -1.4 -0.9 -0.3 0.2 0.5 0.8 1.3 2.6 4").tag(sync=True)

    def score(self) -> float:
        """The score of the present numbers; NaN where they are no sample or the activation is constant on them."""
        try:
            x = read_numbers(self.numbers)
        except ValueError:
            return math.nan
        return affinity_score(x, CATALOGUE[self.activation](x).numpy(), covariance="empirical").item()
