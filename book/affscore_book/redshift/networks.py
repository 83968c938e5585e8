"""Networks of two inputs and one output, how non-linear their layers are, and what the paper says of eight of them.

A network takes the two coordinates of a pixel and gives its brightness, so its function can be looked at as an image.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 4. The statement on symmetry
(:meth:`Network.rescaled`) is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from affscore.arguments import whole_number
from affscore_book.activations.catalogue import AnyActivation, lookup
from affscore_book.kit.checking import positive

__all__ = ["PANELS", "Network", "grid_points"]


#: The eight panels of the paper's Figure 4: (shift, scale, activation) -> (mean, std) of the scores it quotes.
PANELS = {
    (0.0, 1.0, "relu"): (0.90, 0.04),
    (0.0, 1.0, "tanh"): (0.96, 0.02),
    (0.0, 6.0, "relu"): (0.82, 0.07),
    (0.0, 6.0, "tanh"): (0.73, 0.05),
    (-0.05, 1.0, "relu"): (0.90, 0.05),
    (-0.05, 1.0, "tanh"): (0.96, 0.01),
    (-0.05, 6.0, "relu"): (0.65, 0.10),
    (-0.05, 6.0, "tanh"): (0.74, 0.05),
}


def grid_points(n: int = 32) -> Tensor:
    """The points of an n x n grid on [-1, 1]^2, ``linspace(-1, 1, n)`` both ways, float64, (n * n, 2), row by row.

    Raises ValueError if n < 2.

    >>> grid_points(2).tolist()
    [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    """
    whole_number("grid", n, 2)
    line = torch.linspace(-1, 1, n, dtype=torch.float64)
    return torch.cartesian_prod(line, line)


@dataclass(frozen=True, eq=False)
class Network:
    """A fully connected network without its activation, so that one draw can be tried with any activation.

    Attributes
    ----------
    weights
        One float64 matrix of shape (fan_out, fan_in) a layer, the output layer last.
    biases
        One float64 vector of shape (fan_out,) a layer.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    def __repr__(self) -> str:
        sizes = [self.weights[0].shape[1], *(len(bias) for bias in self.biases)]
        return f"Network({' -> '.join(map(str, sizes))})"

    def hidden(self, points: Tensor, activation: AnyActivation) -> list[tuple[Tensor, Tensor]]:
        """The inputs and outputs of every hidden activation: pairs of float64 tensors of shape (m, width).

        ``points`` has shape (m, fan_in).
        """
        sigma = lookup(activation)
        calls, value = [], points.to(torch.float64)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            before = value @ weight.T + bias
            value = sigma(before)
            calls.append((before, value))
        return calls

    def __call__(self, points: Tensor, activation: AnyActivation) -> Tensor:
        """The outputs for points of shape (m, fan_in): float64, shape (m,) if there is one output."""
        last = self.hidden(points, activation)[-1][1]
        return (last @ self.weights[-1].T + self.biases[-1]).squeeze(-1)

    def rescaled(self, c: float, *, biases: bool) -> Network:
        """All weights times ``c`` > 0. With ``biases=True`` the biases of layer l = 1, ..., L are times ``c**l``.

        Then, for ReLU and every other positively homogeneous activation, the network's function is ``c**L`` times
        what it was, and no layer score changes.

        >>> weights = torch.eye(2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.float64)
        >>> net, x = Network(weights, (weights[0][0], weights[1][0, :1])), grid_points(4)
        >>> torch.allclose(net.rescaled(2.0, biases=True)(x, "relu"), 2**2 * net(x, "relu"), rtol=1e-12)
        True
        """
        positive("c", c)
        moved = tuple(c**layer * bias for layer, bias in enumerate(self.biases, start=1))
        return Network(tuple(c * weight for weight in self.weights), moved if biases else self.biases)
