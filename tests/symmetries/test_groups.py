"""Intertwiner groups by their definition: elements pass through the activation, others have no partner."""

import itertools

import pytest
import torch
from through_activations import gap, wide

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.symmetries.groups import GeneralLinear, PReLUGroup
from affscore_book.symmetries.table import intertwiner


@pytest.mark.parametrize("name", CATALOGUE)
def test_elements_of_the_group_pass_through_the_activation(name):
    """sigma(A x) = phi(A) sigma(x) on a wide range; and phi is the paper's formula of Lemma 3.1 where that applies."""
    group, sigma = intertwiner(name), CATALOGUE[name]
    for n, seed in ((1, 0), (5, 2)):
        a = group.sample(n, seed)
        b = group.phi(a)
        assert a.shape == b.shape == (n, n) and a.dtype == b.dtype == torch.float64
        assert group.contains(a)
        assert gap(sigma, a, b, wide(n, reach=100.0, seed=seed)) < 1e-10
        unit = sigma(torch.eye(n, dtype=torch.float64))
        if torch.linalg.cond(unit) < 1e6 and not isinstance(group, GeneralLinear):
            torch.testing.assert_close(b, sigma(a) @ torch.linalg.inv(unit), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CATALOGUE)
def test_other_matrices_do_not(name):
    """Rotations, scalings and signs outside the group have no partner at all: least squares leaves a large rest."""
    group, sigma = intertwiner(name), CATALOGUE[name]
    candidates = {
        "rotation": torch.tensor([[0.8, -0.6], [0.6, 0.8]], dtype=torch.float64),
        "scaling": torch.diag(torch.tensor([2.0, 0.3], dtype=torch.float64)),
        "sign": torch.diag(torch.tensor([-1.0, 1.0], dtype=torch.float64)),
        "flipped scaling": torch.diag(torch.tensor([-3.0, 1.0], dtype=torch.float64)),
    }
    x = wide(2, points=2000, reach=30.0)
    for a in candidates.values():
        image, value = sigma(a @ x), sigma(x)
        weight = 1 / (1e-9 + image.abs().amax(0) + value.abs().amax(0))  # every size of x counts
        best = torch.linalg.lstsq((value * weight).T, (image * weight).T).solution.T
        rest = ((image - best @ value) * weight).square().mean().sqrt().item()
        if group.contains(a):
            assert rest < 1e-10
        else:
            assert rest > 1e-4
            with pytest.raises(ValueError, match="a is not in the group"):
                group.phi(a)


@pytest.mark.parametrize(
    "name", ["identity", "relu", "relu_squared", "heaviside", "sign", "abs", "tanh", "gaussian", "sigmoid"]
)
def test_groups_are_groups_and_phi_is_a_homomorphism(name):
    group = intertwiner(name)
    generator = torch.Generator().manual_seed(0)
    a, b = group.sample(4, generator), group.sample(4, generator)
    assert not torch.equal(a, b)
    unit = torch.eye(4, dtype=torch.float64)
    assert group.contains(a @ b) and group.contains(torch.linalg.inv(a)) and group.contains(unit)
    torch.testing.assert_close(group.phi(a @ b), group.phi(a) @ group.phi(b), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(group.phi(unit), unit)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.contains(torch.ones(2, 3)), ValueError, r"a has shape \(2, 3\); it should be \(n, n\)"),
        (lambda g: g.phi([[1.0]]), TypeError, "a is of type list"),
        (lambda g: g.sample(0, 0), ValueError, "n is 0; it should be a whole number of at least 1"),
        (lambda g: g.sample(2, 0, spread=-1.0), ValueError, "spread is -1.0"),
        (lambda g: g.phi(torch.ones(2, 2)), ValueError, "row 0 has 2 entries that are not 0"),
        (lambda g: g.phi(torch.zeros(2, 2)), ValueError, "row 0 is 0"),
        (lambda g: g.phi(torch.tensor([[1.0, 0.0], [1.0, 0.0]])), ValueError, "column 0 has entries in several rows"),
        (lambda g: g.phi(-torch.eye(2)), ValueError, r"the entry -1 at \(0, 0\) is not one of its scalings"),
        (lambda _: GeneralLinear().phi(torch.ones(2, 2)), ValueError, "it is singular"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(intertwiner("relu"))


def test_tolerance_is_relative_and_samples_are_reproducible():
    group = intertwiner("relu")
    a = group.sample(4, 3)
    assert torch.equal(a, group.sample(4, 3)) and not torch.equal(a, group.sample(4, 4))
    assert torch.equal(group.sample(4, 3, spread=0.0).abs().sum(0), torch.ones(4, dtype=torch.float64))
    for scale in (1e-12, 1.0, 1e12):
        assert group.contains(scale * (a + 1e-11)) is bool((1e-9 * a.amax(1) > 1e-11).all())
        assert not group.contains(scale * (a + 1e-6))
    assert group.phi(a.float()).dtype == torch.float32
    assert group.contains((a + 1e-7).float()) and not group.contains(a + 1e-7)


SLOPES = (1.0, 1.0, 2.0, 0.5, 0.5, 2.0, -1.0, 0.0, 0.0, -1.0, 0.25, -4.0, -0.25)


def prelu(slopes):
    values = torch.tensor(slopes, dtype=torch.float64)[:, None]
    return lambda x: x.clamp(min=0) + values * x.clamp(max=0)


@pytest.mark.parametrize("seed", range(3))
def test_prelu_group_passes_through_and_is_a_group(seed):
    group = PReLUGroup(SLOPES)
    generator = torch.Generator().manual_seed(seed)
    a, b = (group.sample(len(SLOPES), generator) for _ in range(2))
    for matrix in (a, a @ b, torch.linalg.inv(a)):
        assert group.contains(matrix), group.why_not(matrix)
        assert gap(prelu(SLOPES), matrix, group.phi(matrix), wide(len(SLOPES), seed=seed)) < 1e-10
    torch.testing.assert_close(group.phi(a @ b), group.phi(a) @ group.phi(b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("entry", [*itertools.product(range(7), range(7), (0.7, -0.7))])
def test_prelu_entries_are_allowed_where_one_channel_allows_them(entry):
    """Each entry by itself, against least squares on one channel: sigma_i(lambda x) = b sigma_j(x)."""
    slopes = (2.0, 0.5, -1.0, 0.0, 1.0, 0.1, 10.0)
    i, j, value = entry
    x = wide(1)
    source, image = (max_ + s * min_ for s, max_, min_ in (
        (slopes[j], x.clamp(min=0), x.clamp(max=0)), (slopes[i], (value * x).clamp(min=0), (value * x).clamp(max=0))
    ))  # fmt: skip
    ratio = (image / source)[source != 0]
    possible = bool(((image == 0) == (source == 0)).all()) and float((ratio - ratio[0]).abs().max()) < 1e-12
    if 1.0 in (slopes[i], slopes[j]):
        assert possible is (slopes[i] == slopes[j])
    else:
        assert (j in PReLUGroup(slopes).partners(i, 1 if value > 0 else -1)) is possible


def test_prelu_errors_name_the_channels():
    group = PReLUGroup((1.0, 0.5, 0.25))
    a = torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"\(2, 2\); this PReLU has 3 channels"):
        group.contains(a[:2, :2])
    with pytest.raises(ValueError, match="n is 4; this PReLU has 3 channels"):
        group.sample(4, 0)
    assert "joins a channel of slope 1 to one of another slope" in group.why_not(a[[1, 0, 2]])
    assert "on the channels of other slopes, row 0 has 2 entries" in group.why_not(a + a[[0, 2, 1]])
    assert "needs equal slopes, and the channels have 0.5 and 0.25" in group.why_not(a[[0, 2, 1]])
    assert "needs slopes whose product is 1" in group.why_not(torch.diag(torch.tensor([1.0, -1.0, 1.0]).double()))
    assert "it is singular" in group.why_not(torch.diag(torch.tensor([0.0, 1.0, 1.0]).double()))
    with pytest.raises(ValueError, match="slopes is"):
        PReLUGroup((torch.nan,))
