"""What is verified of one network."""

import itertools

import pytest
import torch
from torch import nn

from affscore_study.verified_models.measuring import verify


class Gated(nn.Module):
    """One call on the batch, one gate, and one call on a parameter alone."""

    def __init__(self):
        super().__init__()
        self.linear, self.table = nn.Linear(4, 4), nn.Parameter(torch.randn(4))

    def forward(self, x):
        x = torch.relu(self.linear(x))
        return {"output": [x * torch.sigmoid(self.linear(x)) + torch.tanh(self.table)], "name": "gated"}


def test_every_call_is_counted_scored_or_excluded():
    found = verify(Gated().eval(), torch.randn(5, 4), rounds=3)
    assert found["counted"] == {"relu": 1, "sigmoid": 1, "tanh": 1} and found["parameters"] == 4 * 4 + 4 + 4
    assert found["scored"] == {"relu": 1, "sigmoid": 1} and found["gates"] == 1
    ((function, reason, calls),) = found["excluded"]
    assert (function, calls) == ("tanh", 1) and "parameters and buffers alone" in reason and "(4,)" not in reason
    assert found["identical"] is True and found["time"] > 0


def test_a_call_whose_input_does_not_vary_is_named():
    """The average of what an instance norm gives is its bias."""
    model = nn.Sequential(nn.Conv1d(3, 4, 1), nn.InstanceNorm1d(4), nn.ReLU(), nn.Conv1d(4, 2, 1), nn.Tanh())
    found = verify(model.eval(), torch.randn(5, 3, 7))
    assert found["scored"] == {"relu": 1, "tanh": 1} and found["constant"] == {"relu": 1}
    assert "constant" not in verify(Gated().eval(), torch.randn(5, 4))


def test_call_of_unknown_axis_is_excluded_without_a_warning():
    """A call whose channel axis cannot be known is excluded without a warning."""
    model = nn.Sequential(nn.Conv1d(3, 4, 1), nn.Unflatten(1, (2, 2)), nn.ReLU())
    found = verify(model.eval(), torch.randn(5, 3, 7), rounds=1)
    assert found["scored"] == {} and found["excluded"][0][0] == "relu"


class Then(nn.Sequential):
    """A linear map and a ReLU, and then a function."""

    def __init__(self, function):
        super().__init__(nn.Linear(4, 4), nn.ReLU())
        self.function = function

    def forward(self, x):
        return self.function(super().forward(x))


def test_changed_output_is_found_and_useless_one_refused():
    """An output that changes between runs is found, and one that is constant or not finite is refused."""
    runs = itertools.count()
    assert verify(Then(lambda x: x + next(runs)), torch.randn(5, 4))["identical"] is False
    for function, message in ((lambda x: x / 0, "NaN or infinite"), (lambda x: 0 * x + 1, "nearly the same")):
        with pytest.raises(ValueError, match=message):
            verify(Then(function), torch.randn(5, 4))
