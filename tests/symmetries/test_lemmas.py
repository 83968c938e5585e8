"""The paper's small statements hold where they should, and the checks of them can fail."""

import pytest
import torch

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.symmetries.lemmas import (
    distinct_rays,
    keeps_axes,
    passes,
    sample_kinds,
    slope_gap,
    unit_values,
)
from affscore_book.symmetries.table import intertwiner

KINDS = list(sample_kinds(3, 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_theorem_3_3_both_ways(kind, n):
    """Rays and values decide alike, and only elements of the group keep the axes; ``contains`` is a third judge."""
    for seed in range(10):
        a = sample_kinds(n, seed)[kind]
        assert torch.linalg.det(a).abs() > 1e-9
        assert keeps_axes(a) == passes("relu", a) == intertwiner("relu").contains(a) == (kind == KINDS[0])


def test_axes_kept_in_another_order_and_size_but_not_turned_over():
    assert keeps_axes(torch.tensor([[0.0, 3.0], [0.5, 0.0]]))
    assert not keeps_axes(torch.tensor([[0.0, -3.0], [0.5, 0.0]]))
    assert not keeps_axes(torch.tensor([[1.0, 1e-3], [0.0, 1.0]]))
    assert not keeps_axes(torch.tensor([[1.0, 1.0], [0.0, 0.0]]))  # two columns on one ray


def test_only_rays_along_axes_have_finite_orbits():
    elements = torch.stack([intertwiner("relu").sample(4, seed) for seed in range(60)])
    for axis in torch.eye(4):
        assert distinct_rays(elements, axis) == distinct_rays(elements, -axis) == 4
    assert distinct_rays(elements, torch.tensor([1.0, -2.0, 0.0, 0.0])) == 60


def test_what_passes_is_what_the_groups_hold():
    for name in ("tanh", "gaussian", "square", "gelu"):
        group = intertwiner(name)
        assert passes(name, group.sample(3, 1))
        assert passes(name, sample_kinds(3, 1)["element of G_ReLU"]) == (name == "square")
    with pytest.raises(ValueError, match="singular"):
        passes(torch.ones_like, torch.eye(2))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_lemma_e_7_by_two_numbers_and_by_singular_values(n):
    for sigma, right in (
        (torch.relu, True),
        (torch.ones_like, False),
        (lambda x: n * x - 1, False),  # sigma(1) = n - 1 = -(n - 1) sigma(0)
        (lambda x: (n + 0.5) * x - 1, True),
        (torch.cos, True),
    ):
        assert unit_values(sigma, n) == (right, right)
    for name in CATALOGUE:
        by_lemma, found = unit_values(name, n)
        assert by_lemma == found


def test_lemma_e_12_sees_scalings_that_do_not_pass():
    for name in ("relu", "tanh", "gaussian", "cube", "silu"):
        a = intertwiner(name).sample(4, 0)
        assert slope_gap(name, a, intertwiner(name).phi(a)) < 1e-12
    a = torch.diag(torch.tensor([2.0, 1.0]))
    assert slope_gap("tanh", a, a) > 0.1
    assert slope_gap("square", a, a) > 0.1  # phi is the square of a
    assert slope_gap("heaviside", a, torch.eye(2)) == 0


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="n is 1"):
        sample_kinds(1, 0)
