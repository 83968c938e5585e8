"""The detector finds planted groups, agrees with the table, and says when it cannot tell."""

import math

import pytest
import torch
from through_activations import gap, wide
from torch import nn

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.symmetries.detector import find_intertwiner, violations
from affscore_book.symmetries.groups import GeneralLinear, Monomial
from affscore_book.symmetries.table import intertwiner


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_detector_agrees_with_the_table(name):
    finding = find_intertwiner(CATALOGUE[name])
    assert finding.group == intertwiner(name), finding


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: -7 * x, GeneralLinear()),
        (lambda x: 3 * x + 1, GeneralLinear("affine")),
        (lambda x: 0 * x - 2, GeneralLinear("constant")),
        (lambda x: 1e-20 * x.clamp(min=0), Monomial("positive")),
        (lambda x: 1e20 * x.clamp(max=0), Monomial("positive")),
        (lambda x: torch.where(x > 0, x, 0.9999 * x), Monomial("positive")),
        (lambda x: x.abs() ** 2.5, Monomial("positive", flip=1, degree=2.5)),
        (lambda x: x**99, Monomial("positive", flip=-1, degree=99)),
        (lambda x: torch.where(x > 0, 2 * x**2, -3 * x**2), Monomial("positive", degree=2)),
        (lambda x: (x >= 0).double(), Monomial("positive", degree=0)),
        (lambda x: x.clamp(-500, 500), Monomial("one", flip=-1)),
        (lambda x: x**2 + 1e-2 * x**4, Monomial("one", flip=1)),
        (lambda x: x**2 + x**3, Monomial("one")),
        (lambda x: torch.floor(x), Monomial("one")),
        (lambda x: torch.where(x == 0, 7.0, x**2), Monomial("one", flip=1)),
        (lambda x: x.clamp(min=0) + 1e-3, Monomial("one")),
        (lambda x: nn.functional.softplus(x, beta=1000), Monomial("one")),
    ],
)
def test_the_detector_finds_planted_groups(function, expected):
    assert find_intertwiner(function).group == expected


def test_one_counter_example_is_enough_on_any_domain():
    assert find_intertwiner("sigmoid", domain=(-0.5, 0.5)).group == Monomial("one")


def test_affine_functions_have_a_group_of_their_own():
    """x + 1 is not linear, and a matrix that mixes channels passes through it: an exception to Theorem E.14."""
    group = find_intertwiner(lambda x: x + 1).group
    a = group.sample(4, 0)
    assert "sums to 2" in group.why_not(a + torch.eye(4))
    assert gap(lambda x: 3 * x - 2, a, group.phi(a), wide(4)) < 1e-10


@pytest.mark.parametrize(
    ("function", "options", "reason"),
    [
        (lambda x: x.clamp(0, 6), {"domain": (-2, 2)}, "only a domain of"),
        (torch.tanh, {"domain": (-5, 5)}, "only a domain of"),
        (torch.relu, {"domain": (0, 1000)}, "not on both sides of 0"),
        (torch.sqrt, {}, "NaN at x = -"),
        (lambda x: 1 / x, {}, "is inf at 0"),
        (lambda x: torch.where(x.abs() < 1e-5, math.inf, x), {}, "is inf"),
        (lambda x: torch.where(x.abs() < 0.01, torch.where(x == 0, 0.0, math.inf), x), {}, "infinite at x ="),
        (lambda x: torch.relu(x) + 1e-3 * torch.rand_like(x), {}, "random"),
        (lambda x: x - x.flatten()[0], {}, "does not work entry by entry"),
        (nn.Softmax(dim=-1), {}, "does not work entry by entry"),
        (lambda x: torch.relu(x) * (1 + 1e-6 * torch.sin(1e12 * x)), {}, "noisy"),
        (lambda x: 1.1 * torch.relu(x.float()), {}, "noisy"),
        (lambda x: torch.relu(x) * (1 + 1e-8 * torch.tanh(x)), {}, "neither below"),
    ],
)
def test_the_detector_says_when_it_cannot_tell(function, options, reason):
    finding = find_intertwiner(function, **options)
    assert finding.group is None and reason in finding.reason


def test_the_detector_names_bad_arguments():
    with pytest.raises(ValueError, match=r"domain is \(1, -1\)"):
        find_intertwiner("relu", domain=(1, -1))
    with pytest.raises(ValueError, match="it should keep the shape"):
        find_intertwiner(lambda x: x.sum())
    with pytest.raises(ValueError, match="factors holds 0"):
        violations("relu", [0.0])


def test_violations_are_zero_on_the_group_only():
    factors = torch.tensor([-3.0, -1.0, -0.5, 0.2, 1.0, 1.5, 40.0])
    assert violations("relu", factors).le(1e-12).tolist() == [False, False, False, True, True, True, True]
    assert violations("tanh", factors).le(1e-12).tolist() == [False, True, False, False, True, False, False]
    assert violations("square", factors).le(1e-12).all()
    assert violations("relu", 7.0) == violations("relu", 1 / 7.0) == 0
