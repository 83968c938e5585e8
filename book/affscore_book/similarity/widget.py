"""The widget of the chapter on similarity: two clouds, and every measure beside its null."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import traitlets
from numpy.typing import NDArray

from affscore_book.kit.affinity1d import uniforms
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes

__all__ = ["CloudsCompared", "Compared"]

Array = NDArray[np.float64]

# The same numbers stand in clouds_compared.js.
IMAGES, SHUFFLES = (12, 48), 101
NAMES = {
    "relu": "Procrustes, G_ReLU",
    "relu_uncentred": "Procrustes, not centred",
    "orthogonal": "Procrustes, orthogonal",
    "max": "CKA, max (G_ReLU)",
    "linear": "CKA, linear",
}
ORDERS = ("kept", "swapped")


class Compared(NamedTuple):
    """A similarity, and its null: mean, 5 % and 95 % point over random orders of the second cloud's rows."""

    value: float
    mean: float
    low: float
    high: float


def _features(stream: int) -> Array:
    """Two correlated channels after a ReLU, (48, 2); other streams are unrelated clouds of the same kind."""
    draws = np.array([uniforms(stream + k, IMAGES[1]) for k in range(6)])
    a, b = draws[:3].sum(0), draws[3:].sum(0)
    return np.maximum(np.stack([a, 0.7 * (a + b)], axis=1) + 1, 0)


def _compare(measure: str, x: Array, y: Array) -> float:
    if measure in ("max", "linear"):
        return cka(x, y, measure, null=0).value
    group, _, uncentred = measure.partition("_")
    return procrustes(x, y, group, centred=not uncentred, null=0).value


class CloudsCompared(ComputedWidget):
    """A cloud of two channels, what is made of it, and five similarities of the two, each beside its null.

    The second cloud is the first one with a share of an unrelated cloud mixed in; then its first channel is scaled,
    its channels change order, and it is rotated about the origin. The null of a measure is what it gives for the
    second cloud's rows in 101 random orders, the same in every state.

    Parameters
    ----------
    angle
        Of the rotation, from -180 to 180 degrees.
    images
        How many rows are compared, from 12 to 48.
    measure
        Whose value is the score: ``"relu"``, ``"relu_uncentred"`` or ``"orthogonal"`` (Procrustes), ``"max"`` or
        ``"linear"`` (CKA).
    noise
        The share of the unrelated cloud, from 0 to 1.
    order
        ``"kept"`` or ``"swapped"``.
    stretch
        The first channel is scaled by ``2 ** (stretch / 4)``; a whole number from -6 to 6.

    Raises
    ------
    traitlets.TraitError
        If one of them is not.

    >>> [round(CloudsCompared(measure=name, angle=40.0).score(), 3) for name in ("relu", "linear")]
    [0.663, 1.0]
    """

    angle = traitlets.Float(0.0, min=-180.0, max=180.0).tag(sync=True)
    images = traitlets.Int(IMAGES[1], min=IMAGES[0], max=IMAGES[1]).tag(sync=True)
    measure = traitlets.Enum(list(NAMES), default_value="relu").tag(sync=True)
    noise = traitlets.Float(0.0, min=0.0, max=1.0).tag(sync=True)
    order = traitlets.Enum(list(ORDERS), default_value="kept").tag(sync=True)
    stretch = traitlets.Int(0, min=-6, max=6).tag(sync=True)

    def clouds(self) -> tuple[Array, Array]:
        """The two clouds of the present state, each (images, 2), float64."""
        x, unrelated = _features(1)[: self.images], _features(7)[: self.images]
        y = ((1 - self.noise) * x + self.noise * unrelated) * [2 ** (self.stretch / 4), 1.0]
        if self.order == "swapped":
            y = y[:, ::-1]
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        return x, y @ np.array([[cos, sin], [-sin, cos]])

    def compared(self) -> dict[str, Compared]:
        """Every measure in the present state, beside its null."""
        x, y = self.clouds()
        orders = [np.argsort(uniforms(20 + k, self.images), kind="stable") for k in range(SHUFFLES)]
        result = {}
        for name in NAMES:
            null = np.sort([_compare(name, x, y[order]) for order in orders])
            result[name] = Compared(_compare(name, x, y), *(float(v) for v in (null.mean(), null[5], null[95])))
        return result

    def score(self) -> float:
        """The chosen measure of the two clouds."""
        return _compare(self.measure, *self.clouds())
