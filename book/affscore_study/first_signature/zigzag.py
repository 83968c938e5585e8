"""Measurements of the two ReLU6 calls of the blocks of an EfficientNet-Lite, as they are and with moved channels.

:mod:`affscore_book.first_signature.zigzag` explains their purpose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore.score import affinity_score
from affscore_book.first_signature.zigzag import Block, Zigzag
from affscore_book.kit.tables import Table
from affscore_book.uses.replacing import run_watched

__all__ = ["measure_blocks", "pairs_of", "zigzag_table"]

# The number of values of each channel and picture from which the shift of a channel is computed.
SAMPLE = 16


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


def pooled_calls(
    model: nn.Module, pairs: Sequence[tuple[int, bool, int, int]], parts: Sequence[Tensor]
) -> list[tuple[tuple[float, float], list[tuple[Tensor, Tensor]]]]:
    """For each pair, the two shares that are cut, and the pooled inputs and outputs: first, second, moved, control.

    The parameters are those of :func:`measure_blocks`.
    """
    generator = torch.Generator().manual_seed(0)  # draws the control, and the values from which shifts are computed
    pooled: dict[int, list[tuple[Tensor, Tensor]]] = defaultdict(list)
    shares: dict[int, list[Tensor]] = defaultdict(list)
    values: dict[int, list[Tensor]] = defaultdict(list)

    def look(call: int, x: Tensor, y: Tensor) -> None:
        pooled[call].append((x.mean((2, 3)), y.mean((2, 3))))
        shares[call].append((x <= 0).double().mean((2, 3)))
        places = torch.randint(x[0, 0].numel(), (SAMPLE,), generator=generator)
        values[call].append(x.flatten(2)[:, :, places].transpose(0, 1).flatten(1))

    for part in parts:
        run_watched(model, part, look)
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

    for part in parts:
        run_watched(model, part, move)

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
    """The measured blocks of a network whose activations are modules of class ReLU6.

    Parameters
    ----------
    model
        The network in evaluation mode.
    pairs
        The pairs of :func:`pairs_of`; the two calls of a pair have the same channels in the same order.
    parts
        Tensors of shape (n, 3, h, w), which together are one batch.
    """
    found = []
    for (number, skip, _, _), (cut, calls) in zip(pairs, pooled_calls(model, pairs, parts), strict=True):
        first, second, moved, control = (affinity_score(*call).item() for call in calls)
        found.append(Block(number, skip, cut, (first, second), moved, control))
    return found


def zigzag_table(networks: Sequence[Zigzag]) -> Table:
    """A table of the steps of all networks, with a row for the blocks with a skip connection and one for the others."""
    return Table.from_rows([network.row(skip) for network in networks for skip in (True, False)], digits=3)
