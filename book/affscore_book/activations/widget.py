"""The widgets of the chapter on activations: any activation for any normal input, and the map of them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import score_curve, summarise_all
from affscore_book.kit.picture import LOOKS, Panel, number, picture, score_panel
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["ActivationExplorer", "ZooMap", "zoo_map"]

# The same numbers stand in activation_explorer.js.
LIMIT, EDGE = 10.0, 12.0


class ActivationExplorer(ComputedWidget):
    """The affinity score of one activation for inputs from N(mean, std^2), in one dimension.

    Parameters
    ----------
    activation
        A name in :data:`affscore_book.activations.catalogue.CATALOGUE`.
    mean
        Mean of the input, from -10 to 10.
    std
        Standard deviation of the input, from 0.05 to 4.

    Raises
    ------
    traitlets.TraitError
        If one of them is not.

    >>> widget = ActivationExplorer(activation="tanh", mean=1.0)
    >>> widget
    ActivationExplorer(activation='tanh', mean=1.0, std=1.0)
    >>> round(widget.score(), 3)
    0.69
    """

    _esm = Path(__file__).with_name("activation_explorer.js")

    activation = traitlets.Enum(list(CATALOGUE), default_value="silu").tag(sync=True)
    mean = traitlets.Float(0.0, min=-LIMIT, max=LIMIT).tag(sync=True)
    std = traitlets.Float(1.0, min=0.05, max=4.0).tag(sync=True)

    def score(self) -> float:
        """The exact score of the present state; NaN where the output cannot be told from a constant."""
        return score_curve(self.activation, self.mean, self.std).item()

    def fallback(self) -> str:
        """The picture for the present state: the activation with the input's density, and the score's curve."""
        row = CATALOGUE[self.activation]
        domain = np.linspace(-EDGE, EDGE, 241)
        values = row(domain).numpy()
        centre = values[np.abs(domain) <= 4]
        pad = 0.12 * (centre.max() - centre.min())
        low, high = centre.min() - 3 * pad, centre.max() + pad

        left = Panel(
            label=f"{row.title} and the density of the input",
            xlim=(-EDGE, EDGE), ylim=(low, high), xlabel="input",
            legend=[("curve", "output"), ("input-curve", "density")],
        )  # fmt: skip
        left.band("input-band", max(-EDGE, self.mean - 2 * self.std), min(EDGE, self.mean + 2 * self.std))
        left.line("curve", domain, np.where((values < low) | (values > high), np.nan, values))
        z = np.linspace(-4, 4, 81)
        x = self.mean + self.std * z
        bell = low + 0.45 * (high - low) * np.exp(-0.5 * z**2)
        left.line("input-curve", x, np.where(np.abs(x) > EDGE, np.nan, bell))

        means = np.linspace(-LIMIT, LIMIT, 81)
        score = self.score()
        right = score_panel(
            means, score_curve(row, means, self.std).numpy(), self.mean, score, gaps=False,
            label="The affinity score against the mean of the input", xlabel="mean of the input",
        )  # fmt: skip

        mean = f"{self.mean:.1f}".replace("-", "\u2212")
        text = f"{row.title}, normal input with mean {mean} and standard deviation {self.std:.2f}"
        return picture(left, right, score=score, text=text)


#: The mark of each family: colour, where its outline begins beside its place, and how it goes on. As in zoo_map.js.
FAMILIES: dict[str, tuple[str, tuple[int, int], str]] = {
    "squashing": ('fill="#0072b2"', (-4, 0), "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"),
    "rectifier": ('fill="#d55e00"', (-4, -4), "h8v8h-8Z"),
    "exponential": ('fill="#7a5c00"', (0, -5), "l5 5l-5 5l-5 -5Z"),
    "smooth rectifier": ('fill="#007a5a"', (0, -5), "l5 9h-10Z"),
    "shrinkage": ('fill="none" stroke="#0072b2" stroke-width="2"', (0, 5), "l5 -9h-10Z"),
    "bump or wave": ('fill="#a0428a"', (-2, -5), "h4v3h3v4h-3v3h-4v-3h-3v-4h3Z"),
    "power": ('fill="none" stroke="#57606a" stroke-width="2.5"', (-4, -4), "l8 8m0 -8l-8 8"),
}


class ZooMap(ComputedWidget):
    """The lowest score of every activation and the width of its non-linear range. Make it with :func:`zoo_map`.

    Parameters
    ----------
    activations
        Each with name, title and family; lowest, its lowest score, and at, the mean where it is; width, the length of
        the means where its score is below the threshold; dead, that of the means that are left out.
    named
        The names of those whose titles stand on the map.
    selected
        The name of the activation that is marked; by default the first.
    """

    _esm = Path(__file__).with_name("zoo_map.js")
    _css = Path(__file__).with_name("zoo_map.css")

    activations = traitlets.List(traitlets.Dict()).tag(sync=True)
    named = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    def score(self) -> float:
        """The lowest score of the activation that is marked; NaN if there is none."""
        chosen = self._chosen()
        return chosen["lowest"] if chosen else math.nan

    def __repr__(self) -> str:
        if not self.activations:
            return super().__repr__()
        return f"ZooMap({len(self.activations)} activations, selected={self.selected!r})"

    def fallback(self) -> str:
        """The map, and the marks of the families."""
        panel = Panel(
            label="Lowest score of each activation against the width of its non-linear range",
            xlim=(-1, 49), ylim=(-0.06, 1.08), height=300,
            xlabel="width of the non-linear range", ylabel="lowest score",
        )  # fmt: skip
        for each in self.activations:
            panel.add(_mark(each["family"], float(panel.x_at(each["width"])), float(panel.y_at(each["lowest"]))))
        for each in self.activations:
            if each["name"] in self.named:
                x, y = float(panel.x_at(each["width"])) + 8, float(panel.y_at(each["lowest"])) - 4
                panel.write("label", number(x), number(y), each["title"])
        chosen = self._chosen()
        if chosen is None:
            nothing = "There is no activation to show."
            return picture(panel, score=math.nan, headline="There is no score.", text=nothing)
        place = f'cx="{panel.x_at(chosen["width"])}" cy="{panel.y_at(chosen["lowest"])}"'
        panel.add(f'<circle class="zoo-ring" fill="none" stroke="#007a5a" stroke-width="3" {place} r="9"/>')
        if chosen["name"] not in self.named:
            side, anchor = (-1, "end") if chosen["width"] > 25 else (1, "start")  # to the inside of the picture
            x, y = float(panel.x_at(chosen["width"])) + 12 * side, float(panel.y_at(chosen["lowest"])) + 16
            panel.write("label", number(x), number(y), chosen["title"], anchor)
        headline = f"{chosen['title']}: lowest score {_low(chosen['lowest'])}"
        return picture(panel, _Key(), score=chosen["lowest"], headline=headline, text=_told(chosen))

    def _chosen(self) -> dict[str, Any] | None:
        named = (each for each in self.activations if each["name"] == self.selected)
        return next(named, self.activations[0] if self.activations else None)


class _Key(Panel):
    """The marks of the families and their names, in two columns, in place of axes."""

    def __init__(self) -> None:
        self._parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 96" width="340" height="96" role="img" '
            f'aria-label="Marks of the families: {", ".join(FAMILIES)}" class="affscore-panel families">',
            f'<rect class="paper" {LOOKS["paper"]} width="340" height="96" rx="4"/>',
        ]
        for i, family in enumerate(FAMILIES):
            x, y = 40 + 150 * (i % 2), 14 + 22 * (i // 2)
            self.add(_mark(family, x, y))
            self.write("label", x + 14, y + 5, family)


def _mark(family: str, x: float, y: float) -> str:
    look, (across, down), rest = FAMILIES[family]
    start = f"M{number(x + across)} {number(y + down)}"
    return f'<path class="zoo family-{list(FAMILIES).index(family)}" {look} d="{start}{rest}"/>'


def _low(score: float) -> str:
    """No score is 0, only too small to be told from it."""
    return "< 0.001" if score < 0.0005 else f"{score:.3f}"


def _told(one: dict[str, Any]) -> str:
    out = f"; dead over {one['dead']:.1f}" if one["dead"] > 0 else ""
    at = f"{one['at']:.1f}".replace("-", "\u2212")
    width = f"non-linear over {one['width']:.1f} of the means from \u221220 to 20"
    return f"{one['family']}; lowest at a mean of {at}; {width}{out}"


def zoo_map(named: Sequence[str] = (), selected: str = "silu", **options: Any) -> ZooMap:
    """The map of the whole catalogue, rounded so that every machine stores the same text.

    ``named`` are the activations whose titles stand on the map, ``options`` those of
    :func:`affscore_book.activations.laws.summarise`.
    """
    activations = [
        {"name": name, "title": CATALOGUE[name].title, "family": CATALOGUE[name].family}
        | {"lowest": round(each.lowest, 3), "at": round(each.lowest_at, 1) + 0.0}
        | {"width": round(each.width, 1), "dead": round(each.dead, 1)}
        for name, each in summarise_all(**options).items()
    ]
    return ZooMap(activations=activations, named=list(named), selected=selected)
