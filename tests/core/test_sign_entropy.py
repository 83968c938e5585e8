"""The entropy of the sign of an activation's input, against SciPy's entropy and its own symmetries."""

import pytest
import torch
from grids import each
from scipy import stats

from affscore.companions import sign_entropy


@pytest.fixture
def x():
    noise = torch.randn(200, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    return noise + torch.tensor([0, 1, -2])[:, None, None]


def test_it_is_the_mean_of_scipys_entropies(x):
    shares = (x > 0).double().mean((0, 2, 3))
    truth = sum(stats.entropy([p, 1 - p], base=2) for p in shares.tolist()) / 3
    assert sign_entropy(x) == pytest.approx(truth)


def test_only_the_sign_counts(x):
    assert sign_entropy(1e3 * x**3) == sign_entropy(x)


def test_channels_may_lie_along_any_axis(x):
    assert sign_entropy(x.movedim(1, -1), axis=-1) == pytest.approx(sign_entropy(x))


def test_it_is_0_where_relu_is_a_line_and_1_where_half_the_inputs_cross():
    assert sign_entropy(torch.ones(9, 2)) == 0
    assert sign_entropy(torch.tensor([[1.0], [-1.0]])) == 1


@each("wrong", [torch.ones(3), torch.ones(0, 2), torch.tensor([[float("nan")]])])
def test_what_has_no_entropy_is_refused(wrong):
    with pytest.raises(ValueError, match="before"):
        sign_entropy(wrong)
