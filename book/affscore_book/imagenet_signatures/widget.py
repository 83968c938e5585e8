"""The widgets of the chapter on ImageNet signatures: a walk through a network's blocks, and what the pool does."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import traitlets

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.calls import places
from affscore_book.kit.architectures import facts
from affscore_book.kit.widgets import ComputedWidget, chosen

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

    def blocks(self) -> int:
        """How many blocks the scores hold."""
        return max(0, (len(self.trained) - 1) // self.size)

    def calls(self) -> list[float]:
        """The scores of the calls of the block that is shown."""
        at = min(self.block, self.blocks())
        scores = self.trained if self.weights == "trained" else self.start
        return scores[:1] if at == 0 else scores[1 + (at - 1) * self.size : 1 + at * self.size]

    def score(self) -> float:
        """The score of the last call of the block; NaN if there is no network."""
        return self.calls()[-1] if self.trained else math.nan

    def __repr__(self) -> str:
        if not self.trained:
            return super().__repr__()
        return f"BlockWalk({self.blocks()} blocks, block={self.block}, weights={self.weights!r})"


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

    def score(self) -> float:
        """The median score of the network that is shown; NaN if there is none, or all its calls are dead."""
        network = chosen(self.models, self.selected)
        if network is None:
            return math.nan
        scores = (network["trailing"] if self.pool == "trailing" else None) or network["spatial"]
        alive = [value for value in scores if value is not None]
        return float(np.median(alive)) if alive else math.nan

    def __repr__(self) -> str:
        if not self.models:
            return super().__repr__()
        return f"PoolSwitch({len(self.models)} networks, pool={self.pool!r}, selected={self.selected!r})"


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
