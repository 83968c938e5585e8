"""The affinity scores of activations on samples: the stored sweep of Figure 8.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 8, Appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.activations.laws import output_variance, score_curve
from affscore_book.kit.stored import read_results

__all__ = ["Sweep", "load_sweep"]

RIDGE = 1e-6  # what the released code adds to every variance
# Where "non-linear" may begin: the paper names no number.
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Sweep:
    """A stored sweep over means and standard deviations, with the settings that reproduce it.

    Attributes
    ----------
    means, stds
        Arrays of shape (m,) and (s,).
    scores
        For each activation an array of shape (m, s), NaN where the output was constant.
    settings
        ``n``, ``d``, ``seed`` and so on.
    """

    means: np.ndarray
    stds: np.ndarray
    scores: dict[str, np.ndarray]
    settings: dict[str, Any]

    def law(self) -> Sweep:
        """The same sweep for the laws (:func:`score_curve`), with what is undefined in this one left undefined."""
        scores = {}
        for name, ours in self.scores.items():
            scores[name] = np.stack([score_curve(name, self.means, std) for std in self.stds], axis=1) + 0 * ours
        return replace(self, scores=scores, settings=self.settings | {"n": "infinite", "d": 1})

    def dead_as_one(self) -> Sweep:
        """The same sweep where a constant output counts as affine, and scores 1.

        :meth:`released` has what the authors' released code does.
        """
        scores = {name: np.nan_to_num(ours, nan=1.0) for name, ours in self.scores.items()}
        return replace(self, scores=scores)

    def released(self) -> Sweep:
        """The same sweep by the rule of the authors' released code for outputs that hardly vary.

        It adds 1e-6 to every variance. Where the output's own variance v is no larger, its map is constant, and the
        score is ``1 - sqrt(v / (2 (v + 1e-6)))``: near 1 not only where ReLU is dead, but also in the far tails of SiLU
        and GELU. The variances are those of the distribution; all other scores stay as they are.
        """
        scores = {}
        for name, ours in self.scores.items():
            v = np.stack([output_variance(name, self.means, std) for std in self.stds], axis=1)
            scores[name] = np.where(v <= RIDGE, 1 - np.sqrt(v / (2 * (v + RIDGE))), np.nan_to_num(ours, nan=1.0))
        return replace(self, scores=scores)

    def alive(self, name: str) -> np.ndarray:
        """Where an activation has a score; bool, shape (m, s)."""
        return ~np.isnan(self.scores[name])

    def gap(self, name: str, other: str) -> tuple[float, tuple[float, float]]:
        """Mean difference of two activations' scores where both have one, and its range with one width left out.

        The list of standard deviations is a guess, and the range is over the lists that lack one of them. Averages over
        different inputs cannot be compared: where ReLU has no score, SiLU has a low one.
        """
        both = self.alive(name) & self.alive(other)
        apart = np.where(both, self.scores[name] - self.scores[other], 0.0)
        sums, counts = apart.sum(axis=0), both.sum(axis=0)
        without = (sums.sum() - sums) / (counts.sum() - counts)
        return float(sums.sum() / counts.sum()), (float(without.min()), float(without.max()))

    def extra_means(self, name: str, other: str) -> dict[float, int]:
        """How many more means are non-linear than for another activation, on the inputs where both have a score.

        By threshold: 0.5, 0.6, 0.7, 0.8, 0.9 and 0.95. A mean is non-linear if the middle of its box, the median over
        the standard deviations, is below the threshold; one without such an input does not count.
        """
        both = self.alive(name) & self.alive(other)
        ours, theirs = (
            np.array([np.median(row[where]) for row, where in zip(self.scores[each], both, strict=True) if where.any()])
            for each in (name, other)
        )
        return {t: int((ours < t).sum() - (theirs < t).sum()) for t in THRESHOLDS}

    def __repr__(self) -> str:
        sizes = f"{len(self.scores)} activations, {len(self.means)} means, {len(self.stds)} standard deviations"
        return f"Sweep({sizes}, n={self.settings['n']}, d={self.settings['d']}, seed={self.settings['seed']})"


def load_sweep(path: str | Path) -> Sweep:
    """The sweep that ``figure_8.py`` stored; errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(data: dict[str, Any]) -> Sweep:
        settings = data["settings"]
        means, stds = np.array(settings["means"]), np.array(settings["stds"])
        scores = {name: np.array(rows, dtype=np.float64) for name, rows in data["scores"].items()}
        if any(rows.shape != (len(means), len(stds)) for rows in scores.values()):
            raise KeyError("a score for every mean and standard deviation")
        return Sweep(means, stds, scores, settings)

    return read_results(path, build, "book/data/activations/figure_8.py")
