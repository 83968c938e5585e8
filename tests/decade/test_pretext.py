"""Tasks without labels: what their losses know of the images, and the last layer that is fitted afterwards."""

import math
from dataclasses import replace

import pytest
import torch
from striped import stripes
from torch import nn
from torch.nn import functional

from affscore_book.decade.networks import build
from affscore_book.kit.training import Images, accuracy
from affscore_study.decade.pretext import (
    PRETEXTS,
    BarlowTwins,
    RotationTask,
    SimCLR,
    probe,
    views,
)
from affscore_study.decade.training import fit_recipe


def draws(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.weekly  # trains for every task
@pytest.mark.parametrize("task", PRETEXTS)
def test_a_task_teaches_the_network_and_leaves_its_last_layer(data, task):
    torch.manual_seed(0)
    network, images = build("resnet18"), data.train.images[:32]
    last, first = network.fc.weight.clone(), network.conv1.weight.clone()
    pretext = PRETEXTS[task](network, data)
    losses = [pretext.loss(images, draws(seed)).item() for seed in (0, 0, 1)]
    assert losses[0] == losses[1] and (task == "autoencoder" or losses[1] != losses[2])
    history = fit_recipe(pretext, data, epochs=3, seed=0, loss=pretext.loss)
    assert history[-1]["loss"] < 0.97 * history[0]["loss"] and "validation" not in history[0]
    assert pretext.give_back() is network
    assert torch.equal(network.fc.weight, last) and not torch.equal(network.conv1.weight, first)


def test_views_keep_shape_and_range_differ_and_add_no_border():
    images = stripes(50, 0).images
    first, second = views(images, draws(0)), views(images, draws(1))
    assert first.shape == images.shape and first.min() >= 0 and first.max() <= 255
    assert (first - second).abs().flatten(1).mean(dim=1).min() > 1
    seen = views(torch.full((20, 1, 32, 32), 100, dtype=torch.uint8), draws())
    assert seen.flatten(1).std(dim=1).max() < 1e-3 and seen.min() >= 60 and seen.max() <= 140


class Given(nn.Module):
    """A network whose features are given in advance."""

    def __init__(self, features: torch.Tensor) -> None:
        super().__init__()
        self.features, self.fc = features, nn.Linear(features.shape[1], 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.features


def test_simclr_is_the_loss_of_its_equation(data):
    n = 16
    features = torch.randn(2 * n, 8, generator=draws())
    pretext = SimCLR(Given(features), data)
    pretext.head = nn.Identity()
    z = functional.normalize(features)
    terms = []
    for i in range(2 * n):
        others = [math.exp(float(z[i] @ z[k]) / 0.5) for k in range(2 * n) if k != i]
        terms.append(-math.log(math.exp(float(z[i] @ z[(i + n) % (2 * n)]) / 0.5) / sum(others)))
    assert pretext.loss(data.train.images[:n], draws()).item() == pytest.approx(sum(terms) / (2 * n), rel=1e-5)


def test_barlow_twins_loss_vanishes_for_equal_views(data):
    """The loss of Barlow twins vanishes for equal views of uncorrelated features."""
    n = 64
    waves = torch.stack([torch.cos(2 * math.pi * k * torch.arange(n) / n) for k in range(1, 9)], dim=1)
    for second, loss in ((waves, 0), (waves.flip(1), 8 + 0.005 * 8)):
        pretext = BarlowTwins(Given(torch.cat([waves, second])), data)
        pretext.head = nn.Identity()
        assert pretext.loss(data.train.images[:n], draws()).item() == pytest.approx(loss, rel=1e-3, abs=1e-3)


def test_rotation_asks_for_the_turn_that_was_made(data):
    """A network that gives the pixels, and a head that reads the turn off them, has no loss."""

    class Pixels(nn.Module):
        fc = nn.Linear(1, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            corners = torch.stack([x[:, 0, 0, 0], x[:, 0, -1, 0], x[:, 0, -1, -1], x[:, 0, 0, -1]], dim=1)
            return 100 * corners

    images = torch.zeros(40, 1, 32, 32, dtype=torch.uint8)
    images[:, :, 0, 0] = 255  # turned once, against the clock, it is at the lower left
    pretext = RotationTask(Pixels(), data)
    pretext.head = nn.Identity()
    assert pretext.loss(images, draws()).item() == pytest.approx(0, abs=1e-4)


def test_the_last_layer_is_fitted_and_nothing_else(data):
    labels = torch.arange(140) % 10
    images = data.train.images.clone() // 4
    images[torch.arange(140), :, 3 * labels + 1] = 255
    data = replace(data, train=Images(images, labels))
    network = build("resnet18")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    chance = accuracy(network, data, data.train)
    probe(network, data, data.train)
    changed = {name for name, value in network.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"fc.weight", "fc.bias"}
    assert accuracy(network, data, data.train) > max(0.5, chance + 0.2)
