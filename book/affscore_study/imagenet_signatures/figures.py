"""The figures of the audit of ImageNet signatures."""

from __future__ import annotations

import matplotlib.pyplot as plt

from affscore_study.imagenet_signatures.full_results import Results
from affscore_study.suite.compare import history
from affscore_study.suite.figures import plot_history

__all__ = ["plot_paper"]


def plot_paper(results: Results | None, pool: str = "spatial") -> None:
    """Draw the paper's Figure 5 A from the results of a full run. Nothing is drawn if there are no results."""
    if results is not None:
        plot_history(history(dict(results.signatures[pool])))
        plt.gcf().axes[0].set_title(f"pool {pool}", fontsize=13)
