"""The widgets of the chapter on activations: any activation for any normal input, and the map of them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import traitlets

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import score_curve, summarise_all
from affscore_book.kit.widgets import ComputedWidget, chosen

__all__ = ["ActivationExplorer", "ZooMap", "zoo_map"]

# The same numbers stand in activation_explorer.js.
LIMIT = 10.0


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

    >>> widget = ActivationExplorer(activation="tanh", mean=1.0)
    >>> widget
    ActivationExplorer(activation='tanh', mean=1.0, std=1.0)
    >>> round(widget.score(), 3)
    0.69
    """

    activation = traitlets.Enum(list(CATALOGUE), default_value="silu").tag(sync=True)
    mean = traitlets.Float(0.0, min=-LIMIT, max=LIMIT).tag(sync=True)
    std = traitlets.Float(1.0, min=0.05, max=4.0).tag(sync=True)

    def score(self) -> float:
        """The exact score of the present state; NaN where the output cannot be told from a constant."""
        return score_curve(self.activation, self.mean, self.std).item()


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

    _told = ("activations", "selected")

    activations = traitlets.List(traitlets.Dict()).tag(sync=True)
    named = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    def score(self) -> float:
        """The lowest score of the activation that is marked; NaN if there is none."""
        activation = chosen(self.activations, self.selected)
        return activation["lowest"] if activation else math.nan


def zoo_map(named: Sequence[str] = (), **options: Any) -> ZooMap:
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
    return ZooMap(activations=activations, named=list(named), selected="silu")
