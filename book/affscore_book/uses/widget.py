"""The widget of the chapter on uses: the calls of a network made affine one by one, in several orders."""

from __future__ import annotations

import math
from pathlib import Path

import traitlets

from affscore_book.kit.widgets import ComputedWidget, chosen
from affscore_book.uses.results import load_path

__all__ = ["CallsRemoved", "calls_removed"]

#: How the page names an order.
TITLES = {
    "score": "highest score", "latest first": "latest call", "paired R²": "highest paired R²",
    "sign entropy": "lowest sign entropy", "random 0": "a random order", "true costs": "lowest true cost",
}  # fmt: skip


class CallsRemoved(ComputedWidget):
    """Accuracy of a network with some of its calls made affine. Make it with :func:`calls_removed`.

    The curve is drawn as far as the slider has gone.

    Parameters
    ----------
    calls
        Their names in the order of execution.
    paths
        By order: ``order``, its ``title``, ``gone``, the places of the calls in which they go, and ``accuracy`` with
        0 to all calls made affine.
    order
        The order that is shown; by default the first.
    count
        How many calls are affine, from 0 to 99; all where there are fewer.
    """

    _told = ("calls", "order", "count")

    calls = traitlets.List(traitlets.Unicode()).tag(sync=True)
    count = traitlets.Int(0, min=0, max=99).tag(sync=True)
    order = traitlets.Unicode("").tag(sync=True)
    paths = traitlets.List(traitlets.Dict()).tag(sync=True)

    def score(self) -> float:
        """Accuracy of the present state; NaN if there is no network."""
        path = chosen(self.paths, self.order, "order")
        return math.nan if path is None else path["accuracy"][min(self.count, len(path["accuracy"]) - 1)]


def calls_removed(folder: str | Path) -> CallsRemoved:
    """The widget for the network that ``make.py path`` stored in ``folder``, ``book/data/uses``."""
    stored = load_path(folder)
    paths = [path | {"title": TITLES[path["order"]]} for path in stored["paths"]]
    return CallsRemoved(calls=stored["calls"], paths=paths, order=paths[0]["order"])
