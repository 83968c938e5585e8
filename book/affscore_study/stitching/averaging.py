"""Averages of the weights of two trained networks, after the channels of one are aligned with the other's by a group.

Two networks with the same activation can be averaged if there is no bad network on the line between their weights. One
of them may be changed first by an element of the group of intertwiners. For ReLU, this group is G_ReLU: permutations
with positive scales. For the identity, that is, a linear network, it has every invertible matrix.

References: Entezari et al., ICLR 2022, and Ainsworth, Hayase, Srinivasa, ICLR 2023 (permutations); Jordan et al., ICLR
2023 (statistics set anew); Theus et al., NeurIPS 2025 (larger groups).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.arguments import check_choice
from affscore_book.kit.tables import Table
from affscore_book.stitching.merging import ALIGNMENTS, Averages
from affscore_book.stitching.moments import hungarian
from affscore_study.symmetries.norms import fold_norm

__all__ = ["Dense", "aligned", "aligning", "average_table", "averaged", "dense", "repaired"]


@dataclass(frozen=True)
class Dense:
    """A multilayer perceptron in float64: hidden layers with LeakyReLU of one slope, and a linear layer.

    Attributes
    ----------
    weights, biases
        One float64 tensor for each layer, of shape (outputs, inputs) and (outputs,).
    slope
        The slope for negative inputs; 0 is ReLU, and 1 is the identity.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    slope: float

    def before(self, images: Tensor) -> list[Tensor]:
        """The inputs of each activation, then the logits, each of shape (n, outputs), for images of shape (n, ...)."""
        x, found = images.double().flatten(1), []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            found.append(x @ weight.T + bias)
            x = functional.leaky_relu(found[-1], self.slope)
        return found

    def hidden(self, images: Tensor) -> list[Tensor]:
        """The hidden features after the activations, each of shape (n, outputs)."""
        return [functional.leaky_relu(x, self.slope) for x in self.before(images)[:-1]]

    def accuracy(self, images: Tensor, labels: Tensor) -> float:
        """The share of the images whose largest logit is at their label, from 0 to 1."""
        return float((self.before(images)[-1].argmax(1) == labels).double().mean())


def dense(network: nn.Module, slope: float) -> Dense:
    """A trained :func:`affscore_book.kit.networks.mlp` whose batch norm is merged into the layers before it."""
    layers = [layer for layer in fold_norm(network) if isinstance(layer, nn.Linear)]
    return Dense(
        tuple(layer.weight.detach().double() for layer in layers),
        tuple(layer.bias.detach().double() for layer in layers),
        slope,
    )


def aligning(kind: str, x: Tensor, y: Tensor, *, least: float = 1e-3) -> Tensor:
    """The matrix (channels, channels) of a kind that brings features ``y`` nearest to ``x``.

    Parameters
    ----------
    kind
        One of :data:`affscore_book.stitching.merging.ALIGNMENTS`.
    x, y
        float64 of shape (n, channels), the features of two networks on the same images.
    least
        For the invertible matrix, variances below this fraction of the largest one are raised to it before whitening,
        so that directions that are mostly noise are not amplified.

    Returns
    -------
    M with ``y @ M.T`` near ``x``. The permutation has the largest sum of correlations. G_ReLU adds the scales that make
    the root mean squares equal. The orthogonal matrix solves Procrustes' problem. The invertible matrix maps the
    covariance of ``y`` to that of ``x``, with the rotation between whitened features that correlates them best
    (canonical correlations).

    Raises
    ------
    ValueError
        If there is no such kind.

    >>> y = torch.randn(100, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> m = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).flip(0)
    >>> bool(torch.allclose(aligning("G_ReLU", y @ m.T, y), m))
    True
    >>> bool(torch.allclose(aligning("invertible", y @ m.T, y, least=0), m))
    True
    """
    check_choice("kind", kind, ALIGNMENTS)
    unit = torch.eye(x.shape[1], dtype=torch.float64)
    if kind == "nothing":
        return unit
    if kind == "orthogonal":
        left, _, right = torch.linalg.svd(x.T @ y)
        return left @ right
    one, other = x - x.mean(0), y - y.mean(0)
    if kind == "invertible":
        (root, _), (_, inverse) = _roots(one, least), _roots(other, least)
        whitened = torch.linalg.solve(root, one.T @ other) @ inverse
        left, _, right = torch.linalg.svd(whitened)
        return root @ left @ right @ inverse
    deviations = [part.norm(dim=0).clamp(min=torch.finfo(torch.float64).tiny) for part in (one, other)]
    correlations = (one / deviations[0]).T @ (other / deviations[1])
    chosen = hungarian(correlations)
    scales = torch.ones(len(chosen), dtype=torch.float64)
    if kind == "G_ReLU":
        sizes, other_sizes = x.norm(dim=0), y.norm(dim=0)[chosen]
        scales = torch.where((sizes > 0) & (other_sizes > 0), sizes / other_sizes, 1.0)
    return scales[:, None] * unit[chosen]


def _roots(centred: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """The symmetric root of n times the covariance of centred features, and its inverse."""
    values, vectors = torch.linalg.eigh(centred.T @ centred)
    values = values.clamp(min=least * values[-1]).sqrt()
    return (vectors * values) @ vectors.T, (vectors / values) @ vectors.T


def aligned(network: Dense, matrices: list[Tensor]) -> Dense:
    """The network with each hidden layer's channels mapped by a matrix, and mapped back by the next layer.

    It computes the same function if the matrices commute with its activation.
    """
    unit = torch.eye(network.weights[0].shape[1], dtype=torch.float64)
    last = torch.eye(network.weights[-1].shape[0], dtype=torch.float64)
    sides = list(pairwise([unit, *matrices, last]))
    return replace(
        network,
        weights=tuple(
            after @ torch.linalg.solve(before, weight, left=False)
            for (before, after), weight in zip(sides, network.weights, strict=True)
        ),
        biases=tuple(after @ bias for (_, after), bias in zip(sides, network.biases, strict=True)),
    )


def averaged(one: Dense, other: Dense) -> Dense:
    """The network in the middle of the straight line from ``one`` to ``other``."""
    return replace(
        one,
        weights=tuple((a + b) / 2 for a, b in zip(one.weights, other.weights, strict=True)),
        biases=tuple((a + b) / 2 for a, b in zip(one.biases, other.biases, strict=True)),
    )


def repaired(merged: Dense, one: Dense, other: Dense, images: Tensor) -> Dense:
    """``merged`` with mean and spread of the inputs of each activation set midway between those of the two networks.

    The average of two channels that differ varies less than either of them. Layer by layer from the first, each channel
    of weights and bias is scaled and shifted. The last layer is unchanged.
    """
    ends = [network.before(images)[:-1] for network in (one, other)]
    weights, biases = list(merged.weights), list(merged.biases)
    for layer, (a, b) in enumerate(zip(*ends, strict=True)):
        now = replace(merged, weights=tuple(weights), biases=tuple(biases)).before(images)[layer]
        mean, spread = (a.mean(0) + b.mean(0)) / 2, (a.std(0) + b.std(0)) / 2
        own = now.std(0)
        scale = torch.where(own > 0, spread / own.clamp(min=torch.finfo(torch.float64).tiny), 1.0)
        weights[layer] = scale[:, None] * weights[layer]
        biases[layer] = mean + scale * (biases[layer] - now.mean(0))
    return replace(merged, weights=tuple(weights), biases=tuple(biases))


def average_table(found: Averages) -> Table:
    """A table of the points of accuracy lost, as means, by activation and alignment.

    They are the losses of the average, of the average with statistics set anew, of the second network alone, and of the
    average with an untrained one.
    """
    columns = {"lost": found.lost, "statistics anew": found.repaired, "the second alone": found.moved,
               "one untrained": found.untrained}  # fmt: skip
    rows = [
        {"activation": name, "before the average": kind}
        | {label: f"{round(float(np.nanmean(part[name][kind])), 1) + 0.0:.1f}" for label, part in columns.items()}
        for name in found.lost
        for kind in found.lost[name]
    ]
    return Table.from_rows(rows)
