"""The paper's small statements hold where they should, and the checks of them can fail."""

import pytest
import torch

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.symmetries.table import intertwiner
from affscore_study.symmetries.lemmas import (
    distinct_rays,
    ignored_draws,
    keeps_axes,
    least_eigenvalue,
    others_passing,
    passes,
    sample_kinds,
    slope_gap,
    unit_values,
)

KINDS = list(sample_kinds(3, 0))


@pytest.mark.parametrize("name", ["relu", "tanh", "gaussian", "cube"])
def test_matrices_outside_fail_and_a_small_group_is_found(name):
    """No matrix outside of a group passes, and a group that is too small is found out."""
    group = intertwiner(name)
    assert others_passing(name, group) == 0
    assert others_passing(name, intertwiner("gelu")) > 0, "gelu has permutations only"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 5])
def test_theorem_3_3_both_ways(kind, n):
    """Rays and values decide alike, and only elements of the group keep the axes; ``contains`` is a third judge."""
    for seed in range(10):
        a = sample_kinds(n, seed)[kind]
        assert torch.linalg.det(a).abs() > 1e-9
        assert keeps_axes(a) == passes("relu", a) == intertwiner("relu").contains(a) == (kind == KINDS[0])


def test_only_rays_along_axes_have_finite_orbits():
    elements = torch.stack([intertwiner("relu").sample(4, seed) for seed in range(60)])
    for axis in torch.eye(4):
        assert distinct_rays(elements, axis) == distinct_rays(elements, -axis) == 4
    assert distinct_rays(elements, torch.tensor([1.0, -2.0, 0.0, 0.0])) == 60


@pytest.mark.parametrize("n", [2, 7])
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


def unit(x, centred):
    x = x - x.mean(0) if centred else x
    return x / x.norm(dim=0)


def paired(x, y):
    """A measure that no order of the channels changes: the distances between samples of the one and of the other."""
    return float((torch.cdist(x, x) * torch.cdist(y, y)).mean())


def test_lemma_5_1_needs_translations():
    """Norms give scalings, distances give permutations; without centring a shift is seen, with it none is."""
    printed, repaired = ((lambda x, y, c=c: paired(unit(x, c), unit(y, c))) for c in (False, True))
    assert ignored_draws(printed, translations=False) == 10 and ignored_draws(printed, translations=True) == 0
    assert ignored_draws(repaired, translations=False) == ignored_draws(repaired, translations=True) == 10
    assert ignored_draws(paired, translations=False) == 0  # sees scalings
    assert ignored_draws(lambda x, y: float(unit(x, True)[0, 0]), translations=False) < 10  # sees the order


@pytest.mark.parametrize("p", [1, 1.5, 2, 2.5, 3, 4, 8])
def test_norms_beyond_2_give_kernels_that_are_not_positive(p):
    assert (least_eigenvalue(p) > 0) == (p <= 2)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="n is 1"):
        sample_kinds(1, 0)
    with pytest.raises(ValueError, match="singular"):
        passes(torch.ones_like, torch.eye(2))
