"""Lines in place of activation calls, against closed forms and against the same network written without activations."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from affscore_book.uses.replacing import ChannelLine, calls_of, channel_line, fit_lines, run_replaced, run_watched


class Twice(nn.Module):
    """One module in place that runs twice, a functional call and a gate."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.relu = nn.Conv2d(2, 3, 3), nn.Conv2d(3, 3, 3), nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.b(self.relu(self.a(x))))
        return functional.gelu(x).mean((2, 3)) * torch.sigmoid(x.mean((2, 3)))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Twice().eval()


@pytest.fixture
def images():
    return torch.randn(40, 2, 9, 9, generator=torch.Generator().manual_seed(1))


def test_a_line_is_numpys_least_squares_of_each_channel_and_flat_where_one_does_not_vary(images):
    line = channel_line(images, images.relu(), 1)
    for channel in range(2):
        x, y = (value[:, channel].flatten().numpy() for value in (images, images.relu()))
        slope, offset = np.polyfit(x.astype(float), y.astype(float), 1)
        assert (line.slope[channel].item(), line.offset[channel].item()) == pytest.approx((slope, offset), abs=1e-5)
    x = torch.ones(5, 1)
    assert channel_line(x, x + 1, 1)[:2] == (torch.tensor([0.0]), torch.tensor([2.0]))


def test_calls_are_those_of_the_tracer_and_nothing_replaced_changes_nothing(network, images):
    names = [call.name for call in calls_of(network, images)]
    assert names == ["relu:relu[0]", "relu:relu[1]", ":gelu[0]", ":sigmoid[0]"]
    with torch.no_grad():
        assert torch.equal(run_replaced(network, images, {}), network(images))


def test_an_in_place_call_is_replaced_and_no_other(network, images):
    identity = ChannelLine(torch.ones(3), torch.zeros(3), 1)
    with torch.no_grad():
        x = network.relu(network.b(network.a(images)))
        by_hand = functional.gelu(x).mean((2, 3)) * torch.sigmoid(x.mean((2, 3)))
    assert torch.allclose(run_replaced(network, images, {0: identity}), by_hand, atol=1e-6)


def test_lines_are_fitted_to_what_comes_after_earlier_lines(network, images):
    """The second line is that of the network whose first call is a line already."""
    calls = calls_of(network, images)
    together = fit_lines(network, images, calls, [0, 1])
    seen = {}

    def watch(at, x, y):
        if at == 0:
            return together[0](x)
        if at == 1:
            seen.update(x=x, y=y.clone())
        return None

    run_watched(network, images, watch)
    after = channel_line(seen["x"], seen["y"], 1)
    assert torch.allclose(together[1].slope, after.slope, atol=1e-6)
    alone = fit_lines(network, images, calls)
    assert not torch.allclose(together[1].slope, alone[1].slope, atol=1e-3)


def test_the_input_of_a_call_in_place_is_what_it_was_before(network, images):
    seen = {}
    run_watched(network, images, lambda at, x, y: seen.setdefault(at, (x, y)) and None)
    x, y = seen[0]
    assert (x < 0).any()
    assert torch.equal(seen[1][1].relu(), seen[1][1])
    assert y.shape == x.shape
