"""The widget of the chapter on stitching: two small networks and a choice of stitches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets
from numpy.typing import NDArray

from affscore_book.kit.widgets import ComputedWidget
from affscore_book.stitching.moments import Moments, explained
from affscore_book.stitching.toy import PAIRS, toy_features, toy_outputs, toy_stitch

__all__ = ["TwoNetworks"]

Array = NDArray[np.float64]

# The same numbers stand in two_networks.js.
CUTS = ("first", "second")
STITCHES = ("none", "permutation", "g_relu", "orthogonal", "rank 1", "rank 2", "full", "learned")


class TwoNetworks(ComputedWidget):
    """The first half of one small network, a stitch, the second half of another: what it says of points in a plane.

    Parameters
    ----------
    toys
        Networks and points, as :func:`affscore_book.stitching.toy.load_toys` gives them.
    pair
        Which networks, a name of ``affscore_book.stitching.toy.PAIRS``: ``"seed"``, ``"twin"``, ``"turned"``,
        ``"untrained_second"`` or ``"untrained_first"``.
    cut
        Behind which hidden layer, ``"first"`` or ``"second"``.
    stitch
        ``"none"``, ``"permutation"``, ``"g_relu"``, ``"orthogonal"``, ``"rank 1"``, ``"rank 2"``, ``"full"``, all in
        closed form, or ``"learned"``: full, from the file.

    Raises
    ------
    traitlets.TraitError
        If one of them is not.
    """

    toys = traitlets.Dict().tag(sync=True)
    cut = traitlets.Enum(list(CUTS), default_value="second").tag(sync=True)
    pair = traitlets.Enum(list(PAIRS), default_value="seed").tag(sync=True)
    stitch = traitlets.Enum(list(STITCHES), default_value="full").tag(sync=True)

    def __repr__(self) -> str:
        if not self.toys:
            return super().__repr__()
        return f"TwoNetworks({len(self.toys['networks'])} networks, {self.pair!r}, {self.cut!r}, {self.stitch!r})"

    def _networks(self) -> tuple[Any, Any, int]:
        first, second = (self.toys["networks"][name] for name in PAIRS[self.pair])
        return first, second, CUTS.index(self.cut) + 1

    def _features(self) -> tuple[Array, Array]:
        first, second, cut = self._networks()
        points = np.array(self.toys["fit"], dtype=np.float64)[:, :2]
        return toy_features(first, points, cut), toy_features(second, points, cut)

    def matrix(self) -> Array:
        """The stitch, (8, 8)."""
        if self.stitch == "learned":
            return np.array(self.toys["learned"][self.pair][CUTS.index(self.cut)])
        return toy_stitch(self.stitch, *self._features())

    def outputs(self, points: Array) -> tuple[Array, Array, Array]:
        """Of points (n, 2): the outputs (n,) of the stitched network, of the first and of the second network alone."""
        first, second, cut = self._networks()
        stitched = toy_outputs(second, toy_features(first, points, cut) @ self.matrix().T, cut)
        one, other = (toy_outputs(net, toy_features(net, points, cut), cut) for net in (first, second))
        return stitched, one, other

    def accuracies(self) -> list[float]:
        """The shares of test points on their side: stitched, the first alone, the second alone."""
        points = np.array(self.toys["test"], dtype=np.float64)
        right = [(values > 0) == (points[:, 2] > 0) for values in self.outputs(points[:, :2])]
        return [float(share.mean()) for share in right]

    def score(self) -> float:
        """The accuracy of the stitched network, as a share; NaN if there are no networks."""
        return self.accuracies()[0] if self.toys else math.nan

    def penalty(self) -> float:
        """The accuracy that is lost against the mean of the two networks, in points."""
        stitched, one, other = self.accuracies()
        return 50 * (one + other) - 100 * stitched

    def explained(self) -> float:
        """The share of the second network's features, on the points of the fit, that the stitch explains."""
        x, y = (torch.from_numpy(value)[:, :, None, None] for value in self._features())
        return explained(torch.from_numpy(self.matrix()), Moments.of(x, y))
