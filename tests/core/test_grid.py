"""Functions on a grid of numbers: which are known, and what no grid can stand for."""

import pytest
import torch
from torch.nn import functional as F

from affscore.calls import Operator
from affscore.grid import GRID, KNOWN, known_name, on_grid

aten = torch.ops.aten
X, SLOPES = torch.randn(4, 3), torch.linspace(0.1, 0.3, 3)


def test_no_two_known_functions_are_taken_for_each_other():
    """Not even up to a positive factor and a constant."""
    x = torch.linspace(-9, 9, 901, dtype=torch.float64)
    columns = [torch.stack([function(x), torch.ones_like(x)], dim=1) for _, function in KNOWN]
    for i, one in enumerate(columns):
        for j, other in enumerate(columns):
            rest = one[:, 0] - other @ torch.linalg.lstsq(other, one[:, :1]).solution[:, 0]
            assert (rest.abs().max() < 1e-9) == (i == j), (KNOWN[i][0], KNOWN[j][0])


@pytest.mark.parametrize(("name", "function"), KNOWN)
def test_known_name_ignores_scale_and_shift(name, function):
    """A known function keeps its name if it is stretched or shifted, but not if its sign is changed."""
    assert known_name(0.3 * function(GRID) - 7) == name
    assert known_name(-function(GRID)) is None and known_name(function(GRID) + GRID.sin()) is None


@pytest.mark.parametrize("slope", [0.01, 0.2, 0.9])
def test_leaky_relus_and_affine_functions_are_known(slope):
    assert known_name(F.leaky_relu(GRID, slope)) == "leaky_relu" and known_name(slope * GRID + 3) == ""
    assert known_name(-slope * GRID) is None and known_name(GRID.clamp(-1e6)) == ""  # beyond the grid


@pytest.mark.parametrize(
    ("operands", "func", "args", "kwargs", "filled", "expected"),
    [
        ([X], aten.mul.Tensor, (X, torch.tensor([2.0])), {}, False, 2 * GRID),
        ([X], aten.mul_.Tensor, (X, 3), {}, False, 3 * GRID),
        ([X], aten.maximum.default, (X, torch.zeros(4, 3)), {}, True, GRID.relu()),
        ([X], aten.maximum.default, (X, torch.zeros(4, 3)), {}, False, None),
        ([X], aten.mul.out, (X, 2.0), {"out": torch.empty(4, 3)}, False, 2 * GRID),
        ([X], aten.mul.Tensor, (X, SLOPES), {}, True, None),  # a slope for each channel
        ([X], aten._prelu_kernel.default, (X, SLOPES[:1]), {}, True, None),  # learned
        ([X], aten.sub.Tensor, (X, X.flip(0)), {}, True, None),  # something else for each sample
        ([X], aten.rrelu_with_noise.default, (X, X, 0.1, 0.3, True), {}, True, None),  # random
        ([X], aten.clamp.Tensor, (X, torch.empty(0), torch.tensor(1.0)), {}, True, None),
    ],
)
def test_operator_runs_on_grid_if_others_are_numbers(operands, func, args, kwargs, filled, expected):
    """An operator is evaluated on the grid if its other operands are numbers."""
    values = on_grid(Operator(func, args, kwargs), operands, filled)([GRID])
    assert values is None if expected is None else torch.equal(values, expected)


def test_the_grid_and_the_operands_stay_as_they_are():
    before, x = GRID.clone(), X.clone()
    on_grid(Operator(aten.relu_.default, (x,), {}), [x], filled=False)([GRID])
    assert torch.equal(GRID, before) and torch.equal(x, X)
