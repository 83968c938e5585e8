"""The widget of the chapter on ImageNet signatures: what the pool does to the scores of untrained networks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from affscore.signature import Signature
from affscore.suite.architectures import facts
from affscore_book.kit.picture import LOOKS, Panel, number, picture
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["PoolSwitch", "pool_switch"]

POOLS = ("spatial", "trailing")


class PoolSwitch(ComputedWidget):
    """The median score of many untrained networks by either pool, and the signature of one of them.

    Make it with :func:`pool_switch`. The networks were measured before; nothing is computed from images in the page.

    Parameters
    ----------
    models
        The networks: name; family; shape, of one picture in the first call; keeps, how many numbers each pool makes of
        it; spatial, the scores by that pool (None for a dead call); trailing, the same, or None where both are equal.
    pool
        ``"spatial"`` or ``"trailing"``.
    selected
        The name of the network whose signature is shown; by default the first.
    """

    models = traitlets.List(traitlets.Dict()).tag(sync=True)
    pool = traitlets.Enum(POOLS, default_value="spatial").tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    _esm = Path(__file__).with_name("pool_switch.js")

    def score(self) -> float:
        """The median score of the network that is shown; NaN if there is none, or all its calls are dead."""
        return _median(_scores(self._chosen(), self.pool))

    def __repr__(self) -> str:
        if not self.models:
            return super().__repr__()
        return f"PoolSwitch({len(self.models)} networks, pool={self.pool!r}, selected={self.selected!r})"

    def fallback(self) -> str:
        """Both panels, with the names of the families that have three networks or more."""
        medians = {pool: [_median(_scores(each, pool)) for each in self.models] for pool in POOLS}
        every = [value for pool in POOLS for each in self.models for value in _scores(each, pool)]
        left = Panel(
            label="Median score of each network", xlim=(0, len(self.models) + 1), height=300,
            ylim=(_floor([*medians["spatial"], *medians["trailing"]], 2), 1), xlabel="network, in the paper's order",
            ylabel="median score",
        )  # fmt: skip
        for family, at in _families(self.models):
            x, y = number(float(left.x_at(at)) + 4), left.bottom - 6
            turned = f'transform="rotate(-90 {x} {y})"'
            left.add(f'<text class="tick" {LOOKS["tick"]} x="{x}" y="{y}" {turned}>{family}</text>')
        shown = self._chosen()
        for place, (start, now) in enumerate(zip(medians["spatial"], medians[self.pool], strict=True), start=1):
            if start != now:
                left.line("image-line", [place, place], [start, now])
            left.dot("input-dot", place, now, 4)
        if shown is not None:
            left.dot("score-dot", self.models.index(shown) + 1, self.score(), 6)
        values = _scores(shown, self.pool)
        right = Panel(
            label="The signature of the chosen network", xlim=(0, len(values) + 1), ylim=(_floor(every, 0), 1),
            height=300, xlabel="activation call", ylabel="affinity score",
        )  # fmt: skip
        right.line("score-curve", range(1, len(values) + 1), values)
        return picture(left, right, score=self.score(), text=self._text())

    def _chosen(self) -> dict[str, Any] | None:
        named = [network for network in self.models if network["name"] == self.selected]
        return next(iter([*named, *self.models]), None)

    def _text(self) -> str:
        network = self._chosen()
        if network is None:
            return "There is no network to show."
        return (
            f"{network['name']}, before training: the median of {len(_scores(network, self.pool))} calls. "
            f"In its first call the {self.pool} pool makes {network['keeps'][self.pool]} numbers of {network['shape']}."
        )


def pool_switch(spatial: Mapping[str, Signature], trailing: Mapping[str, Signature]) -> PoolSwitch:
    """The widget for signatures of the same untrained networks by both pools, ViT-B/32 chosen where it is there."""
    models = []
    for name, signature in spatial.items():
        first = signature.calls[0]
        kept = dict(zip(POOLS, (first.shape[first.channel_axis - 1], first.shape[0]), strict=True))
        own, other = _rounded(signature), _rounded(trailing[name])
        models.append(
            {"name": name, "family": facts(name).family, "shape": " x ".join(map(str, first.shape)), "keeps": kept}
            | {"spatial": own, "trailing": None if other == own else other}
        )
    return PoolSwitch(models=models, selected="vit_b_32" if "vit_b_32" in spatial else "")


def _rounded(signature: Signature) -> list[float | None]:
    """Scores as JSON holds them, rounded so that every machine stores the same text."""
    return [None if math.isnan(value) else round(value, 4) for value in signature.mean.tolist()]


# What follows stands in pool_switch.js as well.


def _scores(network: Mapping[str, Any] | None, pool: str) -> list[float]:
    """A network's scores by a pool, NaN for a dead call."""
    if network is None:
        return []
    found = (network["trailing"] if pool == "trailing" else None) or network["spatial"]
    return [math.nan if value is None else value for value in found]


def _median(values: Sequence[float]) -> float:
    alive = [value for value in values if not math.isnan(value)]
    return float(np.median(alive)) if alive else math.nan


def _floor(values: Sequence[float], room: int) -> float:
    """The lower end of an axis that shows all these numbers, with ``room`` tenths below them for names."""
    lowest = min([0.9, *(value for value in values if not math.isnan(value))])
    return (math.floor(lowest * 10 + 1e-9) - room) / 10


def _families(models: Sequence[Mapping[str, Any]]) -> list[tuple[str, float]]:
    """The families with three networks or more, and where each has its middle on the axis of networks."""
    places: dict[str, list[int]] = {}
    for place, network in enumerate(models, start=1):
        places.setdefault(network["family"], []).append(place)
    return [(family, (at[0] + at[-1]) / 2) for family, at in places.items() if len(at) > 2]
