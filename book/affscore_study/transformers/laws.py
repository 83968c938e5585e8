"""The score of a layer of GELUs by the distributions of its inputs, from stored ones or from its inputs and outputs.

The formula is that of :mod:`affscore_book.transformers.laws`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from affscore_book.transformers.laws import channel_laws, score_from_correlations
from affscore_book.transformers.measured import LayerInputs

__all__ = ["inputs_of_layer", "score_from_means_and_spreads", "score_of_positions"]


def score_from_means_and_spreads(layer: LayerInputs) -> float:
    """The score of the layer if the inputs of its channels were normal and independent of each other."""
    return score_from_correlations(*channel_laws(layer.means, layer.spreads))


def score_of_positions(before: Tensor, after: Tensor) -> float:
    """The score by the same formula for the trailing pool, whose channels are positions, averaged over channels.

    Parameters
    ----------
    before, after
        The inputs and outputs of a layer, shape (texts, tokens, channels).
    """
    x, y = (value.double().mean(dim=2).numpy() for value in (before, after))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    spread = np.sqrt((x**2).mean(axis=0) * (y**2).mean(axis=0))
    alive = spread > 0
    correlations = (x * y).mean(axis=0)[alive] / spread[alive]
    return score_from_correlations(correlations, (y**2).mean(axis=0)[alive])


def inputs_of_layer(before: Tensor, edges: NDArray[np.float64]) -> LayerInputs:
    """The means and spreads of the channels, and the histogram of all inputs of a layer's GELU (tokens, channels)."""
    x = before.double().numpy()
    counts = np.histogram(x.clip(edges[0], edges[-1]), edges)[0]
    return LayerInputs(x.mean(axis=0), x.std(axis=0), edges, counts / counts.sum())
