"""The scores of EfficientNet-Lite0 beside those of its linear twins: what a layer of straight lines would score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore import signature
from affscore_book.kit.stored import read_results

__all__ = ["load_twins", "measure_twins", "plot_twins"]

KINDS = ("score", "twin", "plain")
GREY = "#808080"


def measure_twins(model: nn.Module, batch: Tensor) -> dict[str, list[float]]:
    """For each call its score, its linear twin's, and its score without shrinkage (``plain``), on one batch."""
    found = signature(model, [batch], companions=["twin"], micro_batch=32)
    plain = signature(model, [batch], covariance="empirical", micro_batch=32)
    return {"score": found.mean.tolist(), "twin": found.companions["twin"][0].tolist(), "plain": plain.mean.tolist()}


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
