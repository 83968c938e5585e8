"""The widgets of the chapter on theory: a cloud goes through an activation, and points that are moved and coupled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import traitlets
from numpy.typing import NDArray

from affscore.score import affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES
from affscore_book.kit.affinity2d import cloud
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["CloudThroughActivation", "MoveTheCloud"]

Array = NDArray[np.float64]

CENTRE, WIDTHS = 3.0, (0.02, 1.0)


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

    >>> widget = CloudThroughActivation(activation="relu", centre=0.0, width=0.5, angle=45.0)
    >>> 0.6 < widget.score() < 0.7
    True
    """

    activation = traitlets.Enum(CHOICES, default_value="relu").tag(sync=True)
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


#: Most exchanges of the slider, and the frame of the points.
EXCHANGES, PLANE = 24, (-3.2, 3.2)
STRETCH, TURN, SHEAR = (np.array(rows) for rows in ([[0.8, 0.7], [0.7, 1.4]], [[0, 1], [-1, 0]], [[1, 0], [1, 1]]))
#: The maps of :class:`MoveTheCloud`: functions of points (n, 2).
MAPS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "square": np.square,
    "stretch": lambda x: x @ STRETCH,
    "turn": lambda x: x @ TURN,
    "shear": lambda x: x @ SHEAR,
}


class MoveTheCloud(ComputedWidget):
    """Points that a reader drags: T moves them, and a coupling with their outputs is uncrossed, exchange by exchange.

    Parameters
    ----------
    exchanges
        Exchanges of two partners that have been made, from 0 to 24.
    map
        One of ``"relu"``, ``"square"``, ``"stretch"``, ``"turn"``, ``"shear"``.
    moved
        How far T has moved the points, from 0 to 1.
    points
        Coordinates x1, y1, x2, y2, ... of at least three points, from -3.2 to 3.2.

    >>> round(MoveTheCloud(map="stretch").score(), 6)
    1.0
    """

    exchanges = traitlets.Int(0, min=0, max=EXCHANGES).tag(sync=True)
    map = traitlets.Enum(list(MAPS), default_value="relu").tag(sync=True)
    moved = traitlets.Float(0.0, min=0.0, max=1.0).tag(sync=True)
    points = traitlets.List(
        traitlets.Float(min=PLANE[0], max=PLANE[1]), [round(v, 2) for v in cloud(0.6, 30, n=12).ravel().tolist()]
    ).tag(sync=True)

    @traitlets.validate("points")
    def _pairs(self, proposal: Any) -> list[float]:
        if len(proposal["value"]) % 2 or len(proposal["value"]) < 6:
            raise traitlets.TraitError(
                f"points holds {len(proposal['value'])} numbers; it should hold two for each of three points or more."
            )
        return proposal["value"]

    def samples(self) -> tuple[Array, Array]:
        """Points and outputs of the present state, each of shape (n, 2), float64."""
        x = np.array(self.points).reshape(-1, 2)
        return x, MAPS[self.map](x)

    def score(self) -> float:
        """The score of the present state; NaN where the outputs are constant."""
        return affinity_score(*self.samples(), covariance="empirical").item()
