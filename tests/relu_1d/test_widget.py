"""The range of inputs that a reader slides: its JavaScript has the numbers and the affine image of Python's."""

import math
from itertools import combinations, product

import numpy as np
import pytest
import torch
import traitlets

from affscore import affine_map
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.relu_1d.exact import PIECEWISE_LINEAR, gaussian_input, uniform_input
from affscore_book.relu_1d.widget import SLOPE, ReluRange

INPUTS = {"uniform": uniform_input, "gaussian": gaussian_input}
EVALUATE = """(m, cases) => cases.map(([law, first, second, name]) =>
  (law === "uniform" ? m.uniformInput : m.gaussianInput)(first, second, name))"""


def widget_cases():
    """Ranges across each kink, in the linear and dead parts, narrow, wide and far out in the tails."""
    ends = sorted([*np.linspace(-5, 5, 6).tolist(), -1.0, -1e-6, 0.0, 1e-9, 0.3, -0.999, 1.001])
    for name in PIECEWISE_LINEAR:
        yield from (("uniform", a, b, name) for a, b in combinations(ends, 2) if a < b)
        means, stds = [*ends, -30.0, -12.0, 25.0, 40.0], (1e-3, 0.05, 0.7, 1.0, 2.5)
        yield from (("gaussian", mean, std, name) for mean, std in product(means, stds))


def test_widget_computes_what_python_computes(node):
    """Every number to 1e-9, relative."""
    cases, scores = list(widget_cases()), []
    for case, got in zip(cases, node(ReluRange._esm, EVALUATE, cases), strict=True):
        law, first, second, name = case
        want = INPUTS[law](first, second, name, slope=0.1)
        ours = [got["r" if field == "correlation" else field] for field in vars(want)]
        theirs = [value.item() for value in vars(want).values()]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-280, err_msg=str(case))
        scores.append(theirs[0])
    assert any(map(math.isnan, scores)) and any(0 < s < 1e-90 for s in scores) and any(s == 1 for s in scores)


@pytest.mark.parametrize("law", INPUTS)
@pytest.mark.parametrize("activation", PIECEWISE_LINEAR)
@pytest.mark.parametrize(("low", "high"), [(-2.0, 3.0), (-5.0, -4.0), (0.5, 1.5), (-0.95, -0.75)])
def test_widget_draws_the_affine_image(node, law, activation, low, high):
    """The line of the page against the map fitted to a fine grid of the law."""
    widget = ReluRange(activation=activation, law=law, low=low, high=high)
    share = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    x = low + (high - low) * (share if law == "uniform" else 0.5 + torch.special.ndtri(share) / 4)
    y = torch.nn.functional.leaky_relu(x, SLOPE) if activation == "leaky_relu" else CATALOGUE[activation](x)
    fitted = affine_map(x, y, covariance="empirical")
    line = [fitted([end]).item() for end in (low, high)]
    drawn = node(ReluRange._esm, "(m, state) => m.image(state, m.evaluate(state))", widget.state())
    assert drawn == pytest.approx(line, abs=2e-3)


def test_widget_ends_push_each_other(node):
    moves = [
        ({"low": -2, "high": 3}, "low", None, [-2, 3]),
        ({"low": 4, "high": 3}, "low", None, [4, 4.2]),
        ({"low": 9, "high": 3}, "low", None, [4.8, 5]),
        ({"low": -2, "high": -4}, "high", None, [-4.2, -4]),
        ({"low": -2, "high": -5}, "high", None, [-5, -4.8]),
        ({"low": 1, "high": 3}, "low", 5, [0, 5]),
        ({"low": -9, "high": 3}, "low", 0.2, [-5, -4.8]),
        ({"low": -1.05, "high": 3}, "low", 0.3, [-1.05, -0.75]),
    ]
    after = node(ReluRange._esm, "(m, moves) => moves.map(([state, ...rest]) => m.settle(state, ...rest))",
                 [move[:3] for move in moves])  # fmt: skip
    for (*_, want), got in zip(moves, after, strict=True):
        assert [got["low"], got["high"]] == pytest.approx(want, abs=1e-12)
        ReluRange(**got)  # Python accepts what a slider can reach


def test_an_end_is_checked_as_it_is_proposed():
    """An end that closes the range is refused and leaves the range as it was; one that opens it is taken."""
    widget = ReluRange(low=-2.0, high=3.0)
    with pytest.raises(traitlets.TraitError, match=r"low is -2.0 and high is -2.5"):
        widget.high = -2.5
    assert (widget.low, widget.high) == (-2.0, 3.0)
    widget.low = 2.5
    widget.high = 2.8
    assert (widget.low, widget.high) == (2.5, 2.8)
    widget = ReluRange(low=-3.0, high=-1.0)  # a dead range has no score
    assert math.isnan(widget.score())
    assert "undefined: the output is constant" in widget.picture() and "score-dot" not in widget.picture()
