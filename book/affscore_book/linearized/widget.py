"""The widget of the chapter on linearised networks: hidden units of a small network become linear."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import torch
import traitlets
from numpy.typing import NDArray
from torch import Tensor, nn

from affscore_book.kit.affinity1d import uniforms
from affscore_book.kit.picture import LOOKS, Panel, picture
from affscore_book.kit.widgets import ComputedWidget
from affscore_book.linearized.paths import PathLengths, path_lengths
from affscore_book.linearized.slopes import ChannelPReLU, channel_prelus

__all__ = ["LinearizedNetwork", "SmallNetwork"]

Array = NDArray[np.float64]

# The same numbers stand in linearized_network.js.
DEPTH, WIDTH, REACH, GRID = 4, 4, 3.0, 61
# Of 200 draws, eight whose function turns often, whatever the connections, and keeps its size within a factor of 15
# while the units of all layers become linear together.
SEEDS = (98, 14, 42, 108, 116, 157, 60, 118)
NAMES = {
    "plain": "none",
    "skip_each": "a skip over each layer",
    "skip_all": "one skip over all layers",
    "concatenate": "concatenation",
}


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

    Raises
    ------
    traitlets.TraitError
        If one of them is not.

    >>> widget = LinearizedNetwork(connections="skip_all", layer2=1)
    >>> round(widget.score(), 3)        # NAPL: half of all walks take the skip, a quarter of the rest a linear unit
    1.875
    """

    _esm = Path(__file__).with_name("linearized_network.js")
    _css = Path(__file__).with_name("linearized_network.css")

    connections = traitlets.Enum(list(NAMES), default_value="skip_all").tag(sync=True)
    draw = traitlets.Int(1, min=1, max=len(SEEDS)).tag(sync=True)
    layer1 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)
    layer2 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)
    layer3 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)
    layer4 = traitlets.Int(0, min=0, max=WIDTH).tag(sync=True)

    @torch.no_grad()
    def network(self, linear: bool = True) -> SmallNetwork:
        """The network of the present state; with ``linear=False``, all its units are ReLUs."""
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
        if linear:
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

    def pieces(self, linear: bool = True) -> tuple[Array, Array, Array]:
        """Points x between which the function is linear, its values there, and those of x where the slope changes.

        The points are the ends of [-3, 3] and the zeros of the inputs of all non-linear units.
        """
        network = self.network(linear)
        x = torch.tensor([-REACH, REACH], dtype=torch.float64)
        for index, activation in enumerate(channel_prelus(network).values()):
            with torch.no_grad():
                sums = network.sums(x[:, None])[index][:, activation.weight != 1]
            left, right = sums[:-1], sums[1:]
            between, unit = (left * right < 0).nonzero(as_tuple=True)
            share = left[between, unit] / (left - right)[between, unit]
            x = torch.cat([x, x[between] + share * x.diff()[between]]).sort().values
        middles = ((x[1:] + x[:-1]) / 2)[:, None].requires_grad_()
        (slope,) = torch.autograd.grad(network(middles).sum(), middles)
        slopes = slope.flatten()
        kinks = x[1:-1][slopes.diff().abs() > 1e-9 * slopes.abs().max()]
        with torch.no_grad():
            return x.numpy(), network(x[:, None]).flatten().numpy(), kinks.numpy()

    def paths(self) -> PathLengths:
        """The paths from input to output by their length."""
        return path_lengths(self.network(), torch.zeros(1, 1, dtype=torch.float64))

    def score(self) -> float:
        """The network's NAPL."""
        return self.paths().napl

    def fallback(self) -> str:
        """The picture for the present state."""
        linear, paths = self.linear_units(), self.paths()
        bars = Panel(
            label="The weight of the paths by the number of ReLUs on them", xlim=(-0.5, DEPTH + 0.9),
            ylim=(0, 1.3), xlabel="ReLUs on a path", ylabel="weight of the paths",
            legend=[("input-curve", "APL"), ("image-line", "NAPL")], height=200,
        )  # fmt: skip
        for look, dot, name, aside, mean, height in (
            ("input-curve", "input-dot", "APL", -0.1, paths.apl, 1.22),
            ("image-line", "image-dot", "NAPL", 0.1, paths.napl, 1.1),
        ):
            shares = paths.shares(name.lower())
            upright = np.stack([0 * shares, np.where(shares > 0, shares, np.nan), np.nan * shares], 1)
            bars.line(look, np.repeat(np.arange(len(shares)) + aside, 3), upright.ravel())
            bars.dot(dot, mean, height)
            bars.write("label", bars.x_at(mean + 0.15), bars.y_at(height - 0.035), name)
        (x, y, kinks), (full_x, full_y, full_kinks) = self.pieces(), self.pieces(linear=False)
        function = Panel(
            label="The function that the network computes", xlim=(-REACH, REACH),
            ylim=limits(np.concatenate([y, full_y])), xlabel="input x", ylabel="f(x)",
            legend=[("input-curve", "now"), ("curve", "all ReLU")],
        )  # fmt: skip
        function.add('<circle class="bound-dot" fill="#7a5c00" cx="228" cy="12" r="4"/>')
        function.write("label", 238, 16, "kink")
        function.line("input-curve", x, y)
        function.line("curve", full_x, full_y)
        for kink in kinks:
            function.dot("bound-dot", kink, y[x == kink][0], radius=4)
        text = (
            f"{paths.paths.sum()} paths; {(~linear).sum()} of {DEPTH * WIDTH} units are ReLUs; "
            f"linear pieces: {len(kinks) + 1}, with ReLU everywhere {len(full_kinks) + 1}"
        )
        return picture(
            _Graph(self.connections, linear), function, bars, score=paths.napl, text=text,
            headline=f"APL {paths.apl:.3f}, NAPL {paths.napl:.3f}",
        )  # fmt: skip


def limits(values: Array) -> tuple[float, float]:
    """Limits that hold all values and seldom change while a slider moves: multiples of a power of two.

    >>> limits(np.array([-0.9, 0.9]))
    (-1.125, 1.125)
    """
    low, high = float(values.min()), float(values.max())
    step = 2.0 ** math.ceil(math.log2(high - low)) / 4
    return (math.floor(low / step) - 0.25) * step, (math.ceil(high / step) + 0.25) * step


COLUMNS = (18, 75, 137, 199, 261, 324)  # of the input, the hidden layers and the output
ROWS = (68, 102, 136, 170)
MIDDLE = 119


def lines(connections: str) -> tuple[str, str, list[tuple[int, int]]]:
    """Where the graph's lines run, as in JavaScript: texts of the edges and the skips, places of the plus signs."""
    ends = range(1, DEPTH + 1)
    starts = [[(COLUMNS[0] + 6, MIDDLE)]] + [
        [(COLUMNS[layer] + (25 if connections == "skip_each" and layer > 1 else 10), y) for y in ROWS] for layer in ends
    ]
    before_output = COLUMNS[-1] - (26 if connections == "skip_all" else 6)
    stops = [[(COLUMNS[layer] - 10, y) for y in ROWS] for layer in ends] + [[(before_output, MIDDLE)]]
    edges = "".join(
        f"M{x} {y}L{u} {v}" for start, stop in zip(starts, stops, strict=True) for x, y in start for u, v in stop
    )
    skips, plus = "", []
    if connections == "skip_each":
        for layer in range(2, DEPTH + 1):
            x = COLUMNS[layer] + 19
            for start, y in starts[layer - 1]:
                plus.append((x, y))
                edges += f"M{COLUMNS[layer] + 10} {y}L{x - 6} {y}"
                skips += f"M{start} {y}C{COLUMNS[layer] - 20} {y - 22} {x} {y - 22} {x} {y - 6}"
    elif connections == "skip_all":
        x = COLUMNS[-1] - 20
        plus.append((x, MIDDLE))
        edges += f"M{x + 6} {MIDDLE}L{x + 14} {MIDDLE}"
        skips = f"M18 {MIDDLE - 6}C18 2 {x} 2 {x} {MIDDLE - 6}"
    elif connections == "concatenate":
        heights = [MIDDLE - 6] + [ROWS[0] - 10] * DEPTH + [MIDDLE - 6]
        for start, stop in itertools.combinations(range(DEPTH + 2), 2):
            if stop > start + 1:
                x, u, top = COLUMNS[start], COLUMNS[stop], ROWS[0] - 10 - 14 * (stop - start)
                skips += f"M{x} {heights[start]}C{x} {top} {u} {top} {u} {heights[stop]}"
    return edges, skips, plus


class _Graph(Panel):
    """The network: filled circles for ReLUs, hollow ones for linear units."""

    def __init__(self, connections: str, linear: NDArray[np.bool_]) -> None:
        counts = (~linear).sum(1)
        label = (
            f"The network: {DEPTH} hidden layers of {WIDTH} units, extra connections: {NAMES[connections]}. "
            f"ReLUs by layer: {', '.join(map(str, counts))}"
        )
        self._parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 250" width="340" height="250" role="img" '
            f'aria-label="{label}" class="affscore-panel graph">'
            f'<rect class="paper" {LOOKS["paper"]} width="340" height="250" rx="4"/>'
        ]
        edges, skips, plus = lines(connections)
        self.add(f'<path class="edges" fill="none" stroke="#57606a" stroke-width="1" opacity="0.5" d="{edges}"/>')
        self.add(f'<path class="image-line" fill="none" stroke="#d55e00" stroke-dasharray="5 3" d="{skips}"/>')
        for x, y in plus:
            self._hollow(x, y, 6)
            self._mark("mark", x, y, (-3, 0), (3, 0))
            self._mark("mark", x, y, (0, -3), (0, 3))
        for x, name in ((COLUMNS[0], "x"), (COLUMNS[-1], "f(x)")):
            self.add(f'<circle class="end" fill="#57606a" cx="{x}" cy="{MIDDLE}" r="6"/>')
            self.write("label", x, MIDDLE + 24, name, "middle")
        for layer, (x, row, count) in enumerate(zip(COLUMNS[1:-1], linear, counts, strict=True), start=1):
            for y, yes in zip(ROWS, row, strict=True):
                self._unit(x, y, bool(yes))
            self.write("tick", x, 198, f"layer {layer}", "middle")
            self.write("label", x, 214, f"p = {count / WIDTH:g}", "middle")
        self._unit(18, 236, False)
        self._unit(94, 236, True)
        for x, text in ((34, "ReLU"), (110, "linear"), (170, "p: share of ReLUs")):
            self.write("label", x, 240, text)

    def _hollow(self, x: int, y: int, radius: int) -> None:
        self.add(
            f'<circle class="hollow" fill="#ffffff" stroke="#0072b2" stroke-width="2" cx="{x}" cy="{y}" r="{radius}"/>'
        )

    def _mark(self, name: str, x: int, y: int, *points: tuple[int, int]) -> None:
        stroke = "#ffffff" if name == "mark on" else "#1f2328"
        moved = " ".join(f"{x + a},{y + b}" for a, b in points)
        self.add(f'<polyline class="{name}" fill="none" stroke="{stroke}" stroke-width="2" points="{moved}"/>')

    def _unit(self, x: int, y: int, linear: bool) -> None:
        if linear:
            self._hollow(x, y, 10)
            self._mark("mark", x, y, (-5, 4), (5, -4))
        else:
            self.add(f'<circle class="input-dot" {LOOKS["input-dot"]} cx="{x}" cy="{y}" r="10"/>')
            self._mark("mark on", x, y, (-6, 3), (0, 3), (5, -4))
