"""Why the scores of EfficientNet-Lite zigzag: where the inputs of the two ReLU6 calls of a block lie.

A block widens its channels (first call), filters each channel on its own (second call) and narrows them again. Channel
c of the second call is the filtered channel c of the first. So one can ask: what would the second call score if each of
its channels were moved until ReLU6 cuts as large a share of it to 0 as in the first call?
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore.score import affinity_score
from affscore_book.kit.statistics import student_interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table

__all__ = [
    "Block", "Zigzag", "intervention_table", "load_zigzag", "measure_blocks", "pairs_of", "watched", "zigzag_table",
]  # fmt: skip

# Values of each channel and picture from which the shift of a channel is read off.
SAMPLE = 16


@dataclass(frozen=True)
class Block:
    """The two calls of one block.

    Attributes
    ----------
    number, skip
        Number of the block; whether it adds its input to its output.
    cut
        Share of the inputs that ReLU6 sets to 0, in the first and in the second call.
    score
        Their affinity scores.
    moved
        Score of the second call with each channel moved so that the share of it that is cut is the first call's.
    shuffled
        The same for a control: each channel moved to the share of *another channel of the second call*, so that
        the call as a whole keeps its shares.
    """

    number: int
    skip: bool
    cut: tuple[float, float]
    score: tuple[float, float]
    moved: float
    shuffled: float

    @property
    def step(self) -> float:
        """Score of the second call minus that of the first."""
        return self.score[1] - self.score[0]


@dataclass(frozen=True)
class Zigzag:
    """The blocks of one network on one batch."""

    name: str
    blocks: list[Block]

    def of(self, skip: bool) -> list[Block]:
        """The blocks with a skip connection, or those without one."""
        return [block for block in self.blocks if block.skip == skip]

    def row(self, skip: bool) -> dict[str, Any]:
        """Means over the blocks of one kind; ``step``, ``moved`` and ``control`` are second call minus first.

        ``low`` and ``high`` are the ends of Student's interval of the step.
        """
        blocks = self.of(skip)
        first = np.array([block.score[0] for block in blocks])
        return {
            "network": self.name,
            "skip": "yes" if skip else "no",
            "second lower": f"{sum(block.step < 0 for block in blocks)} of {len(blocks)}",
            "extra cut": float(np.mean([block.cut[1] - block.cut[0] for block in blocks])),
            **dict(zip(("step", "low", "high"), student_interval([block.step for block in blocks]), strict=True)),
            "moved": float(np.mean([block.moved for block in blocks] - first)),
            "control": float(np.mean([block.shuffled for block in blocks] - first)),
        }


def pairs_of(model: Any) -> list[tuple[int, bool, int, int]]:
    """``(block, skip, first call, second call)`` for each block of an EfficientNet-Lite that widens its channels."""
    pairs, call = [], 1  # call 0 is the stem
    for number, block in enumerate(model._blocks):
        args = block._block_args
        calls = 1 if args.expand_ratio == 1 else 2
        skip = np.ravel(args.stride)[0] == 1 and args.input_filters == args.output_filters
        if calls == 2:
            pairs.append((number, bool(skip), call, call + 1))
        call += calls
    return pairs


@contextmanager
def watched(model: nn.Module, see: Callable[[int, Tensor, Tensor], None]) -> Iterator[Callable[[Tensor], None]]:
    """Runs of the model in which ``see(call, input, output)`` is told of every call of a ReLU6 module."""
    inputs, call = [], 0

    def before(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        inputs.append(args[0].clone())  # the call may overwrite it

    def after(_module: nn.Module, _args: Any, output: Tensor) -> None:
        nonlocal call
        see(call, inputs.pop(), output)
        call += 1

    def run(part: Tensor) -> None:
        nonlocal call
        call = 0
        with torch.no_grad():
            model(part)

    modules = [module for module in model.modules() if isinstance(module, nn.ReLU6)]
    handles = [module.register_forward_pre_hook(before) for module in modules]
    handles += [module.register_forward_hook(after) for module in modules]
    try:
        yield run
    finally:
        for handle in handles:
            handle.remove()


def pooled_calls(
    model: nn.Module, pairs: Sequence[tuple[int, bool, int, int]], parts: Sequence[Tensor]
) -> list[tuple[tuple[float, float], list[tuple[Tensor, Tensor]]]]:
    """Per pair the two shares that are cut, and pooled inputs and outputs: first, second, moved, control.

    Parameters are those of :func:`measure_blocks`.
    """
    generator = torch.Generator().manual_seed(0)  # of the control, and of the values that shifts are read off
    pooled: dict[int, list[tuple[Tensor, Tensor]]] = defaultdict(list)
    shares: dict[int, list[Tensor]] = defaultdict(list)
    values: dict[int, list[Tensor]] = defaultdict(list)

    def look(call: int, x: Tensor, y: Tensor) -> None:
        pooled[call].append((x.mean((2, 3)), y.mean((2, 3))))
        shares[call].append((x <= 0).double().mean((2, 3)))
        places = torch.randint(x[0, 0].numel(), (SAMPLE,), generator=generator)
        values[call].append(x.flatten(2)[:, :, places].transpose(0, 1).flatten(1))

    with watched(model, look) as run:
        for part in parts:
            run(part)
    cut = {call: torch.cat(rows).mean(0) for call, rows in shares.items()}
    shifts: dict[int, list[Tensor]] = {}
    for _, _, first, second in pairs:
        ordered = torch.cat(values[second], 1).sort(1).values
        targets = (cut[first], cut[second][torch.randperm(len(cut[second]), generator=generator)])
        at = [(share * (ordered.shape[1] - 1)).round().long() for share in targets]
        shifts[second] = [ordered.gather(1, place[:, None]) for place in at]

    moved: dict[int, list[list[tuple[Tensor, Tensor]]]] = {call: [[], []] for call in shifts}

    def move(call: int, x: Tensor, _y: Tensor) -> None:
        for found, shift in zip(moved.get(call, []), shifts.get(call, []), strict=True):
            z = x - shift[:, :, None]
            found.append((z.mean((2, 3)), z.clamp(0, 6).mean((2, 3))))

    with watched(model, move) as run:
        for part in parts:
            run(part)

    def joined(rows: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        x, y = (torch.cat(side).double() for side in zip(*rows, strict=True))
        return x, y

    return [
        (
            (cut[first].mean().item(), cut[second].mean().item()),
            [joined(rows) for rows in (pooled[first], pooled[second], *moved[second])],
        )
        for _, _, first, second in pairs
    ]


def measure_blocks(
    model: nn.Module, pairs: Sequence[tuple[int, bool, int, int]], parts: Sequence[Tensor]
) -> list[Block]:
    """The blocks of a network whose activations are modules of class ReLU6.

    Parameters
    ----------
    model
        In evaluation mode.
    pairs
        Those of :func:`pairs_of`; the two calls of a pair have the same channels in the same order.
    parts
        Tensors of shape (n, 3, h, w), together one batch.
    """
    found = []
    for (number, skip, _, _), (cut, calls) in zip(pairs, pooled_calls(model, pairs, parts), strict=True):
        first, second, moved, control = (affinity_score(*call).item() for call in calls)
        found.append(Block(number, skip, cut, (first, second), moved, control))
    return found


def load_zigzag(path: str | Path) -> list[Zigzag]:
    """The networks that ``book/data/first_signature/zigzag.py`` stored.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not such a file.
    """

    def build(data: dict[str, Any]) -> list[Zigzag]:
        return [
            Zigzag(name, [Block(**row | {"cut": tuple(row["cut"]), "score": tuple(row["score"])}) for row in rows])
            for name, rows in data["networks"].items()
        ]

    return read_results(path, build, "book/data/first_signature/zigzag.py")


def zigzag_table(networks: Sequence[Zigzag]) -> Table:
    """The steps of all networks, a row for the blocks with a skip connection and one for those without."""
    return Table.from_rows([network.row(skip) for network in networks for skip in (True, False)], digits=3)


def intervention_table(networks: Sequence[Zigzag]) -> Table:
    """The step in the blocks with a skip connection, and what is left of it; a row a network."""
    columns = ("network", "second lower", "step", "moved", "control")
    return Table.from_rows([{name: network.row(True)[name] for name in columns} for network in networks], digits=3)
