"""Lines in place of activation calls, against closed forms and networks without activations; the stored networks."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from affscore_book.uses.networks import NETWORKS, load_case
from affscore_book.uses.replacing import ChannelLine, calls_of, channel_line, fit_lines, run_replaced, run_watched

DATA = Path(__file__).parents[2] / "book" / "data"


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


def test_line_is_least_squares_of_each_channel(images):
    """A line is NumPy's least squares of each channel, and it is flat where the channel is constant."""
    line = channel_line(images, images.relu(), 1)
    for channel in range(2):
        x, y = (value[:, channel].flatten().numpy() for value in (images, images.relu()))
        slope, offset = np.polyfit(x.astype(float), y.astype(float), 1)
        assert (line.slope[channel].item(), line.offset[channel].item()) == pytest.approx((slope, offset), abs=1e-5)
    x = torch.ones(5, 1)
    assert channel_line(x, x + 1, 1)[:2] == (torch.tensor([0.0]), torch.tensor([2.0]))


def test_calls_are_the_tracers_and_no_line_changes_nothing(network, images):
    """The calls are those of the tracer, and replacing none of them changes nothing."""
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


# ------------------------------------------------------------------------------------------------ the networks


@pytest.mark.parametrize("name", ["resnet20_0", "mlp_late_0.01", "alexnet-1"])
def test_a_network_does_well_on_its_own_labels(name):
    case = load_case(DATA, name)
    answers = run_replaced(case.network, case.held_out[:200], {}).argmax(1)
    assert float((answers == case.labels[:200]).double().mean()) > 0.7


def test_the_decoder_gives_a_row_of_logits_a_byte():
    case = load_case(DATA, "gelu-0")
    assert run_replaced(case.network, case.held_out[:2], {}).shape == (256, 256)


def test_images_to_fit_to_measure_and_to_judge_are_apart():
    case = load_case(DATA, "resnet20_0")
    seen = torch.cat([case.fitted, case.held_out, case.judged]).flatten(1)
    assert len(seen.unique(dim=0)) == len(seen)


def test_no_pilot_is_among_the_networks():
    """No network was a pilot or served to time the code, and an unknown one is refused."""
    assert not {"resnet20_1", "myrtle_without_norm_0"} & NETWORKS.keys()
    assert not [name for name in NETWORKS if name.endswith("-0") and name != "gelu-0"]
    with pytest.raises(ValueError, match="name is 'vgg99'"):
        load_case(DATA, "vgg99")
