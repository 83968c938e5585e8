"""The widget of the chapter on stitching: two small networks and a choice of stitches."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import traitlets
from numpy.typing import NDArray

from affscore_book.kit.picture import LOOKS, Panel, number, picture
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.stitching.moments import Moments, explained
from affscore_book.stitching.toy import PAIRS, WIDTH, toy_features, toy_outputs, toy_stitch

__all__ = ["TwoNetworks"]

Array = NDArray[np.float64]

# The same numbers stand in two_networks.js.
FRAME, CELLS = ((-2.2, 2.2), (-1.4, 1.4)), (56, 36)
CUTS = ("first", "second")
STITCHES = ("none", "permutation", "g_relu", "orthogonal", "rank 1", "rank 2", "full", "learned")
# As in two_networks.css.
PARTS = {
    "region": 'fill="#0072b2" opacity="0.18"',
    "curve": LOOKS["curve"],
    "moon-dots": 'fill="none" stroke="#0072b2" stroke-width="5" stroke-linecap="round"',
    "moon-crosses": 'fill="none" stroke="#d55e00" stroke-width="1.5"',
    "positive": 'fill="#0072b2" stroke="#0072b2" stroke-width="1"',
    "negative": 'fill="none" stroke="#d55e00" stroke-width="2"',
    "region-key": 'fill="none" stroke="#0072b2" stroke-width="12" opacity="0.3"',
}


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

    _esm = Path(__file__).with_name("two_networks.js")
    _css = Path(__file__).with_name("two_networks.css")

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

    def fallback(self) -> str:
        """The picture for the present state."""
        left = Panel(
            label="The points, and the two classes of the stitched network", xlim=FRAME[0], ylim=FRAME[1],
            xlabel="input",
        )  # fmt: skip
        right = Panel(
            label="The matrix of the stitch", xlim=(0.4, WIDTH + 0.6), ylim=(0.4, WIDTH + 0.6),
            xlabel="channel of the first (vertical: of the second)",
        )  # fmt: skip
        if not self.toys:
            return picture(left, right, score=math.nan, text="", headline="There are no networks to show.")
        xs, ys = (np.linspace(*ends, count + 1) for ends, count in zip(FRAME, CELLS, strict=True))
        stitched, _, _ = self.outputs(_grid((xs[1:] + xs[:-1]) / 2, (ys[1:] + ys[:-1]) / 2))
        _, _, second = self.outputs(_grid(xs, ys))
        _draw(left, "region", _region(left, stitched.reshape(CELLS[::-1]) > 0, xs, ys))
        _draw(left, "curve", _border(left, second.reshape(len(ys), len(xs)), xs, ys))
        marks = ["", ""]
        for px, py, label in self.toys["test"]:
            x, y = float(left.x_at(px)), float(left.y_at(py))
            cross = f"M{number(x - 2)} {number(y - 2)}l4 4M{number(x - 2)} {number(y + 2)}l4 -4"
            marks[label] += f"M{number(x)} {number(y)}h0" if label else cross
        _draw(left, "moon-dots", marks[1])
        _draw(left, "moon-crosses", marks[0])
        for name, at, text in (("region-key", 6, "stitched says 1"), ("curve", 157, "edge, second alone")):
            _draw(left, name, f"M{at} 12L{at + 24} 12")
            left.write("label", at + 30, 16, text)
        for name, d in zip(("positive", "negative"), _squares(right, self.matrix()), strict=True):
            _draw(right, name, d)
        for name, at in (("positive", 12), ("negative", 152)):
            _draw(right, name, f"M{at} 7h10v10h-10Z")
            right.write("label", at + 16, 16, f"{name} entry")
        (score, *alone), share = self.accuracies(), self.explained()
        most = "less than their mean" if share < 0 else f"{100 * share:.0f} %"
        text = f"alone: first {alone[0]:.3f}, second {alone[1]:.3f}; explained of the second's features: {most}"
        penalty = f"{self.penalty():.2f}".replace("-", "\u2212")
        headline = f"Stitched accuracy {score:.3f}, penalty {penalty} points"
        return picture(left, right, score=score, text=text, headline=headline)


def _grid(xs: Array, ys: Array) -> Array:
    return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def _draw(panel: Panel, name: str, d: str) -> None:
    panel.add(f'<path class="{name}" {PARTS[name]} d="{d}"/>')


def _region(panel: Panel, inside: NDArray[np.bool_], xs: Array, ys: Array) -> str:
    """The outline of the cells (rows, columns) that are inside, one box a run."""
    text = ""
    for row, bottom, top in zip(inside, ys[:-1], ys[1:], strict=True):
        turns = np.flatnonzero(np.diff(row, prepend=False, append=False))
        for start, stop in turns.reshape(-1, 2):
            left, right = panel.x_at(xs[start]), panel.x_at(xs[stop])
            text += f"M{left} {panel.y_at(bottom)}H{right}V{panel.y_at(top)}H{left}Z"
    return text


def _border(panel: Panel, values: Array, xs: Array, ys: Array) -> str:
    """The line where values (rows, columns) at the corners change their sign, as pieces within cells."""
    text = ""
    for i, j in np.ndindex(len(ys) - 1, len(xs) - 1):
        around, pen = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j)], "M"
        for here, there in itertools.pairwise(around):
            if (values[here] > 0) != (values[there] > 0):
                share = values[here] / (values[here] - values[there])
                x = xs[here[1]] + share * (xs[there[1]] - xs[here[1]])
                y = ys[here[0]] + share * (ys[there[0]] - ys[here[0]])
                text += f"{pen}{panel.x_at(float(x))} {panel.y_at(float(y))}"
                pen = "L" if pen == "M" else "M"
    return text


def _squares(panel: Panel, matrix: Array) -> tuple[str, str]:
    """Squares whose area grows with the entries, positive and negative ones: entry (i, j) at (j + 1, i + 1)."""
    texts, largest = {True: "", False: ""}, np.abs(matrix).max()
    for (i, j), value in np.ndenumerate(matrix):
        half = 10 * math.sqrt(abs(value) / largest)
        if half > 0.5:
            x, y, side = float(panel.x_at(j + 1)) - half, float(panel.y_at(i + 1)) - half, number(2 * half)
            texts[bool(value > 0)] += f"M{number(x)} {number(y)}h{side}v{side}h-{side}Z"
    return texts[True], texts[False]
