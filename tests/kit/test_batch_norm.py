"""Batch norm with the statistics of given inputs."""

import pytest
import torch
from torch import nn

from affscore_book.kit.batch_norm import set_batch_norm


@pytest.fixture
def images():
    return 3 * torch.randn(300, 4, 5, 5, generator=torch.Generator().manual_seed(0)) + 7


def test_statistics_are_those_of_the_parts_and_no_weight_changes(images):
    net = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU())
    before = [value.clone() for value in net.parameters()]
    assert set_batch_norm(net, images.split(100)) is net
    assert not any(module.training for module in net.modules())
    out = net[0](images)
    torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(4), rtol=0, atol=1e-4)
    torch.testing.assert_close(out.std((0, 2, 3)), torch.ones(4), rtol=0.02, atol=0)
    assert all(torch.equal(one, other) for one, other in zip(before, net.parameters(), strict=True))


def test_what_was_there_before_is_forgotten(images):
    once, twice = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
    set_batch_norm(twice, [images + 100])
    for net in (once, twice):
        set_batch_norm(net, [images])
    assert torch.equal(once.running_mean, twice.running_mean)


def test_a_network_without_batch_norm_runs_nothing(images):
    def run(part):
        raise AssertionError("it ran")

    assert not set_batch_norm(nn.Sequential(nn.ReLU()).train(), [images], run).training
