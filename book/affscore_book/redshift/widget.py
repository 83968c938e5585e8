"""The widget of the chapter on neural redshift: a random network as an image."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import traitlets

from affscore.score import affinity_score
from affscore_book.kit.affinity1d import uniforms
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.redshift.networks import Network, grid_points

__all__ = ["RedshiftImage"]

# The same numbers stand in redshift_image.js.
WIDTH, DEPTHS, SCALES, SHIFT, SEEDS = 24, (1, 5), (0.5, 6.0), 0.15, (0, 99)
SCORE_GRID = 10
NAMES = ("relu", "leaky_relu", "silu", "tanh", "gaussian", "sine")


class RedshiftImage(ComputedWidget):
    """A random network as an image, with its spectrum and the mean affinity score of its hidden layers.

    All states of a seed share one draw: the weights are ``scale * (a u + shift)``, ``a`` Glorot's bound and ``u`` fixed
    numbers in (-1, 1); the biases are fixed. Hidden layers have 24 units, and scores come from a 10 x 10 grid of
    inputs, so that they follow the sliders; the paper has 40 and 32 x 32.

    Parameters
    ----------
    activation
        One of ``"relu"``, ``"leaky_relu"``, ``"silu"``, ``"tanh"``, ``"gaussian"``, ``"sine"``.
    scale
        Factor of the weights, from 0.5 to 6.
    shift
        Shift of the bounds of the weights, from -0.15 to 0.15.
    depth
        Hidden layers, from 1 to 5.
    seed
        Number of the draw, from 0 to 99.

    >>> widget = RedshiftImage(activation="tanh", scale=2.0)
    >>> widget
    RedshiftImage(activation='tanh', depth=3, scale=2.0, seed=0, shift=0.0)
    >>> widget.network()
    Network(2 -> 24 -> 24 -> 24 -> 1)
    """

    activation = traitlets.Enum(NAMES, default_value="relu").tag(sync=True)
    depth = traitlets.Int(3, min=DEPTHS[0], max=DEPTHS[1]).tag(sync=True)
    scale = traitlets.Float(1.0, min=SCALES[0], max=SCALES[1]).tag(sync=True)
    shift = traitlets.Float(0.0, min=-SHIFT, max=SHIFT).tag(sync=True)
    seed = traitlets.Int(0, min=SEEDS[0], max=SEEDS[1]).tag(sync=True)

    def network(self) -> Network:
        """The network of the present state."""
        sizes = [2, *[WIDTH] * self.depth, 1]
        weights, biases = [], []
        for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes), start=1):
            # The output layer has the seed's first stream, whatever the depth.
            stream = (DEPTHS[1] + 1) * self.seed + (0 if layer > self.depth else layer)
            unit = torch.from_numpy(uniforms(2 * stream, fan_in * fan_out)).reshape(fan_out, fan_in)
            weights.append(self.scale * (math.sqrt(6 / (fan_in + fan_out)) * unit + self.shift))
            biases.append(torch.from_numpy(uniforms(2 * stream + 1, fan_out)))
        return Network(tuple(weights), tuple(biases))

    def scores(self) -> list[float]:
        """The score of each hidden layer; NaN where its output is constant."""
        calls = self.network().hidden(grid_points(SCORE_GRID), self.activation)
        return [affinity_score(x, y).item() for x, y in calls]

    def score(self) -> float:
        """The mean score of the hidden layers; NaN if the output of one is constant."""
        return float(np.mean(self.scores()))
