"""Histograms of the inputs of every ReLU6 call of a network, which the moving picture of the introduction shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from affscore import Signature
from affscore_book.first_signature.tour import BINS, RANGE
from affscore_book.uses.replacing import run_watched

__all__ = ["inputs_of_calls"]


def inputs_of_calls(model: nn.Module, parts: Iterable[Tensor], signature: Signature) -> list[dict[str, Any]]:
    """The distribution of the inputs of every call of a ReLU6 module, in the order of the signature.

    Parameters
    ----------
    model
        A network whose activations are ReLU6 modules, in evaluation mode.
    parts
        Its inputs in pieces, tensors of shape (n, 3, height, width).
    signature
        Its signature on these inputs.

    Returns
    -------
    list of dict
        ``name``, that of the call; ``score``, to 4 decimals; ``heights``, the numbers of inputs in each of BINS bars
        over RANGE, in percent of the highest bar; ``below`` and ``above``, the percentages of inputs under 0 and over
        6.

    Raises
    ------
    ValueError
        If the network calls ReLU6 another number of times than the signature has calls.
    """
    counts: dict[int, Tensor] = {}

    def count(call: int, x: Tensor, _y: Tensor) -> None:
        bars = torch.histc(x.double(), BINS, *RANGE)
        found = torch.cat([bars, (x < 0).sum()[None], (x > 6).sum()[None], torch.tensor([x.numel()])])
        counts[call] = counts.get(call, 0) + found

    for part in parts:
        run_watched(model, part, count)
    if len(counts) != len(signature.calls):
        raise ValueError(
            f"the network calls ReLU6 {len(counts)} times; the signature has {len(signature.calls)} calls."
        )
    rows = []
    for call, score, found in zip(signature.calls, signature.mean, counts.values(), strict=True):
        bars = found[:BINS]
        below, above = (100 * found[BINS:-1] / found[-1]).tolist()
        heights = (100 * bars / bars.max()).round().int().tolist()
        rows.append({
            "name": call.name, "score": round(float(score), 4), "heights": heights,
            "below": round(below, 1), "above": round(above, 1),
        })  # fmt: skip
    return rows
