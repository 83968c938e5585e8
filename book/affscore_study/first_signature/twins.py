"""Measurements to compare with the scores of EfficientNet-Lite0: linear twins, paired scores, and other crops."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from affscore import affine_map, affinity_score, paired_affinity_score, signature
from affscore.coupling import partners
from affscore_book.uses.replacing import run_watched

__all__ = ["measure_twins"]


def measure_twins(model: nn.Module, batch: Tensor, other: Tensor) -> dict[str, list[float]]:
    """The score of each call on one batch, and five numbers to compare it with, as lists over the calls.

    ``twin`` is the score of the linear twin, ``plain`` the score without shrinkage, ``paired`` the paired score,
    ``own`` the share of crops whose best partner is their own output, and ``strangers`` the score of the inputs with
    the outputs of ``other``, a batch of as many other crops. The last three are for the calls of ReLU6 modules, so
    ReLU6 must be the only activation.
    """
    found = signature(model, [batch], companions=["twin"], micro_batch=32)
    plain = signature(model, [batch], covariance="empirical", micro_batch=32)
    clouds = zip(pooled_clouds(model, batch), pooled_clouds(model, other), strict=True)
    rows: dict[str, list[float]] = {"paired": [], "own": [], "strangers": []}
    for (x, y), (_, strangers) in clouds:
        partner = partners(affine_map(x, y)(x), y)
        rows["paired"].append(paired_affinity_score(x, y).item())
        rows["own"].append((partner == torch.arange(len(x))).double().mean().item())
        rows["strangers"].append(affinity_score(x, strangers).item())
    return {"score": found.mean.tolist(), "twin": found.companions["twin"][0].tolist(), "plain": plain.mean.tolist(),
            **rows}  # fmt: skip


def pooled_clouds(model: nn.Module, batch: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The pooled inputs and outputs of each call of a ReLU6 module, float64 of shape (n, channels)."""
    pooled: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def look(call: int, x: Tensor, y: Tensor) -> None:
        pooled.setdefault(call, []).append((x.double().mean((2, 3)), y.double().mean((2, 3))))

    for part in batch.split(32):
        run_watched(model, part, look)
    found = []
    for parts in pooled.values():
        x, y = (torch.cat(side) for side in zip(*parts, strict=True))
        found.append((x, y))
    return found
