"""What ``book/data/redshift/make.py`` computed: many draws of the paper's panels, and maps over scale, depth, shift."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.kit.stored import read_results

__all__ = ["StoredDraws", "load_draws"]


@dataclass(frozen=True, eq=False)
class StoredDraws:
    """What ``book/data/redshift/make.py`` computed, as float64 arrays; NaN where a score is undefined.

    Attributes
    ----------
    settings
        The settings of that script; ``"panels"`` has the (shift, scale, activation) of each panel.
    scores
        Shape (draws, 8, 3): the scores of the layers in these panels, for paired draws with the seeds 0, 1, 2, ...
    maps
        For each activation ``"depth"``, shape (depths, scales, draws, 2), and ``"shift"``, shape (shifts, scales,
        draws, 2): the mean score of the layers and the mean frequency by cosine transform.
    """

    settings: dict[str, Any]
    scores: np.ndarray
    maps: dict[str, dict[str, np.ndarray]]

    def __repr__(self) -> str:
        return f"Study({len(self.scores)} draws of {self.scores.shape[1]} panels, maps of {len(self.maps)} activations)"

    def layers(self, shift: float, scale: float, activation: str) -> np.ndarray:
        """The score of each layer in one panel, shape (draws, 3)."""
        return np.asarray(self.scores[:, self.settings["panels"].index([shift, scale, activation])])

    def panel(self, shift: float, scale: float, activation: str) -> np.ndarray:
        """The mean score over the layers in one panel, shape (draws,)."""
        return np.asarray(self.layers(shift, scale, activation).mean(axis=1))

    def course(self, activation: str, along: str) -> np.ndarray:
        """Mean score and mean frequency where one setting of a network changes, shape (5, draws, 2).

        ``along`` is ``"depth"`` or ``"shift"``, at the largest scale, or ``"scale"``, with three hidden layers.
        """
        maps = self.maps[activation]
        if along == "scale":
            return np.asarray(maps["depth"][self.settings["maps"]["depths"].index(3)])
        return np.asarray(maps[along][:, -1])

    def rank_correlations(self, activation: str, along: str) -> np.ndarray:
        """Rank correlation of score and frequency along a :meth:`course`, in each draw, shape (draws,)."""
        from scipy import stats  # here, since a page that shows stored draws has neither SciPy nor torch

        pairs = self.course(activation, along).transpose(1, 2, 0)
        return np.array([stats.spearmanr(*pair).statistic for pair in pairs])


def load_draws(path: str | Path) -> StoredDraws:
    """A file of ``book/data/redshift/make.py``; errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(raw: dict[str, Any]) -> StoredDraws:
        scores = np.array(raw["draws"], dtype=np.float64)[..., :3]  # after them frequencies of the images
        maps = {name: {kind: np.array(both[kind], dtype=float) for kind in both} for name, both in raw["maps"].items()}
        return StoredDraws(raw["settings"], scores, maps)

    return read_results(path, build, "book/data/redshift/make.py")
