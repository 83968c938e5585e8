"""Random networks as in the paper's Figure 4, with the scores of their layers and their outputs as images.

*   :func:`random_network` draws a network, and :func:`layer_scores` returns the affinity score of every hidden
    activation over a grid of inputs.
*   ``draw="published"`` repeats the numbers of the paper's draws, in which the networks with large and with small
    weights are different draws. ``draw="paired"`` rescales one draw, so that only the scale differs.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore.arguments import check_choice, whole_number
from affscore.score import affinity_score
from affscore_book.activations.catalogue import AnyActivation
from affscore_book.kit.checking import positive
from affscore_book.redshift.networks import Network, grid_points

__all__ = ["PUBLISHED_SEED", "image_of", "layer_scores", "measured", "random_network", "sigmoid_twin"]

#: The seed of the paper's Figure 4.
PUBLISHED_SEED = 472907


def random_network(
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    seed: int,
    draw: str = "published",
    depth: int = 3,
) -> Network:
    """A random network with two inputs and one output, as in the paper's Figure 4.

    With ``a = sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio 2010) and ``t = shift``, weights are uniform between
    ``scale * (-a + t)`` and ``scale * (a + t)``, and biases between -1 and 1. This is the code of the paper; its
    caption has ``scale * (-a - t)``.

    Parameters
    ----------
    scale, shift
        The factor of the weights, > 0, and the shift t of their bounds.
    seed
        The seed of the draw. The global random state is unchanged.
    draw
        ``"published"`` uses float32 numbers from torch's generator in the order of the paper's experiment, in which a
        network with a scale other than 1 is the *second* one drawn after seeding. ``"paired"`` uses one draw for all
        scales and shifts; at scale 1 it is the published one, up to the rounding of float32.
    depth
        The number of hidden layers, at least 1. Each has 40 units.

    Raises
    ------
    ValueError
        If ``scale`` or ``depth`` is out of range, or ``draw`` is unknown.

    >>> random_network(seed=0)
    Network(2 -> 40 -> 40 -> 40 -> 1)
    """
    positive("scale", scale)
    whole_number("depth", depth, 1)
    check_choice("draw", draw, ("published", "paired"))
    sizes = [2, *[40] * depth, 1]
    glorot = [math.sqrt(6 / (fan_in + fan_out)) for fan_in, fan_out in itertools.pairwise(sizes)]
    bounds = [(-a + shift, a + shift) for a in glorot]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if draw == "published":
            if scale != 1:
                _uniform(sizes, bounds, 1.0)
            return _uniform(sizes, bounds, scale)
        unit = _uniform(sizes, [(-1.0, 1.0)] * len(bounds), 1.0)
    middles = [(scale * (low + high) / 2, scale * (high - low) / 2) for low, high in bounds]
    weights = (middle + half * weight for (middle, half), weight in zip(middles, unit.weights, strict=True))
    return Network(tuple(weights), unit.biases)


def _uniform(sizes: list[int], bounds: list[tuple[float, float]], scale: float) -> Network:
    """A network drawn from torch's CPU generator, whose numbers are used in the order of the paper's experiment."""
    # The default initialisation of all layers comes first and also uses random numbers.
    layers = [nn.Linear(n, m, dtype=torch.float32, device="cpu") for n, m in itertools.pairwise(sizes)]
    with torch.no_grad():
        for layer, (low, high) in zip(layers, bounds, strict=True):
            layer.weight.uniform_(scale * low, scale * high)
            layer.bias.uniform_(-1.0, 1.0)
    weights = tuple(layer.weight.detach().to(torch.float64) for layer in layers)
    return Network(weights, tuple(layer.bias.detach().to(torch.float64) for layer in layers))


def layer_scores(activation: AnyActivation, *, covariance: str = "ledoit_wolf", grid: int = 32, **draw: Any) -> Tensor:
    """The affinity scores of the hidden activations of a random network over a grid of inputs, shape (depth,).

    Parameters
    ----------
    activation
        A name in :data:`affscore_book.activations.catalogue.CATALOGUE`, an ``ActivationFunction``, or a function of a
        tensor.
    covariance
        As in :func:`affscore.affinity_score`. The first layer needs care: its inputs lie in a plane.
    grid
        The number of points in each direction, at least 2. The paper uses 32, so n = 1024 samples.
    draw
        The arguments of :func:`random_network`.

    Returns
    -------
    Tensor
        float64; NaN for a layer whose output is constant.

    Raises
    ------
    ValueError
        If an argument is out of range or unknown.

    >>> [round(score, 2) for score in layer_scores("relu", seed=PUBLISHED_SEED, grid=8).tolist()]
    [0.86, 0.94, 0.9]
    """
    calls = random_network(**draw).hidden(grid_points(grid), activation)
    return torch.stack([affinity_score(x, y, covariance=covariance) for x, y in calls])


def image_of(network: Network, activation: AnyActivation, *, grid: int = 32) -> Tensor:
    """The network's outputs over a grid as an image, float64 of shape (grid, grid).

    :func:`affscore_book.redshift.networks.grid_points` returns the grid.

    >>> image_of(random_network(seed=0), "tanh", grid=5).shape
    torch.Size([5, 5])
    """
    return network(grid_points(grid), activation).reshape(grid, grid)


def measured(
    measures: Mapping[str, Callable[[Any], float]], panel: tuple[float, float, str], draws: int
) -> dict[str, np.ndarray]:
    """The measures of the images of one panel, each of shape (draws,), for the paired draws with seeds 0, 1, 2, ..."""
    shift, scale, activation = panel
    nets = (random_network(scale=scale, shift=shift, seed=seed, draw="paired") for seed in range(draws))
    images = [image_of(net, activation) for net in nets]
    return {name: np.array([measure(image) for image in images]) for name, measure in measures.items()}


def sigmoid_twin(network: Network) -> Network:
    """The network that computes the same function with the sigmoid as ``network`` with tanh.

    Since tanh(x) = 2 sigmoid(2 x) - 1, the weights of the first and of the output layer are multiplied by 2 and those
    between by 4. The -1 is added to the biases.

    >>> net, x = random_network(seed=0), grid_points(4)
    >>> torch.allclose(sigmoid_twin(net)(x, "sigmoid"), net(x, "tanh"), rtol=1e-12)
    True
    """
    weights, biases, last = [], [], len(network.weights) - 1
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        outwards = 1 if layer == last else 2  # the argument of the next sigmoid is doubled
        inwards = 1 if layer == 0 else 2  # the values before are 2 sigmoid - 1
        weights.append(outwards * inwards * weight)
        biases.append(outwards * (bias - (weight.sum(1) if layer else 0)))
    return Network(tuple(weights), tuple(biases))
