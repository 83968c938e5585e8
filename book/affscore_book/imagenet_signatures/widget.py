"""The map of architectures and the history plot: signatures of many networks, to point at and to filter.

Both show networks that were measured before; nothing is computed from images in the page. The widgets of the chapter
on ImageNet signatures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from affscore.signature import Signature
from affscore.suite.architectures import GROUPS, KINDS, facts, weights_kind
from affscore.suite.compare import history
from affscore.suite.distances import distances, mds_map
from affscore_book.kit.picture import Panel, number, picture
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ArchitectureMap", "ScoreHistory", "architecture_map", "score_history"]

_HERE = Path(__file__).parent
#: Colours of the groups where no style sheet is loaded; choices.css has them for both themes.
_COLOURS = ("#0072b2", "#d55e00", "#7a5c00", "#a0428a", "#007a5a", "#57606a")
_UNTRAINED = {"random": "random weights", "unknown": "weights not recorded"}
_SHAPES: dict[int, Sequence[tuple[float, float]]] = {
    1: ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    2: ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    3: ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    4: ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    5: (
        (-1, -0.4), (-0.4, -0.4), (-0.4, -1), (0.4, -1), (0.4, -0.4), (1, -0.4), (1, 0.4), (0.4, 0.4), (0.4, 1),
        (-0.4, 1), (-0.4, 0.4), (-1, 0.4),
    ),
}  # fmt: skip


class _Networks(ComputedWidget):
    """What both widgets share. A network is a dictionary: name, family, group, year, accuracy (None if unknown),
    weights (as ``weights_kind`` says), x and y (its place on the map) and scores (None for a dead call).
    """

    models = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    weights = traitlets.Enum(["all", *KINDS], default_value="all").tag(sync=True)
    family = traitlets.Unicode("all").tag(sync=True)

    def _fits(self, network: dict[str, Any]) -> bool:
        return self.family in ("all", network["family"]) and self.weights in ("all", network["weights"])

    def chosen(self) -> dict[str, Any] | None:
        """The network that is shown: the selected one if it passes the filters, else the first that does, else any."""
        passing = [network for network in self.models if self._fits(network)]
        selected = [network for network in self.models if network["name"] == self.selected]
        return next(iter([*(n for n in selected if n in passing), *passing, *selected, *self.models]), None)

    def score(self) -> float:
        """The median score of the network that is shown; NaN if there is none, or all its calls are dead."""
        return _summary(self.chosen())[0]

    def __repr__(self) -> str:
        if not self.models:
            return super().__repr__()
        kinds = [network["weights"] for network in self.models]
        listed = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
        return (
            f"{type(self).__name__}({len(kinds)} networks, weights: {listed}; family={self.family!r}, "
            f"selected={self.selected!r}, weights={self.weights!r})"
        )

    def _text(self) -> str:
        network = self.chosen()
        if network is None:
            return "There is no network to show."
        _, low, high, calls = _summary(network)
        dead = len(network["scores"]) - calls
        parts = [
            f"{network['name']}: median of {calls} calls, from {_signed(low)} to {_signed(high)}"
            + (f", {dead} dead" if dead else ""),
            ", ".join(str(p) for p in (network["family"], network["year"]) if p not in (None, "other")),
            _UNTRAINED.get(network["weights"], "trained weights"),
        ]
        if network["accuracy"] is not None:
            of = "" if network["weights"] == "pretrained" else " of the published weights"
            parts.append(f"ImageNet top-1 accuracy{of} {network['accuracy']:.1f} %")
        first = "" if self._fits(network) else "No network passes both filters. "
        return first + "; ".join(part for part in parts if part)

    def _mark(self, panel: Panel, network: dict[str, Any], x: float, y: float, radius: float) -> None:
        group, dim, faint = self._group(network)
        hollow, fill = ("", _COLOURS[group]) if network["weights"] == "pretrained" else (" hollow", "#ffffff")
        panel.add(
            f'<path class="mark g{group}{hollow}{dim}" fill="{fill}" stroke="{_COLOURS[group]}" stroke-width="1.8"'
            f'{faint} d="{_outline(group, float(panel.x_at(x)), float(panel.y_at(y)), radius)}">'
            f"<title>{escape(network['name'])}</title></path>"
        )

    def _group(self, network: dict[str, Any]) -> tuple[int, str, str]:
        """Number of a network's group; class and attribute of its mark if it does not pass the filters."""
        return GROUPS.index(network["group"]), *(("", "") if self._fits(network) else (" dim", ' opacity="0.15"'))

    def _ring(self, panel: Panel, x: float, y: float, radius: float) -> None:
        outline = _outline(0, float(panel.x_at(x)), float(panel.y_at(y)), radius)
        panel.add(f'<path class="ring" fill="none" stroke="#1f2328" stroke-width="2" d="{outline}"/>')

    def _picture(self, *items: Panel) -> str:
        """The panels, and in words which shape is which group, and what hollow marks mean."""
        shapes = ("circle", "square", "diamond", "triangle", "triangle pointing down", "cross")
        seen = {network[key] for network in self.models for key in ("group", "weights")}
        parts = [f"{shape}: {group}" for shape, group in zip(shapes, GROUPS, strict=True) if group in seen]
        parts += [f"hollow: {words}" for kind, words in _UNTRAINED.items() if kind in seen]
        key = f'<p class="affscore-key"><span>{escape("; ".join(parts))}</span></p>' if parts else ""
        return picture(*items, score=self.score(), text=self._text()).removesuffix("</div>") + key + "</div>"


class ArchitectureMap(_Networks):
    """Networks on a map, near each other where their signatures are alike; the chosen one's signature beside it.

    Make it with :func:`architecture_map`. Point at a mark or walk with the arrow keys; filter by family and by
    trained or random weights.

    Parameters
    ----------
    models
        The networks, see :class:`_Networks`.
    selected
        The name of the chosen one.
    weights, family
        The filters: ``"all"``, or one of the values.
    """

    _esm = _HERE / "architecture_map.js"
    _css = _HERE / "choices.css"

    def fallback(self) -> str:
        """The map and the signature of the chosen network."""
        xlim, ylim = _square(self.models)
        left = Panel(
            label="Map of network architectures", xlim=xlim, ylim=ylim, height=356,
            xlabel="alike signatures are near each other",
        )  # fmt: skip
        for network in self.models:
            self._mark(left, network, network["x"], network["y"], 6)
        network = self.chosen() or {"scores": []}
        right = Panel(
            label="The signature of the chosen network", xlim=(0, len(network["scores"]) + 1),
            ylim=(_floor(self.models), 1), xlabel="activation call", ylabel="affinity score", height=356,
        )  # fmt: skip
        if network["scores"]:
            self._ring(left, network["x"], network["y"], 12)
            scores = [math.nan if value is None else value for value in network["scores"]]
            right.line("score-curve", range(1, len(scores) + 1), scores)
            for call, value in enumerate(scores if len(scores) <= 60 else [], start=1):
                right.dot("score-dot", call, value, 4)
        return self._picture(left, right)


class ScoreHistory(_Networks):
    """Smallest, median and largest score of networks by year, and their accuracy.

    Make it with :func:`score_history`. It works as :class:`ArchitectureMap` and has the same parameters; each network
    has a year, and x and y are not used.
    """

    _esm = _HERE / "score_history.js"
    _css = _HERE / "choices.css"

    def fallback(self) -> str:
        """Both panels."""
        years = [network["year"] for network in self.models]
        xlim = (min(years) - 0.6, max(years) + 0.6) if years else (2011.0, 2023.0)
        left = Panel(
            label="Smallest, median and largest score by year", xlim=xlim, ylim=(_floor(self.models), 1), height=300,
            xlabel="year", ylabel="affinity score",
        )  # fmt: skip
        known = [network["accuracy"] for network in self.models if network["accuracy"] is not None]
        ylim = (math.floor(min(known) / 10) * 10, math.ceil(max(known) / 10) * 10) if known else (0, 100)
        right = Panel(
            label="ImageNet accuracy by year", xlim=xlim, ylim=ylim, xlabel="year", ylabel="accuracy (%)", height=300
        )
        chosen = self.chosen()
        for network, at in zip(self.models, _times(years), strict=True):
            median, low, high, calls = _summary(network)
            if calls:
                group, dim, faint = self._group(network)
                classes = f"bar g{group}{dim}{' now' if network is chosen else ''}"
                left.add(
                    f'<path class="{classes}" fill="none" stroke="{_COLOURS[group]}" stroke-width="2.5"{faint} '
                    f'd="M{left.x_at(at)} {left.y_at(low)}L{left.x_at(at)} {left.y_at(high)}"/>'
                )
                self._mark(left, network, at, median, 3.5)
            if network["accuracy"] is not None:
                self._mark(right, network, at, network["accuracy"], 3.5)
            if network is chosen:
                for panel, value in ((left, median), (right, network["accuracy"])):
                    if value is not None and not math.isnan(value):
                        self._ring(panel, at, value, 9)
        return self._picture(left, right)


def architecture_map(signatures: Mapping[str, Signature]) -> ArchitectureMap:
    """The map widget for signatures, placed by their :func:`affscore.suite.distances.distances`."""
    places = {row["model"]: (row["x"], row["y"]) for row in mds_map(distances(signatures)).rows()}
    return ArchitectureMap(models=[_network(name, each, *places[name]) for name, each in signatures.items()])


def score_history(signatures: Mapping[str, Signature]) -> ScoreHistory:
    """The history widget for signatures. Networks whose year is not known are left out."""
    names = [row["model"] for row in history(signatures).rows() if row["year"] is not None]
    return ScoreHistory(models=[_network(name, signatures[name]) for name in names])


def _network(name: str, signature: Signature, x: float = 0.0, y: float = 0.0) -> dict[str, Any]:
    """A network as the widgets take it: what JSON can hold, rounded so that every machine stores the same text."""
    about = facts(signature)
    known = {key: getattr(about, key) for key in ("family", "group", "year", "accuracy")}
    return (
        {"name": name}
        | known
        | {
            "weights": weights_kind(signature),
            "x": round(x, 3) + 0.0,
            "y": round(y, 3) + 0.0,
            "scores": [None if math.isnan(value) else round(value, 4) for value in signature.mean.tolist()],
        }
    )


# What follows stands in choices.js as well.


def _summary(network: dict[str, Any] | None) -> tuple[float, float, float, int]:
    """Median, smallest and largest score of the live calls, and their number."""
    alive = [value for value in (network or {"scores": []})["scores"] if value is not None]
    if not alive:
        return math.nan, math.nan, math.nan, 0
    return float(np.median(alive)), min(alive), max(alive), len(alive)


def _signed(value: float) -> str:
    if math.isnan(value):
        return "undefined"
    text = f"{value:.2f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "\u2212")


def _square(models: Sequence[dict[str, Any]]) -> tuple[tuple[float, float], tuple[float, float]]:
    if not models:
        return (-1.0, 1.0), (-1.0, 1.0)
    (x0, x1), (y0, y1) = ((min(m[key] for m in models), max(m[key] for m in models)) for key in ("x", "y"))
    half = 0.58 * max(x1 - x0, y1 - y0, 1e-6)
    return ((x0 + x1) / 2 - half, (x0 + x1) / 2 + half), ((y0 + y1) / 2 - half, (y0 + y1) / 2 + half)


def _floor(models: Sequence[dict[str, Any]]) -> float:
    lows = [low for low in (_summary(network)[1] for network in models) if not math.isnan(low)]
    return min(0.9, math.floor(min([1.0, *lows]) * 10 + 1e-9) / 10)


def _times(years: Sequence[int]) -> list[float]:
    """Places on the axis of years: networks of one year side by side within it."""
    return [year + (years[:i].count(year) + 0.5) / years.count(year) - 0.5 for i, year in enumerate(years)]


def _outline(group: int, x: float, y: float, radius: float) -> str:
    def at(dx: float, dy: float) -> str:
        return f"{number(x + dx * radius)} {number(y + dy * radius)}"

    if group == 0:
        arc = f"A{radius:g} {radius:g} 0 1 1 "
        return f"M{at(-1, 0)}{arc}{at(1, 0)}{arc}{at(-1, 0)}Z"
    return f"M{'L'.join(at(*point) for point in _SHAPES[group])}Z"
