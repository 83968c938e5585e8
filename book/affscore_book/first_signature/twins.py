"""The scores of EfficientNet-Lite0 beside those of its linear twins: what a linear layer would score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore import paired_affinity_score, signature
from affscore_book.first_signature.zigzag import watched
from affscore_book.kit.stored import read_results

__all__ = ["load_twins", "measure_twins", "plot_twins"]

KINDS = ("score", "twin", "plain", "paired")
GREY = "#808080"


def measure_twins(model: nn.Module, batch: Tensor) -> dict[str, list[float]]:
    """For each call on one batch its score, its linear twin's, that without shrinkage (``plain``), the ``paired`` one.

    For the last, ReLU6 is the only activation: the calls are those of its modules.
    """
    found = signature(model, [batch], companions=["twin"], micro_batch=32)
    plain = signature(model, [batch], covariance="empirical", micro_batch=32)
    pooled: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def look(call: int, x: Tensor, y: Tensor) -> None:
        pooled.setdefault(call, []).append((x.mean((2, 3)), y.mean((2, 3))))

    with watched(model, look) as run:
        for part in batch.split(32):
            run(part)
    clouds = [[torch.cat(side).double() for side in zip(*parts, strict=True)] for parts in pooled.values()]
    paired = [paired_affinity_score(*cloud).item() for cloud in clouds]
    return {"score": found.mean.tolist(), "twin": found.companions["twin"][0].tolist(), "plain": plain.mean.tolist(),
            "paired": paired}  # fmt: skip


def load_twins(path: str | Path) -> dict[str, NDArray[np.float64]]:
    """What ``book/data/first_signature/twins.py`` stored: an array (draws, calls) for each of :data:`KINDS`.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not such a file.
    """

    def build(data: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        draws = data["draws"]
        return {kind: np.array([draws[seed][kind] for seed in draws], dtype=np.float64) for kind in KINDS}

    return read_results(path, build, "book/data/first_signature/twins.py")


def plot_twins(ax: Axes, twins: NDArray[np.float64]) -> None:
    """Add the scores of the linear twins of all calls to the plot of a signature, as a dashed line."""
    ax.plot(range(1, len(twins) + 1), twins, color=GREY, linestyle="--", label="linear twins", zorder=1)
