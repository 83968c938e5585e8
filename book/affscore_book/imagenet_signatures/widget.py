"""The widgets of the chapter on ImageNet signatures: a walk through a network's blocks, and what the pool does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.architectures import facts
from affscore_book.kit.picture import LOOKS, Panel, number, picture, readout
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["BlockWalk", "PoolSwitch", "block_walk", "pool_switch"]

POOLS = ("spatial", "trailing")


class BlockWalk(ComputedWidget):
    """The scores of a residual network block by block: the calls inside, and the one after the addition.

    Make it with :func:`block_walk`. The network was measured before; nothing is computed from images in the page.

    Parameters
    ----------
    trained, start
        The scores of the calls in order, with trained weights and before training: one call in front of the blocks,
        then ``size`` calls a block, the last of them after the addition.
    size
        Calls in a block.
    weights
        ``"trained"`` or ``"start"``: which are shown.
    block
        Number of the block that is shown, from 1; 0 is the call in front of them.
    """

    block = traitlets.Int(0, min=0, max=200).tag(sync=True)
    size = traitlets.Int(3, min=1, max=9).tag(sync=True)
    start = traitlets.List(traitlets.Float()).tag(sync=True)
    trained = traitlets.List(traitlets.Float()).tag(sync=True)
    weights = traitlets.Enum(("trained", "start"), default_value="trained").tag(sync=True)

    _esm = Path(__file__).with_name("block_walk.js")
    _css = Path(__file__).with_name("block_walk.css")

    def blocks(self) -> int:
        """How many blocks the scores hold."""
        return max(0, (len(self.trained) - 1) // self.size)

    def calls(self, block: int | None = None) -> list[float]:
        """The scores of the calls of a block, by default of the one that is shown."""
        at = min(self.block if block is None else block, self.blocks())
        scores = self.trained if self.weights == "trained" else self.start
        return scores[:1] if at == 0 else scores[1 + (at - 1) * self.size : 1 + at * self.size]

    def score(self) -> float:
        """The score of the last call of the block; NaN if there is no network."""
        return self.calls()[-1] if self.trained else math.nan

    def highest(self) -> int:
        """How many blocks, from the first to the one that is shown, score highest after the addition."""
        passed = [self.calls(block) for block in range(1, min(self.block, self.blocks()) + 1)]
        return sum(max(inside) < last for *inside, last in passed)

    def __repr__(self) -> str:
        if not self.trained:
            return super().__repr__()
        return f"BlockWalk({self.blocks()} blocks, block={self.block}, weights={self.weights!r})"

    def fallback(self) -> str:
        """All calls of the network, and those of the block that is shown."""
        left = Panel(
            label="The scores of all calls", xlim=(0, len(self.trained) + 1), ylim=(0.3, 1), height=300,
            xlabel="activation call", legend=[("image-line", "inside a block"), ("input-curve", "after the addition")],
        )  # fmt: skip
        for block in range(self.blocks() + 1 if self.trained else 0):
            place, scores = (1 if block == 0 else 2 + (block - 1) * self.size), self.calls(block)
            for i, score in enumerate(scores):
                last = block > 0 and i == len(scores) - 1
                left.dot("input-dot" if last else "image-dot", place + i, score, 4 if last else 3)
        right = Panel(
            label="The calls of this block", xlim=(0, self.size + 1), ylim=(0.3, 1), height=300,
            xlabel="call in the block", ylabel="score",
        )  # fmt: skip
        shown = self.calls()
        right.line("curve", range(1, len(shown) + 1), shown)
        for i, score in enumerate(shown, start=1):
            right.dot("score-dot" if i == len(shown) else "image-dot", i, score, 7 if i == len(shown) else 5)
        return picture(left, right, score=self.score(), text=self._text())

    def _text(self) -> str:
        at = min(self.block, self.blocks())
        if not self.trained:
            return "There is no network to show."
        if at == 0:
            return "The first call, in front of all blocks. Move the slider into the network."
        *inside, last = (readout(score, 2) for score in self.calls())
        return (
            f"Block {at}: inside {' and '.join(inside)}, after the addition {last}. "
            f"Up to here the highest of its block in {self.highest()} of {at}."
        )


def block_walk(trained: Signature, start: Signature, block: int = 0) -> BlockWalk:
    """The walk through a network of blocks of three calls, such as ResNet-152; both signatures have the same calls.

    Raises
    ------
    ValueError
        If the calls are not one in front and three a block, or those of the two signatures differ.
    """
    names = [call.name for call in trained.calls]
    last = places(trained)["last in its block"].nonzero()[0]
    if names != [call.name for call in start.calls] or last.tolist() != list(range(3, len(names), 3)):
        raise ValueError("trained and start should have the same calls: one in front, then three in each block.")
    scores = {"trained": _rounded(trained), "start": _rounded(start)}
    return BlockWalk(**scores, block=block)


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
