"""The widget of the chapter on symmetries: a matrix acts on two hidden neurons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import traitlets
from numpy.typing import NDArray

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["HiddenAction"]

# The same numbers stand in hidden_action.js.
POINTS, REACH = 161, 3.0
WEIGHT, BIAS, OUTPUT = np.array([-1.4, 0.9]), np.array([-2.3, 0.6]), np.array([1.5, 1.3])
NAMES = {
    "relu": "ReLU",
    "leaky_relu": "Leaky ReLU",
    "tanh": "tanh",
    "gaussian": "Gaussian",
    "identity": "identity",
}
ORDERS = ("kept", "swapped")


def _sigma(name: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    return CATALOGUE[name](x).numpy()


class HiddenAction(ComputedWidget):
    """A network of one input, two hidden neurons and one output, and a matrix that acts on the hidden layer.

    The matrix is a rotation times a permutation times a diagonal matrix. Weights and biases of the hidden layer are
    multiplied by it; the output layer is fitted again by least squares. What remains of the difference, as a share
    of the function's standard deviation, is what no output layer can repair: 0 for a symmetry, at most 1.

    Parameters
    ----------
    activation
        One of ``"relu"``, ``"leaky_relu"``, ``"tanh"``, ``"gaussian"``, ``"identity"``.
    angle
        Of the rotation, from -180 to 180 degrees.
    first, second
        The two scalings are ``2 ** (first / 4)`` and ``2 ** (second / 4)``; whole numbers from -8 to 8.
    order
        ``"kept"`` or ``"swapped"``.

    Raises
    ------
    traitlets.TraitError
        If one of them is not.

    >>> round(HiddenAction(first=6, order="swapped").score(), 9), round(HiddenAction(angle=20.0).score(), 2)
    (0.0, 0.36)
    """

    activation = traitlets.Enum(list(NAMES), default_value="relu").tag(sync=True)
    angle = traitlets.Float(0.0, min=-180.0, max=180.0).tag(sync=True)
    first = traitlets.Int(0, min=-8, max=8).tag(sync=True)
    order = traitlets.Enum(list(ORDERS), default_value="kept").tag(sync=True)
    second = traitlets.Int(0, min=-8, max=8).tag(sync=True)

    def matrix(self) -> NDArray[np.float64]:
        """The matrix of the present state, (2, 2)."""
        turn = math.radians(self.angle)
        rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        permutation = np.eye(2) if self.order == "kept" else np.eye(2)[::-1]
        return rotation @ permutation @ np.diag([2.0 ** (self.first / 4), 2.0 ** (self.second / 4)])

    def curves(self) -> dict[str, Any]:
        """Inputs, hidden values before and after the activation, the function and the closest one, as arrays."""
        x = np.linspace(-REACH, REACH, POINTS)
        before = np.outer(x, WEIGHT) + BIAS
        wanted = _sigma(self.activation, before) @ OUTPUT
        after = before @ self.matrix().T
        hidden = _sigma(self.activation, after)
        columns = np.column_stack([np.ones(POINTS), hidden])
        # The cut-off drops a neuron that is constant, or an affine image of the other.
        columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-12)
        fitted = columns @ np.linalg.lstsq(columns, wanted, rcond=1e-9)[0]
        return {"x": x, "after": after, "hidden": hidden, "wanted": wanted, "fitted": fitted}

    def score(self) -> float:
        """The part of the function that no output layer can repair, between 0 and 1."""
        curves = self.curves()
        gap = curves["wanted"] - curves["fitted"]
        return float(np.sqrt((gap**2).mean()) / curves["wanted"].std())
