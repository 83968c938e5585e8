"""The widget of the chapter on uses: the calls of a network made affine one by one, in several orders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import traitlets

from affscore_book.kit.picture import Panel, picture
from affscore_book.kit.widgets import ComputedWidget
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

    _esm = Path(__file__).with_name("calls_removed.js")

    calls = traitlets.List(traitlets.Unicode()).tag(sync=True)
    count = traitlets.Int(0, min=0, max=99).tag(sync=True)
    order = traitlets.Unicode("").tag(sync=True)
    paths = traitlets.List(traitlets.Dict()).tag(sync=True)

    def _path(self) -> Mapping[str, Any] | None:
        return next((path for path in self.paths if path["order"] == self.order), self.paths[0] if self.paths else None)

    def score(self) -> float:
        """Accuracy of the present state; NaN if there is no network."""
        path = self._path()
        return math.nan if path is None else path["accuracy"][min(self.count, len(path["accuracy"]) - 1)]

    def __repr__(self) -> str:
        if not self.paths:
            return super().__repr__()
        return f"CallsRemoved({len(self.calls)} calls, order={self.order!r}, count={self.count})"

    def fallback(self) -> str:
        """The accuracy in the chosen order, all the way, and which calls are gone."""
        path, calls = self._path(), len(self.calls)
        left = Panel(
            label="Accuracy against the number of calls made affine", xlim=(0, max(1, calls)), ylim=(0, 1),
            xlabel="calls made affine", ylabel="accuracy",
        )  # fmt: skip
        right = Panel(
            label="Which calls are left, and when each goes", xlim=(0, calls + 1), ylim=(0, calls + 1),
            xlabel="call (blue: bent, orange: affine)", ylabel="place in the order",
        )  # fmt: skip
        if path is None:
            return picture(left, right, score=math.nan, text="There is no network to show.", headline="No network")
        count = min(self.count, calls)
        left.line("score-curve", range(calls + 1), path["accuracy"])
        left.dot("score-dot", count, self.score(), 7)
        out = path["gone"][:count]
        for at in range(calls):
            right.dot("image-dot" if at in out else "input-dot", at + 1, path["gone"].index(at) + 1, 6)
        first = f"nothing is made affine yet; first to go: {path['title']}"
        last = f"last made affine: {self.calls[out[-1]]}" if count else first
        return picture(left, right, score=self.score(), text=last, headline=f"Accuracy {self.score():.3f}")


def calls_removed(folder: str | Path) -> CallsRemoved:
    """The widget for the network that ``make.py path`` stored in ``folder``, ``book/data/uses``."""
    stored = load_path(folder)
    paths = [path | {"title": TITLES[path["order"]]} for path in stored["paths"]]
    return CallsRemoved(calls=stored["calls"], paths=paths, order=paths[0]["order"])
