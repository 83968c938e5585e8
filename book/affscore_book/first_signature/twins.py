"""The scores of EfficientNet-Lite0 beside those of its linear twins: what a layer of straight lines would score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore.score import affinity_score
from affscore_book.first_signature.zigzag import watched
from affscore_book.kit.stored import read_results
from affscore_book.theory.finite import linear_twin

__all__ = ["load_twins", "measure_twins", "plot_twins"]

KINDS = ("score", "twin", "plain")
GREY = "#808080"


def measure_twins(model: nn.Module, parts: Sequence[Tensor]) -> dict[str, list[float]]:
    """For each call of a ReLU6 module: its score, its linear twin's, and its score without shrinkage (``plain``).

    ``parts`` are tensors of shape (n, 3, h, w), together one batch; inputs and outputs are averaged over the picture.
    """
    pooled: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def look(call: int, x: Tensor, y: Tensor) -> None:
        pooled.setdefault(call, []).append((x.mean((2, 3)), y.mean((2, 3))))

    with watched(model, look) as run:
        for part in parts:
            run(part)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for call in sorted(pooled):
        x, y = (torch.cat(side).double().numpy() for side in zip(*pooled[call], strict=True))
        found["score"].append(affinity_score(x, y).item())
        found["twin"].append(affinity_score(x, linear_twin(x, y)).item())
        found["plain"].append(affinity_score(x, y, covariance="empirical").item())
    return found


def load_twins(path: str | Path) -> dict[str, NDArray[np.float64]]:
    """What ``book/data/first_signature/twins.py`` stored: ``score``, ``twin`` and ``plain``, each (draws, calls).

    Raises FileNotFoundError if there is no such file, and ValueError if it is not such a file.
    """

    def build(data: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        draws = data["draws"]
        return {kind: np.array([draws[seed][kind] for seed in draws], dtype=np.float64) for kind in KINDS}

    return read_results(path, build, "book/data/first_signature/twins.py")


def plot_twins(ax: Axes, twins: NDArray[np.float64]) -> None:
    """Add the scores of the linear twins of all calls to the plot of a signature, as a grey line."""
    label = "layers of straight lines (linear twins)"
    ax.plot(range(1, len(twins) + 1), twins, color=GREY, linestyle="--", label=label, zorder=1)
