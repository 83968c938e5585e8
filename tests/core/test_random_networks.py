"""The channel axis in random networks, against numbers put into the last weight.

In the oracle all weights but the last average, the rows of the last are multiples of one another, and the input is
constant. What is done then keeps constant along an axis what was: matrices that are not learned have rows and columns
of sum 1. So the values vary along the channels of the last layer, and along nothing else.
"""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from affscore.tracing import trace

D = 6  # positions and channels


def small(x):
    """In the range where attention tells rows apart and leaves none alone."""
    return x / x.abs().max()


def moves(x, axis, other):
    """What moves, splits, joins and drops axes of ``x``."""
    yield lambda x: x.transpose(axis, other)
    if x.ndim < 6:
        yield lambda x: x.unsqueeze(axis)
    yield lambda x: x + x.roll(1, -1)
    yield lambda x: torch.stack([x, x.roll(1, -1)], 1).sum(1)
    yield lambda x: torch.stack([x, x], axis).select(axis, 0)
    yield lambda x: x * x.mean(axis, keepdim=True).cos()
    if axis + 1 < x.ndim:
        yield lambda x: x.flatten(axis, axis + 1)
    if x.ndim < 6 and x.shape[axis] == D:
        yield lambda x: x.unflatten(axis, (2, 3))
    if axis and x.ndim > 2:
        yield lambda x: x.mean(axis)
        yield lambda x: x.select(axis, 0)
        yield lambda x: x.narrow(axis, 0, (x.shape[axis] + 1) // 2)
        yield lambda x: torch.cat([x, x], axis)
        if x.shape[axis] > 1 and x.ndim < 6:
            yield lambda x: x.unfold(axis, 2, 1)
    if x.ndim > 2 and x.shape[-1] == x.shape[-2]:
        yield lambda x: x + x.mT
    if x.ndim in (3, 4):
        yield lambda x: F.scaled_dot_product_attention(small(x), small(x), x)
        yield lambda x: (small(x) @ small(x).mT).softmax(-1) @ x


def products(x, mixing):
    """Matrix products: the shape of a weight, none for a matrix that is not learned, and the function."""
    first = len(x)
    if x.shape[-1] == D:
        yield (D, D), lambda x, w: x @ w.mT
        yield (8, D), F.linear
        yield (), lambda x: x @ mixing
        yield (), lambda x: F.linear(x, mixing)
    if x.ndim > 2 and x.shape[-2] == D:
        yield (8, D), lambda x, w: w @ x
        yield (), lambda x: mixing @ x
    if x.ndim == 3 and x.shape[1] == D:
        yield (D, D), lambda x, w: torch.bmm(w.expand(first, D, D), x)
        yield (), lambda x: torch.bmm(mixing.expand(first, D, D), x)
        yield (D, D), lambda x, w: F.conv1d(x, w[:, :, None])
        yield (D, D), lambda x, w: torch.einsum("oc,ncl->nol", w, x)
        yield (D, D), lambda x, w: torch.einsum("ncl,oc->nlo", x, w)
    if x.ndim == 3 and x.shape[2] == D:
        yield (D, D), lambda x, w: torch.baddbmm(0 * x[:, :, :1], x, w.mT.expand(first, D, D))
        if x.shape[1] == D:
            yield (D, D, D), lambda x, w: torch.einsum("ngc,goc->ngo", x, w)
    if x.ndim == 4 and x.shape[1] == D:
        yield (D, D), lambda x, w: F.conv2d(x, w[:, :, None, None])
    if x.ndim == 4 and x.shape[2] == D:
        yield (D, D), lambda x, w: torch.einsum("nacb,oc->naob", x, w)
        yield (), lambda x: torch.einsum("nacb,oc->naob", x, mixing)
    if x.ndim == 4 and x.shape[1] == D == x.shape[3]:
        yield (D, D, D), lambda x, w: torch.einsum("nglc,goc->nglo", x, w)


class Random(nn.Module):
    """Up to six random steps and a ReLU. ``still`` leaves the batch in front."""

    def __init__(self, random, batch, still):
        super().__init__()
        weights = zip(random.dirichlet(np.ones(3)), (random.permutation(D) for _ in range(3)), strict=True)
        self.register_buffer("mixing", torch.tensor(sum(weight * np.eye(D)[order] for weight, order in weights)))
        self.weights, self.steps = nn.ParameterList(), []
        self.input = torch.ones([batch, *[D] * random.integers(2, 4)], dtype=torch.float64)
        x = self.input
        for _ in range(random.integers(1, 7)):
            axis, other = (int(random.integers(still, x.ndim)) for _ in range(2))
            options = [*products(x, self.mixing)]
            if not options or random.integers(2):
                options = [((), step) for step in moves(x, axis, other)]
            shape, step = options[random.integers(len(options))]
            if shape:
                self.weights.append(nn.Parameter(torch.randn(shape, dtype=torch.float64)))
                step = partial(self.learned, step, len(self.weights) - 1)
            with torch.no_grad():
                x = step(x)
            self.steps.append(step)

    def learned(self, step, number, x):
        return step(x, self.weights[number])

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x.relu()


def numbered(network):
    """The output where the last weight numbers its channels, and where only the second sample is not 0."""
    for weight in network.weights:
        weight.fill_(1 / weight.shape[-1])
    for weight in network.weights[-1:]:
        for axis in range(weight.ndim - 1):
            weight.transpose(axis, -1).mul_(1 + 0.1 * torch.arange(weight.shape[axis]) ** 1.5)
    only = torch.zeros_like(network.input)
    only[1] = 0.1
    return network(0.1 * network.input), network(only)


def check(random, batch, still):
    """What trace says of a random network: True and right, False if it refuses, None if there is nothing to say."""
    network = Random(random, batch, still)
    with torch.no_grad():
        x = torch.randn_like(network.input)
        with trace(network, batch) as found:
            network(x)
        values, alone = numbered(network)
    if not found.observations:
        return False
    (seen,) = found.observations
    elsewhere = [d for d in range(1, alone.ndim) if (alone.movedim(d, 0).flatten(1).any(1)).sum() == 1 < alone.shape[d]]
    assert not elsewhere, "the batch is not in front"
    if sum(length > 1 for length in values.shape[1:]) < 2:
        return None
    least = 1e-12 * values.abs().max()
    varying = [d for d in range(1, values.ndim) if (values - values.narrow(d, 0, 1)).abs().max() > least]
    assert network.weights and varying == [seen.call.channel_axis]
    return True


@pytest.mark.parametrize("seed", range(8))
def test_channels_of_random_networks_follow_last_weight(seed):
    """In random networks, the channels lie on the axis where the last weight put them."""
    random = np.random.default_rng(seed)
    settings = [(4, True), (4, True), (4, False), (D, False)]  # the batch is as long as the other axes in the last
    found = [check(random, *setting) for setting in settings * 12]
    assert found.count(True) >= 12  # of 48: some are vectors, and of many the channels are spread: refused
