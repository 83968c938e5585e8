"""The widget of the chapter on linearised networks: hidden units of a small network become linear."""

from __future__ import annotations

import numpy as np
import torch
import traitlets
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore_book.kit.affinity1d import uniforms
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.linearized.paths import PathLengths, path_lengths
from affscore_book.linearized.slopes import ChannelPReLU, channel_prelus

__all__ = ["LinearizedNetwork", "SmallNetwork"]

# The same numbers stand in linearized_network.js.
DEPTH, WIDTH, REACH, GRID = 4, 4, 3.0, 61
# Of 200 draws, eight whose function turns often, whatever the connections, and keeps its size within a factor of 15
# while the units of all layers become linear together.
SEEDS = (98, 14, 42, 108, 116, 157, 60, 118)
NAMES = ("plain", "skip_each", "skip_all", "concatenate")


class SmallNetwork(nn.Module):
    """One input, four hidden layers of four ``ChannelPReLU``, one output; float64.

    ``connections`` says what is added to the chain of layers: nothing (``"plain"``), the identity around each of the
    layers 2 to 4 (``"skip_each"``), the identity around everything (``"skip_all"``), or each layer reads the input
    and all layers before it (``"concatenate"``).
    """

    def __init__(self, connections: str):
        super().__init__()
        self.connections = connections
        inputs = range(1, 2 + WIDTH * DEPTH, WIDTH) if connections == "concatenate" else [1] + [WIDTH] * DEPTH
        sizes = zip(inputs, [WIDTH] * DEPTH + [1], strict=True)
        self.layers = nn.ModuleList(nn.Linear(*size, dtype=torch.float64) for size in sizes)
        self.activations = nn.ModuleList(ChannelPReLU(WIDTH).double() for _ in range(DEPTH))

    def sums(self, x: Tensor) -> list[Tensor]:
        """The inputs of each hidden layer's activation, (n, 4) each, and the output layer's sum, (n, 1)."""
        sums, values = [], x
        for layer, activation in zip(self.layers[:-1], self.activations, strict=True):
            sums.append(layer(values))
            after = activation(sums[-1])
            if self.connections == "concatenate":
                values = torch.cat([values, after], 1)
            else:
                values = after + values if self.connections == "skip_each" and len(sums) > 1 else after
        return [*sums, self.layers[-1](values)]

    def forward(self, x: Tensor) -> Tensor:
        output = self.sums(x)[-1]
        return output + x if self.connections == "skip_all" else output


class LinearizedNetwork(ComputedWidget):
    """A small network whose hidden units become linear: its graph, APL and NAPL, and the function that it computes.

    The weights are drawn; while all units are ReLUs, each unit's input has mean 0 and standard deviation 1 over
    [-3, 3] but for a drawn shift of its bias. Units become linear in a drawn order.

    Parameters
    ----------
    connections
        ``"plain"``, ``"skip_each"``, ``"skip_all"`` or ``"concatenate"``; see :class:`SmallNetwork`. ``"skip_all"`` is
        the network of Mehmeti-Göpel and Disselhoff (2022), Figure 1.
    draw
        Which draw of the weights, from 1 to 8.
    layer1, layer2, layer3, layer4
        How many of the layer's four units are linear.

    >>> widget = LinearizedNetwork(connections="skip_all", layer2=1)
    >>> round(widget.score(), 3)        # NAPL: half of all walks take the skip, a quarter of the rest a linear unit
    1.875
    """

    connections = traitlets.Enum(NAMES, default_value="skip_all").tag(sync=True)
    draw = traitlets.Int(1, min=1, max=len(SEEDS)).tag(sync=True)
    layer1 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)
    layer2 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)
    layer3 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)
    layer4 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)

    @torch.no_grad()
    def network(self) -> SmallNetwork:
        """The network of the present state."""
        with torch.random.fork_rng(devices=[]):  # a picture must not change what a notebook draws next
            network = SmallNetwork(self.connections)
        grid = torch.linspace(-REACH, REACH, GRID, dtype=torch.float64)[:, None]
        for index, layer in enumerate(m for m in network.layers if isinstance(m, nn.Linear)):
            stream = self._stream(index)
            drawn = torch.from_numpy(uniforms(stream, layer.weight.numel())).reshape(layer.weight.shape)
            shift = torch.from_numpy(uniforms(stream + 1, len(layer.bias))) * (0.5 if index < DEPTH else 0.0)
            layer.weight.copy_(drawn.sign() * (0.3 + 0.7 * drawn.abs()))
            layer.bias.zero_()
            sums = network.sums(grid)[index]
            deviation = sums.std(0, correction=0)
            layer.weight /= deviation[:, None]
            layer.bias.copy_(shift - sums.mean(0) / deviation)
        for activation, units in zip(channel_prelus(network).values(), self.linear_units(), strict=True):
            activation.set_linear(torch.from_numpy(units))
        return network

    def _stream(self, layer: int) -> int:
        """The first of a layer's three streams of drawn numbers: weights, shifts, order of the units."""
        return 64 + 16 * SEEDS[self.draw - 1] + 3 * layer

    def linear_units(self) -> NDArray[np.bool_]:
        """Which units are linear, (4, 4): one row a hidden layer."""
        linear = np.zeros((DEPTH, WIDTH), dtype=bool)
        for index, row in enumerate(linear):
            order = np.argsort(uniforms(self._stream(index) + 2, WIDTH))
            row[order[: getattr(self, f"layer{index + 1}")]] = True
        return linear

    def paths(self) -> PathLengths:
        """The paths from input to output by their length."""
        return path_lengths(self.network(), torch.zeros(1, 1, dtype=torch.float64))

    def score(self) -> float:
        """The network's NAPL."""
        return self.paths().napl
