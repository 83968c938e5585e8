"""The book's first widgets: one activation and its score in one dimension; a network's signature, call by call."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from affscore.score import affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.first_signature.tour import BINS, RANGE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.kit.picture import LOOKS, Panel, picture, score_panel
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
        x = centre - HALF_WIDTH + 2 * HALF_WIDTH * (np.arange(POINTS) + 0.5) / POINTS
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


class SignatureTour(ComputedWidget):
    """A signature call by call: the score of each, where its inputs lie, and what ReLU6 does to them.

    Parameters
    ----------
    calls
        One dictionary a call, as :func:`affscore_book.first_signature.tour.load_tour` gives them.
    call
        The number of the chosen one, from 1 to 999.
    """

    _esm = Path(__file__).with_name("signature_tour.js")

    calls = traitlets.List(traitlets.Dict()).tag(sync=True)
    call = traitlets.Int(1, min=1, max=999).tag(sync=True)

    def _chosen(self) -> dict[str, Any] | None:
        return self.calls[self.call - 1] if self.call <= len(self.calls) else None

    def score(self) -> float:
        """The score of the chosen call; NaN if there is none."""
        chosen = self._chosen()
        return math.nan if chosen is None else chosen["score"]

    def __repr__(self) -> str:
        if not self.calls:
            return super().__repr__()
        return f"SignatureTour({len(self.calls)} calls, call={self.call})"

    def fallback(self) -> str:
        """The signature with the chosen call, and its inputs under the curve of ReLU6."""
        chosen = self._chosen()
        left = Panel(
            label="The signature: the score of every call", xlim=(0, len(self.calls) + 1), ylim=(0.6, 1),
            xlabel="activation call", legend=[("score-curve", "affinity score"), ("twin-curve", "linear twin")],
        )  # fmt: skip
        right = Panel(
            label="The inputs of the chosen call and the activation", xlim=RANGE, ylim=(0, 7),
            xlabel="input (shaded: how often)", legend=[("curve", "output of ReLU6")],
        )  # fmt: skip
        if chosen is None:
            return picture(left, right, score=math.nan, text="There is no call to show.")
        for look, key in (("twin-curve", "twin"), ("score-curve", "score")):
            left.line(look, range(1, len(self.calls) + 1), [call[key] for call in self.calls])
        left.dot("score-dot", self.call, chosen["score"], 7)
        for look, shown in (("dead-band", False), ("input-band", True)):
            heights = [h * (shown == (20 <= i < 40)) for i, h in enumerate(chosen["heights"])]
            right.add(f'<path class="{look}" {LOOKS[look]} d="{_bars(right, heights)}"/>')
        right.line("curve", (-6, 0, 6, 9), (0, 0, 6, 6))
        above = "less than 0.1" if chosen["above"] < 0.1 else f"{chosen['above']:.1f}"
        text = f"{chosen['name']}: {chosen['below']:.0f} % of the inputs become 0, {above} % become 6"
        return picture(left, right, score=chosen["score"], text=text)


def _bars(panel: Panel, heights: list[int]) -> str:
    """The outline of bars over RANGE, a height of 100 near the top of the panel."""
    edges = [panel.x_at(x) for x in np.linspace(*RANGE, BINS + 1)]
    tops = [panel.y_at(6.5 * height / 100) for height in heights]
    steps = [f"L{left} {top}L{right} {top}" for left, right, top in zip(edges, edges[1:], tops, strict=False)]
    return f"M{edges[0]} {panel.y_at(0)}{''.join(steps)}L{edges[-1]} {panel.y_at(0)}Z"
