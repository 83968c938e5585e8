"""The scores of EfficientNet-Lite0 beside those of its linear twins, with its pairs and with other crops' outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore import affine_map, affinity_score, paired_affinity_score, signature
from affscore.coupling import partners
from affscore_book.first_signature.zigzag import watched
from affscore_book.kit.stored import read_results

__all__ = ["load_twins", "measure_twins"]

KINDS = ("score", "twin", "plain", "paired", "own", "strangers")


def measure_twins(model: nn.Module, batch: Tensor, other: Tensor) -> dict[str, list[float]]:
    """For each call on one batch its score and what it is compared with.

    ``twin`` is the score of its linear twin, ``plain`` that without shrinkage, ``paired`` the paired score, ``own``
    the share of crops whose best partner is their own output, and ``strangers`` the score of the inputs with the
    outputs of ``other``, a batch of as many other crops. For the last three ReLU6 is the only activation: the calls
    are those of its modules.
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
    """Pooled inputs and outputs of each call of a ReLU6 module, float64, of shape (n, channels)."""
    pooled: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def look(call: int, x: Tensor, y: Tensor) -> None:
        pooled.setdefault(call, []).append((x.double().mean((2, 3)), y.double().mean((2, 3))))

    with watched(model, look) as run:
        for part in batch.split(32):
            run(part)
    found = []
    for parts in pooled.values():
        x, y = (torch.cat(side) for side in zip(*parts, strict=True))
        found.append((x, y))
    return found


def load_twins(path: str | Path) -> dict[str, NDArray[np.float64]]:
    """What ``book/data/first_signature/twins.py`` stored: an array (draws, calls) for each of :data:`KINDS`.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not such a file.
    """

    def build(data: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        draws = data["draws"]
        return {kind: np.array([draws[seed][kind] for seed in draws], dtype=np.float64) for kind in KINDS}

    return read_results(path, build, "book/data/first_signature/twins.py")
