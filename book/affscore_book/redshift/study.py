"""What ``book/data/redshift/make.py`` computed: many draws of the paper's panels, and maps over scale, depth, shift."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.kit.stored import read_results
from affscore_book.redshift.networks import PANELS

__all__ = ["StoredDraws", "load_draws"]


@dataclass(frozen=True, eq=False)
class StoredDraws:
    """What ``book/data/redshift/make.py`` computed, as float64 arrays; NaN where a score is undefined.

    Attributes
    ----------
    settings
        The settings of that script.
    scores
        Shape (draws, 8, 3): the scores of the layers in the panels of ``PANELS``, for paired draws with the seeds
        0, 1, 2, ...
    fourier, dct
        Shape (draws, 8): the images' frequencies by Fourier's and by the cosine transform.
    maps
        For each activation ``"depth"``, shape (depths, scales, draws, 2), and ``"shift"``, shape (shifts, scales,
        draws, 2): the mean score of the layers and the mean frequency by cosine transform.
    """

    settings: dict[str, Any]
    scores: np.ndarray
    fourier: np.ndarray
    dct: np.ndarray
    maps: dict[str, dict[str, np.ndarray]]

    def __repr__(self) -> str:
        return f"Study({len(self.scores)} draws of {len(PANELS)} panels, maps of {len(self.maps)} activations)"

    def panel(self, shift: float, scale: float, activation: str) -> np.ndarray:
        """The mean score over the layers in one panel, shape (draws,)."""
        return np.asarray(self.scores[:, list(PANELS).index((shift, scale, activation))].mean(axis=1))


def load_draws(path: str | Path) -> StoredDraws:
    """Read a file written by ``book/data/redshift/make.py``.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not one of that script.
    """

    def build(raw: dict[str, Any]) -> StoredDraws:
        draws = np.array(raw["draws"], dtype=np.float64)
        maps = {name: {kind: np.array(both[kind], dtype=float) for kind in both} for name, both in raw["maps"].items()}
        return StoredDraws(raw["settings"], draws[..., :3], draws[..., 3], draws[..., 4], maps)

    return read_results(path, build, "book/data/redshift/make.py")
