"""The widgets of the chapter "ReLU in one dimension": a range of inputs that slides, and the reader's own numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from scipy.special import ndtri

from affscore import affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.kit.picture import LOOKS, Panel, picture, score_panel
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.relu_1d.exact import Affinity, gaussian_input, uniform_input
from affscore_book.relu_1d.sample import read_numbers

__all__ = ["OwnSample", "ReluRange"]

LIMIT, LEAST, SLOPE, SWEEP = 5.0, 0.2, 0.1, 121
SHAPES: dict[str, dict[str, Any]] = {
    "relu": {"name": "ReLU", "slope": 0.0, "low": 0.0, "high": math.inf, "ylim": (-2.0, 5.5)},
    "leaky_relu": {"name": "LeakyReLU, slope 0.1", "slope": SLOPE, "low": 0.0, "high": math.inf, "ylim": (-2.0, 5.5)},
    "hardtanh": {"name": "hardtanh", "slope": 0.0, "low": -1.0, "high": 1.0, "ylim": (-1.9, 1.9)},
}


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

    _esm = Path(__file__).with_name("relu_range.js")
    _css = Path(__file__).with_name("relu_range.css")

    activation = traitlets.Enum(list(SHAPES), default_value="relu").tag(sync=True)
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

    def _exact(self, low: Any, high: Any) -> Affinity:
        if self.law == "uniform":
            return uniform_input(low, high, self.activation, slope=SLOPE)
        return gaussian_input((low + high) / 2, (high - low) / 4, self.activation, slope=SLOPE)

    def score(self) -> float:
        """The exact score of the present state; NaN where the activation is constant on the range."""
        return self._exact(self.low, self.high).score.item()

    def _output(self, x: Any) -> np.ndarray:
        """The activation, elementwise."""
        of = SHAPES[self.activation]
        return of["slope"] * np.asarray(x) + (1 - of["slope"]) * np.clip(x, of["low"], of["high"])

    def _image(self) -> list[float]:
        """The affine image of both ends: mean of the output -+ its standard deviation in as many units as the ends."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        share = (np.arange(20_000) + 0.5) / 20_000
        uniform = self.law == "uniform"
        y = self._output(middle + half * (2 * share - 1 if uniform else ndtri(share) / 2))
        rise = y.std() * (math.sqrt(3) if uniform else 2)
        return [float(y.mean() - rise), float(y.mean() + rise)]

    def fallback(self) -> str:
        """The picture for the present state: the activation, W2 and the bound, the score."""
        of, ends = SHAPES[self.activation], [self.low, self.high]
        middle, width, exact = sum(ends) / 2, self.high - self.low, self._exact(*ends)
        left = Panel(
            label=f"{of['name']}, the range of its inputs, and the affine image",
            xlim=(-LIMIT, LIMIT), ylim=of["ylim"], xlabel="input",
            legend=[("input-curve", "output"), ("image-line", "affine image")],
        )  # fmt: skip
        kinks = [-LIMIT, -1.0, 0.0, 1.0, LIMIT]
        inside = [self.low, *(x for x in kinks if self.low < x < self.high), self.high]
        left.band("input-band", *ends)
        left.line("curve", kinks, self._output(kinks))
        left.line("input-curve", inside, self._output(inside))
        left.line("image-line", ends, self._image())

        middles = np.linspace(-LIMIT, LIMIT, SWEEP)
        sweep = self._exact(middles - width / 2, middles + width / 2)
        parts = Panel(
            label="The transport distance W2 and its bound against the middle of the range",
            xlim=(-LIMIT, LIMIT), ylim=(0, 1.08 * sweep.bound.max().item()), xlabel="middle of the range",
            legend=[("w2-curve", "W2"), ("bound-curve", "bound \u221a(2 Var Y)")],
        )  # fmt: skip
        parts.line("bound-curve", middles, sweep.bound.tolist())
        parts.line("w2-curve", middles, sweep.w2.tolist())
        parts.dot("bound-dot", middle, exact.bound.item())
        parts.dot("w2-dot", middle, exact.w2.item())

        right = score_panel(
            middles, sweep.score, middle, exact.score.item(), gaps=True,
            label="The affinity score against the middle of the range", xlabel="middle of the range",
        )  # fmt: skip

        law = f"uniform on [{self.low:.2f}, {self.high:.2f}]"
        if self.law == "gaussian":
            law = f"N(mean {middle:.2f}, std {width / 4:.2f})"
        text = f"{of['name']}, input {law}. W2 {exact.w2.item():.3f}, bound {exact.bound.item():.3f}"
        return picture(left, parts, right, score=exact.score.item(), text=text.replace("-", "\u2212"))


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

    _esm = Path(__file__).with_name("own_sample.js")
    _css = Path(__file__).with_name("own_sample.css")

    activation = traitlets.Enum(list(CHOICES), default_value="relu").tag(sync=True)
    numbers = traitlets.Unicode("-2.1 -1.4 -0.9 -0.3 0.2 0.5 0.8 1.3 2.6 4").tag(sync=True)

    def score(self) -> float:
        """The score of the present numbers; NaN where they are no sample or the activation is constant on them."""
        try:
            x = read_numbers(self.numbers)
        except ValueError:
            return math.nan
        return affinity_score(x, CATALOGUE[self.activation](x).numpy(), covariance="empirical").item()

    def fallback(self) -> str:
        """The picture for the present numbers: sorted outputs against sorted inputs, in standard deviations."""
        legend = [("input-curve", "your numbers"), ("image-line", "affine image")]
        try:
            x = np.sort(read_numbers(self.numbers))
        except ValueError as error:
            panel = Panel(label="No sample", xlim=(-2, 2), ylim=(-2, 2), xlabel="input", ylabel="output", legend=legend)
            return picture(panel, score=math.nan, headline=str(error), text="Until then the score is undefined.")
        y = np.sort(CATALOGUE[self.activation](x).numpy())
        inputs, outputs = (x - x.mean()) / x.std(), (y - y.mean()) / (y.std() or np.nan)
        low = math.floor(min(-2, *inputs, *outputs) - 0.2)
        high = math.ceil(max(2, *inputs, *outputs) + 0.2)
        panel = Panel(
            label="The sorted outputs against the sorted inputs, and the affine image", xlim=(low, high),
            ylim=(low, high), xlabel="input (both axes: standard deviations)", ylabel="output", legend=legend,
        )  # fmt: skip
        panel.band("input-band", low, min(max(-x.mean() / x.std(), low), high))
        panel.line("image-line", inputs[[0, -1]], inputs[[0, -1]])
        if y.std() > 0:
            marks = "".join(f"M{panel.x_at(u)} {panel.y_at(v)}h0" for u, v in zip(inputs, outputs, strict=True))
            panel.add(f'<path class="input-curve" {LOOKS["input-curve"]} stroke-linecap="round" d="{marks}"/>')
        negative = (x < 0).sum()
        share = f"{negative} negative ({100 * negative / x.size:.0f} %, shaded)"
        text = f"{x.size} numbers, mean {x.mean():.3g}, standard deviation {x.std():.3g}; {share}"
        return picture(panel, score=self.score(), text=text.replace("-", "\u2212"))
