"""How many non-linear units a path through a network meets: average path length (APL), and its normalised form (NAPL).

A path goes from an input channel to an output channel, from unit to unit along the edges of the network's graph. A
unit is a channel, and a path's length is the number of *non-linear* units on it. A ReLU makes its channel non-linear,
and so does every other element-wise activation; a PReLU or LeakyReLU does unless the channel's slope is 1.

*   APL is the mean length when all paths are equally likely. A skip then hardly counts: beside four layers of width
    4 it is one path in 257.
*   NAPL is the mean length on a random walk back from the output, which chooses one summand at every addition, then
    one unit of the layer below, each uniformly. A skip then counts as much as what it skips.

What the graph does to paths:

*   A linear layer or convolution joins every output channel to every input channel (of its group) by *one* edge: the
    taps of a kernel are not counted separately, nor do the values of weights matter.
*   An addition joins its summands. ``a + b + c`` is one addition of three, if it alone reads ``a + b``.
*   Concatenated channels lie side by side. In NAPL each input of a concatenation so weighs by its share of channels.
*   Flattening turns each position of a channel into a unit, with the channel's paths.
*   Pooling, normalisation, dropout, resizing, and arithmetic with constants leave the paths of a channel alone, also
    where they are not linear, such as max pooling.
*   Constants, such as the zeros that pad the channels of a shortcut, carry no path. They are none of the summands
    and units that NAPL chooses from.
*   A product of two paths (squeeze-and-excitation, attention) has no length, and is refused.

Both lengths belong to the graph, not to the function: another graph with the same function may have others.

Reference: Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180, figure 1. The rules for taps, for
three summands, for concatenation and for constants are our reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from torch import Tensor, nn

from affscore_book.linearized.graph import traced_graph
from affscore_book.linearized.walk import PathWalk

__all__ = ["PathLengths", "path_lengths"]


@dataclass(frozen=True, eq=False, repr=False)
class PathLengths:
    """Paths of a network by length and output channel.

    Attributes
    ----------
    counts
        Object array (channels, longest + 1) of ints: paths of length 0, 1, ... that end in each output channel. The
        channels are axis 1 of the output; where their positions differ, all entries are.
    weights
        Object array (channels, longest + 1) of Fractions: the probability that NAPL's random walk, started in this
        output channel, is a path of length 0, 1, ...; a row sums to 1, or to 0 where no path ends.
    """

    counts: np.ndarray
    weights: np.ndarray

    @property
    def paths(self) -> np.ndarray:
        """Number of paths into each output channel, ints, object array (channels,)."""
        return self.counts.sum(axis=1)

    @property
    def apl(self) -> float:
        """Average path length: mean number of non-linear units on a path, all paths equally likely."""
        return self._mean("apl")

    @property
    def napl(self) -> float:
        """Normalised average path length, mean over the output channels in which paths end."""
        return self._mean("napl")

    def shares(self, measure: str) -> np.ndarray:
        """Share of the paths with length 0, 1, ..., float64 (longest + 1,), as ``"apl"`` or ``"napl"`` weighs them.

        Its mean length is :attr:`apl` or :attr:`napl`.
        """
        return np.array(list(map(float, self._shares(measure))))

    def _shares(self, measure: str) -> list[Fraction]:
        weights = {"apl": self.counts, "napl": self.weights}[measure].sum(axis=0)
        return [Fraction(weight) / sum(weights) for weight in weights]

    def _mean(self, measure: str) -> float:
        return float(sum(length * share for length, share in enumerate(self._shares(measure))))

    def __repr__(self) -> str:
        paths = self.paths.sum()
        number = paths if paths < 10**9 else f"{Decimal(paths):.2e}"  # beyond 1e308 there are no floats
        return f"PathLengths(apl={self.apl:.4g}, napl={self.napl:.4g}, {number} paths)"


def path_lengths(network: nn.Module, inputs: Tensor) -> PathLengths:
    """Average path length and normalised average path length of a network, exactly, from its traced graph.

    The rules are at the top of this module. Output channels of several outputs are listed one after the other.

    Parameters
    ----------
    network
        A module that ``torch.fx`` can trace, on any device; it is not changed. The graph is that of evaluation mode.
    inputs
        A batch of examples, (batch, channels, ...); only its shape matters.

    Raises
    ------
    ValueError
        As :func:`affscore_book.linearized.graph.traced_graph`; and if the graph holds an operation without a rule, or
        a product of two paths. The sentence names it and its module.

    Examples
    --------
    A skip over four layers of width 4 (figure 1):

    >>> import torch
    >>> class Skip(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layers = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(4, 4), nn.ReLU())])
    ...     def forward(self, x):
    ...         return x + self.layers(x)
    >>> lengths = path_lengths(Skip(), torch.zeros(1, 4))
    >>> lengths
    PathLengths(apl=3.984, napl=2, 1028 paths)
    >>> lengths.paths[0], lengths.counts[0]           # paths into the first output, and by length
    (257, array([1, 0, 0, 0, 256], dtype=object))
    >>> lengths.shares("napl")
    array([0.5, 0. , 0. , 0. , 0.5])
    >>> print(lengths.weights[0, 4] / lengths.counts[0, 4])          # NAPL's weight of a deep path
    1/512
    """
    walk = PathWalk(traced_graph(network, inputs))
    if inputs.ndim < 2 or 0 in inputs.shape:
        raise ValueError(f"inputs: got shape {tuple(inputs.shape)}; it should be (batch, channels, ...), not empty.")
    outputs = walk.outputs(inputs)
    if not any(outputs):
        raise ValueError(f"network: no path leads from the inputs of {type(network).__name__} to its output.")
    shape = (len(outputs), 1 + max(length for paths in outputs for length in paths))
    counts, weights = np.full(shape, 0, dtype=object), np.full(shape, Fraction(0), dtype=object)
    for row, paths in enumerate(outputs):
        for length, (count, weight) in paths.items():
            counts[row, length], weights[row, length] = count, weight
    return PathLengths(counts, weights)
