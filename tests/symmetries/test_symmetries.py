"""Intertwiner groups by their definition, the detector on planted functions, and networks that keep their function."""

from __future__ import annotations

import copy
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate, special
from torch import nn

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.networks import myrtle, resnet20
from affscore_book.symmetries import exercises
from affscore_book.symmetries.action import (
    act,
    fold_norm,
    hidden_layers,
    homogeneity_gap,
    homogeneity_slope,
    interval,
    invariant_draws,
    load_rotations,
    mix_channels,
    random_rotation,
    sample_action,
    scale_before_norm,
    splice,
)
from affscore_book.symmetries.groups import (
    GeneralLinear,
    Monomial,
    PReLUGroup,
    defect,
    find_intertwiner,
    intertwiner,
    passing,
    violations,
)
from affscore_book.symmetries.widget import ORDERS, HiddenAction

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "book" / "data"
ROTATIONS = DATA / "symmetries" / "rotations.json"


def wide(n, points=400, reach=1e3, seed=0):
    """Columns with coordinates of either sign from 1e-4 to ``reach``, uniform in the logarithm, (n, points)."""
    random = np.random.default_rng(seed)
    size = np.exp(random.uniform(np.log(1e-4), np.log(reach), (n, points)))
    return torch.from_numpy(size * random.choice([-1.0, 1.0], (n, points)))


def gap(function, a, b, x):
    """Largest relative difference of function(a x) and b function(x), entry by entry."""
    image, value = function(a @ x), function(x)
    difference = (image - b @ value).abs()
    scale = image.abs() + b.abs() @ value.abs()
    return float((difference / scale.clamp(min=1e-300)).max())


# ------------------------------------------------------------------------------------------------- the groups


@pytest.mark.parametrize("name", CATALOGUE)
def test_elements_of_the_group_pass_through_the_activation(name):
    """sigma(A x) = phi(A) sigma(x) on a wide range; and phi is the paper's formula of Lemma 3.1 where that applies."""
    group, sigma = intertwiner(name), CATALOGUE[name]
    for n, seed in ((1, 0), (3, 1), (5, 2), (5, 3)):
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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["identity", "relu", "relu_squared", "heaviside", "sign", "abs", "cube", "tanh",
                                  "gaussian", "sigmoid"])  # fmt: skip
def test_groups_are_groups_and_phi_is_a_homomorphism(name, seed):
    group = intertwiner(name)
    generator = torch.Generator().manual_seed(seed)
    a, b = group.sample(4, generator), group.sample(4, generator)
    assert not torch.equal(a, b)
    unit = torch.eye(4, dtype=torch.float64)
    assert group.contains(a @ b) and group.contains(torch.linalg.inv(a)) and group.contains(unit)
    torch.testing.assert_close(group.phi(a @ b), group.phi(a) @ group.phi(b), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(group.phi(unit), unit)


def test_a_wrong_phi_is_seen():
    for name in ("relu_squared", "gaussian", "cube", "heaviside", "abs", "sign"):
        a = intertwiner(name).sample(4, 0)
        assert defect(name, a, intertwiner(name).phi(a)) < 1e-10
        assert defect(name, a, a) > 0.1, name


def test_relu6_passes_for_relu_on_a_narrow_range():
    a = intertwiner("relu").sample(3, 1)
    assert defect("relu6", a, a, reach=0.5) == pytest.approx(0, abs=1e-12)
    assert defect("relu6", a, a, reach=100.0) > 0.1


def test_lemma_31_needs_its_condition():
    """sigma(I) is singular for the Mexican hat with one channel and for a threshold at 1; the group is there."""
    assert CATALOGUE["ricker"](torch.eye(1)).item() == 0
    assert not CATALOGUE["threshold"](torch.eye(3)).any()
    assert defect("ricker", -torch.eye(1).double(), torch.eye(1).double()) == 0


def test_affine_functions_are_an_exception_to_theorem_e14():
    """x + 1 is not linear, and a matrix that mixes channels passes through it."""
    a = torch.tensor([[2.0, -1.0], [-0.5, 1.5]], dtype=torch.float64)
    x = wide(2)
    torch.testing.assert_close(a @ x + 1, a @ (x + 1), rtol=1e-12, atol=1e-12)
    finding = find_intertwiner(lambda x: x + 1)
    assert finding.group == GeneralLinear("affine") and finding.group.contains(a)
    assert "sums to 2" in finding.group.why_not(a + torch.eye(2))
    for seed in range(4):
        b = finding.group.sample(4, seed)
        torch.testing.assert_close(b.sum(1), torch.ones(4, dtype=torch.float64))
        assert gap(lambda x: 3 * x - 2, b, finding.group.phi(b), wide(4, seed=seed)) < 1e-10


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.ReLU(), "positive scalings times permutations"),
        (nn.LeakyReLU(0.0), "positive scalings times permutations"),
        (nn.LeakyReLU(0.2), "positive scalings times permutations"),
        (nn.LeakyReLU(1.0), "invertible matrices"),
        (nn.LeakyReLU(-1.0), "scalings times permutations"),
        (nn.PReLU(), "positive scalings times permutations"),
        (nn.Identity(), "invertible matrices"),
        (nn.Tanh(), "signed permutations"),
        (nn.GELU(), "permutations"),
        (nn.Hardtanh(-2.0, 2.0), "signed permutations"),
        (nn.Softplus(beta=3.0), "permutations"),
    ],
)
def test_modules_have_the_group_of_their_parameters(module, expected):
    with torch.no_grad():
        group = intertwiner(module)
        assert group.description == expected
        a = group.sample(3, 5)
        assert gap(module.double(), a, group.phi(a), wide(3)) < 1e-10


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.contains(torch.ones(2, 3)), ValueError, r"a has shape \(2, 3\); it should be \(n, n\)"),
        (lambda g: g.contains(torch.ones(0, 0)), ValueError, "with n of at least 1"),
        (lambda g: g.contains(torch.ones(2)), ValueError, r"a has shape \(2,\)"),
        (lambda g: g.phi(torch.tensor([[math.nan]])), ValueError, "a holds nan; all entries should be finite"),
        (lambda g: g.contains(torch.eye(2, dtype=torch.int64)), TypeError, "a is of type torch.int64"),
        (lambda g: g.contains([[1.0]]), TypeError, "a is of type list"),
        (lambda g: g.contains(torch.eye(2), tolerance=2.0), ValueError, "tolerance is 2.0"),
        (lambda g: g.sample(0, 0), ValueError, "n is 0; it should be at least 1"),
        (lambda g: g.sample(2, 0, spread=-1.0), ValueError, "spread is -1.0"),
        (lambda g: g.phi(torch.ones(2, 2)), ValueError, "row 0 has 2 entries that are not 0"),
        (lambda g: g.phi(torch.zeros(2, 2)), ValueError, "row 0 is 0"),
        (lambda g: g.phi(torch.tensor([[1.0, 0.0], [1.0, 0.0]])), ValueError, "column 0 has entries in several rows"),
        (lambda g: g.phi(-torch.eye(2)), ValueError, r"the entry -1 at \(0, 0\) is not one of its scalings"),
        (lambda _: intertwiner("rleu"), ValueError, "activation is 'rleu'"),
        (lambda _: intertwiner(3), TypeError, "activation is 3"),
        (
            lambda _: intertwiner(torch.sqrt),
            ValueError,
            "its group cannot be told from its values: the function is NaN",
        ),
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
    assert group.sample(3, 0, dtype=torch.float32).dtype == torch.float32
    assert group.phi(a.float()).dtype == torch.float32


# ----------------------------------------------------------------------------------------- PReLU, per channel

SLOPES = (1.0, 1.0, 2.0, 0.5, 0.5, 2.0, -1.0, 0.0, 0.0, -1.0, 0.25, -4.0, -0.25)


def prelu(slopes):
    values = torch.tensor(slopes, dtype=torch.float64)[:, None]
    return lambda x: x.clamp(min=0) + values * x.clamp(max=0)


@pytest.mark.parametrize("seed", range(8))
def test_prelu_group_passes_through_and_is_a_group(seed):
    group = PReLUGroup(SLOPES)
    generator = torch.Generator().manual_seed(seed)
    a, b = (group.sample(len(SLOPES), generator) for _ in range(2))
    for matrix in (a, a @ b, torch.linalg.inv(a)):
        assert group.contains(matrix), group.why_not(matrix)
        assert gap(prelu(SLOPES), matrix, group.phi(matrix), wide(len(SLOPES), seed=seed)) < 1e-10
    torch.testing.assert_close(group.phi(a @ b), group.phi(a) @ group.phi(b), rtol=1e-9, atol=1e-9)


def test_prelu_samples_reach_every_part_of_the_group():
    group = PReLUGroup(SLOPES)
    draws = torch.stack([group.sample(len(SLOPES), seed) for seed in range(60)])
    flips = (draws < 0).any(0)
    assert draws[:, 0, 1].ne(0).all(), "channels of slope 1 mix"
    assert flips[2, 3] and flips[3, 2] and flips[6, 6], "slopes 2 and 1/2 swap with a sign; slope -1 flips in place"
    assert (draws[:, 7, 8] > 0).any() and not flips[7:9].any(), "slope 0 is permuted and never flipped"
    assert flips[11, 12] and not flips[10].any(), "-4 and -1/4 are partners; 1/4 has none"


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


def test_a_linear_channel_enlarges_the_group():
    a = torch.eye(3, dtype=torch.float64)
    a[0, 1] = 0.5
    assert not PReLUGroup((0.9, 0.9, 0.2)).contains(a)
    assert PReLUGroup((1.0, 1.0, 0.2)).contains(a)
    module = nn.PReLU(3)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([1.0, 1.0, 0.2]))
    assert intertwiner(module).contains(a)


def test_prelu_errors_name_the_channels():
    group = PReLUGroup((1.0, 0.5, 0.25))
    a = torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"\(2, 2\); this PReLU has 3 channels"):
        group.contains(a[:2, :2])
    with pytest.raises(ValueError, match="n is 4; this PReLU has 3 channels"):
        group.sample(4, 0)
    assert "joins a channel of slope 1 to one of another slope" in group.why_not(a[[1, 0, 2]])
    assert "needs equal slopes, and the channels have 0.5 and 0.25" in group.why_not(a[[0, 2, 1]])
    assert "needs slopes whose product is 1" in group.why_not(torch.diag(torch.tensor([1.0, -1.0, 1.0]).double()))
    assert "it is singular" in group.why_not(torch.diag(torch.tensor([0.0, 1.0, 1.0]).double()))
    with pytest.raises(ValueError, match="slopes is"):
        PReLUGroup((math.nan,))


# ----------------------------------------------------------------------------------------------- the detector


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_detector_agrees_with_the_table(name):
    finding = find_intertwiner(CATALOGUE[name])
    assert finding.group == intertwiner(name), finding


def periodic(base):
    def function(x):
        size = x.abs().clamp(min=1e-300)
        return torch.where(x == 0, 0.0, x * (1 + 0.3 * torch.sin(2 * math.pi * size.log() / math.log(base))))

    return function


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
        (lambda x: x.sign() * x.abs() ** 0.5, Monomial("positive", flip=-1, degree=0.5)),
        (lambda x: x**99, Monomial("positive", flip=-1, degree=99)),
        (lambda x: torch.where(x > 0, 2 * x**2, -3 * x**2), Monomial("positive", degree=2)),
        (lambda x: torch.where(x > 0, 2 * x**2, -2 * x**2), Monomial("positive", flip=-1, degree=2)),
        (lambda x: (x >= 0).double(), Monomial("positive", degree=0)),
        (lambda x: x.clamp(-500, 500), Monomial("one", flip=-1)),
        (lambda x: x**2 + x**4, Monomial("one", flip=1)),
        (lambda x: x**2 + 1e-2 * x**4, Monomial("one", flip=1)),
        (lambda x: x**2 + x**3, Monomial("one")),
        (lambda x: torch.floor(x), Monomial("one")),
        (lambda x: torch.where(x == 0, 7.0, x**2), Monomial("one", flip=1)),
        (lambda x: torch.exp(x), Monomial("one")),
        (lambda x: x.clamp(min=0) + 1e-3, Monomial("one")),
        (lambda x: nn.functional.softplus(x, beta=1000), Monomial("one")),
    ],
)
def test_the_detector_finds_planted_groups(function, expected):
    assert find_intertwiner(function).group == expected


@pytest.mark.parametrize("base", [2.0, 3.0, 10.0])
def test_the_detector_finds_discrete_scalings(base):
    function = periodic(base)
    group = find_intertwiner(function).group
    # Where the sine turns over, half the base would do for its size and not for its sign.
    assert isinstance(group, Monomial) and group.scalings == "discrete" and group.flip == -1
    assert group.base == pytest.approx(base, rel=1e-9) and group.degree == pytest.approx(1, abs=1e-9)
    a = group.sample(3, 0)
    assert gap(function, a, group.phi(a), wide(3)) < 1e-8
    assert group.contains(a @ a) and not group.contains(1.5 * a)


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
    assert repr(finding).startswith("Finding(cannot tell: ")


def test_one_counter_example_is_enough_on_any_domain():
    assert find_intertwiner("sigmoid", domain=(-0.5, 0.5)).group == Monomial("one")
    assert find_intertwiner("relu6", domain=(-200, 200)).group == Monomial("one")


def test_float32_functions_need_a_wider_tolerance():
    assert find_intertwiner(lambda x: 1.1 * torch.relu(x.float()), tolerance=1e-5).group == Monomial("positive")
    assert find_intertwiner(lambda x: torch.tanh(x.float()), tolerance=1e-5).group == Monomial("one", flip=-1)


def test_the_detector_names_bad_arguments():
    with pytest.raises(ValueError, match=r"domain is \(1, -1\)"):
        find_intertwiner("relu", domain=(1, -1))
    with pytest.raises(ValueError, match="tolerance is 0"):
        find_intertwiner("relu", tolerance=0)
    with pytest.raises(ValueError, match="it should keep the shape"):
        find_intertwiner(lambda x: x.sum())
    with pytest.raises(ValueError, match="factors holds 0"):
        violations("relu", [0.0])
    with pytest.raises(ValueError, match="reach is"):
        defect("relu", torch.eye(2), torch.eye(2), reach=0.0)
    with pytest.raises(ValueError, match="both should have one shape"):
        defect("relu", torch.eye(2), torch.eye(3))


@pytest.mark.parametrize("name", ["identity", "relu", "tanh", "gaussian", "cube", "gelu"])
def test_a_group_passes_its_own_activation_and_no_other(name):
    group = intertwiner(name)
    assert passing(name, group, draws=5) == 5
    # Planted errors: matrices of another group, and the right matrices with another phi.
    assert passing("gelu", intertwiner("relu"), draws=5) == 0
    assert passing(lambda x: CATALOGUE[name](x) + 0.01 * x.clamp(0, 1), group, draws=5) < 5 or name == "gelu"
    with pytest.raises(ValueError, match="draws is 0"):
        passing(name, group, draws=0)


def test_what_a_norm_does_not_see_is_counted():
    assert invariant_draws(nn.BatchNorm1d(5, eps=1e-30, affine=False, dtype=torch.float64), draws=4) == 4
    assert invariant_draws(nn.LayerNorm(5, dtype=torch.float64), draws=4) == 0
    assert invariant_draws(nn.BatchNorm1d(5, eps=1e-5, affine=False, dtype=torch.float64), draws=4) == 0


def test_violations_are_zero_on_the_group_only():
    factors = torch.tensor([-3.0, -1.0, -0.5, 0.2, 1.0, 1.5, 40.0])
    assert violations("relu", factors).le(1e-12).tolist() == [False, False, False, True, True, True, True]
    assert violations("tanh", factors).le(1e-12).tolist() == [False, True, False, False, True, False, False]
    assert violations("square", factors).le(1e-12).all()
    assert violations("relu", 7.0) == violations("relu", 1 / 7.0) == 0


# ---------------------------------------------------------------------------------------------------- GELU


@pytest.mark.parametrize("factor", [0.05, 0.5, 0.99, 1.5, 3.0, 50.0])
def test_gelus_gap_is_the_integral(factor):
    def integrand(x):
        return (factor * x * (special.ndtr(factor * x) - special.ndtr(x))) ** 2 * math.exp(-(x**2) / 2)

    value = 2 * integrate.quad(integrand, 0, 40, points=[0.1, 1, 5], limit=500)[0] / math.sqrt(2 * math.pi)
    assert homogeneity_gap(factor).item() == pytest.approx(math.sqrt(value), rel=1e-7)


def test_gelus_slope_is_the_integral_and_the_limit():
    integral = integrate.quad(lambda x: 2 * (x * special.ndtr(-x)) ** 2 * math.exp(-(x**2) / 2), 0, 40)[0]
    assert homogeneity_slope() == pytest.approx(math.sqrt(integral / math.sqrt(2 * math.pi)), rel=1e-10)
    assert homogeneity_gap(1e6).item() / 1e6 == pytest.approx(homogeneity_slope(), rel=1e-6)
    assert abs(homogeneity_slope() - 0.127) < 5e-4
    assert homogeneity_gap(1.0) == 0
    with pytest.raises(ValueError, match="not positive and finite"):
        homogeneity_gap([1.0, 0.0])


def test_gelus_gap_is_that_of_a_sample():
    x = torch.randn(200_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gelu = CATALOGUE["gelu"]
    rms = (gelu(3 * x) - 3 * gelu(x)).square().mean().sqrt().item()
    assert homogeneity_gap(3.0).item() == pytest.approx(rms, rel=0.01)


# ------------------------------------------------------------------------------------- the action on the weights


def disturbed(network, seed=0):
    """Batch norms with statistics, gains and biases that are not those of the initialisation; float64, eval."""
    generator = torch.Generator().manual_seed(seed)
    network.double()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
                for value in (module.running_mean, module.weight, module.bias):
                    value.copy_(torch.randn(value.shape, generator=generator))
                module.running_var.copy_(0.2 + torch.rand(module.running_var.shape, generator=generator))
    return network.eval()


def mlp(activation, norm=False):
    layers = []
    for i, (inputs, outputs) in enumerate([(3, 5), (5, 7), (7, 2)]):
        layers.append(nn.Linear(inputs, outputs))
        if i < 2:
            layers += [nn.BatchNorm1d(outputs)] if norm else []
            layers.append(activation() if i else nn.Sequential(activation(), nn.Dropout()))
    return nn.Sequential(*layers)


ARCHITECTURES = {
    "MLP, ReLU": lambda: mlp(nn.ReLU),
    "MLP, tanh": lambda: mlp(nn.Tanh),
    "MLP, GELU": lambda: mlp(nn.GELU),
    "MLP, identity": lambda: mlp(nn.Identity),
    "MLP, batch norm": lambda: mlp(nn.ReLU, norm=True),
    "Myrtle": lambda: myrtle(4, channels=1),
    "Myrtle without norm": lambda: myrtle(4, channels=1, norm=False),
    "Myrtle, slope 0.1": lambda: myrtle(4, channels=1, slope=0.1),
    "Myrtle, slope 1": lambda: myrtle(4, channels=1, slope=1.0, norm=False),
    "ResNet20": lambda: resnet20(4, channels=1),
    "ResNet20, plain": lambda: resnet20(4, channels=1, residual=False),
    "ResNet20 without last ReLU": lambda: resnet20(4, channels=1, last_relu=False),
}


def inputs_for(network, seed=0, dtype=torch.float64):
    shape = (6, 3) if isinstance(network[0], nn.Linear) else (6, 1, 32, 32)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def change(one, other, x):
    """Largest difference of the outputs, relative to the largest output."""
    with torch.no_grad():
        a, b = one(x), other(x)
    return float((a - b).abs().max() / a.abs().max())


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("seed", range(2))
def test_the_action_keeps_the_function(name, seed):
    torch.manual_seed(seed)
    network = disturbed(ARCHITECTURES[name](), seed)
    before = copy.deepcopy(network.state_dict())
    matrices = sample_action(network, seed)
    assert set(matrices) == {layer.name for layer in hidden_layers(network)}
    other = act(network, matrices)
    x = inputs_for(network, seed)
    assert change(network, other, x) < 1e-10
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items()), "the input is kept"
    moved = [not torch.allclose(before[key], value) for key, value in other.state_dict().items() if "weight" in key]
    assert all(moved), "every layer's weights change"
    if "MLP" not in name:  # dropout
        assert change(network.train(), other.train(), x) < 1e-10
        network.eval()
    assert change(network.float(), act(network.float(), matrices), x.float()) < 1e-4


@pytest.mark.parametrize("seed", range(2))
def test_features_are_multiplied_by_phi(seed):
    """The first half of Proposition 3.4: f'_{<= m} = phi(A_m) f_{<= m}; here with signs, where phi is not A."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    matrices = sample_action(network, seed)
    other = act(network, matrices)
    x = inputs_for(network, seed)
    for name, stop in (("1", 2), ("3", 4)):
        phi = intertwiner(network[int(name)]).phi(matrices[name])
        torch.testing.assert_close(other[:stop](x), network[:stop](x) @ phi.T, rtol=1e-10, atol=1e-10)


def test_two_actions_are_one():
    torch.manual_seed(0)
    network = disturbed(resnet20(4, channels=1))
    one, two = sample_action(network, 1), sample_action(network, 2)
    twice = act(act(network, one), two)
    once = act(network, {name: two[name] @ one[name] for name in one})
    for key, value in twice.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, once.state_dict()[key], rtol=1e-9, atol=1e-9)


def test_channelwise_prelu_networks_keep_their_function():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, len(SLOPES)), nn.PReLU(len(SLOPES)), nn.Linear(len(SLOPES), 3)).double()
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor(SLOPES))
    x = torch.randn(50, 4, dtype=torch.float64)
    for seed in range(5):
        assert change(network, act(network, sample_action(network, seed)), x) < 1e-10


@pytest.mark.parametrize("layer", ["block1.relu2", "block4.relu2", "relu"])
def test_a_broken_residual_tie_changes_the_function(layer):
    torch.manual_seed(0)
    network = disturbed(resnet20(4, channels=1))
    channels = {hidden.name: hidden.channels for hidden in hidden_layers(network)}[layer]
    matrices = {layer: intertwiner("relu").sample(channels, 0)}
    with pytest.raises(ValueError, match="is added before"):
        act(network, matrices)
    assert change(network, act(network, matrices, check_ties=False), inputs_for(network)) > 1e-3
    plain = disturbed(resnet20(4, channels=1, residual=False))
    assert change(plain, act(plain, matrices), inputs_for(plain)) < 1e-10


@pytest.mark.parametrize(
    "name", ["relu", "block1.relu1", "block1.relu2", "block4.relu1", "block4.relu2", "block9.relu2"]
)
def test_splicing_works_between_blocks_and_fails_inside(name):
    """Theorem 4.2 and equation E.56: inside a block the shortcut still carries the matrix of the stream."""
    torch.manual_seed(1)
    network = disturbed(resnet20(4, channels=1))
    matrices = sample_action(network, 1)
    spliced = splice(network, act(network, matrices), name, matrices[name])
    found = change(network, spliced, inputs_for(network))
    assert found > 1e-3 if name.endswith("relu1") else found < 1e-10


@pytest.mark.parametrize("name", ["relu1", "relu4"])
def test_splicing_works_everywhere_in_a_plain_network(name):
    torch.manual_seed(0)
    network = disturbed(myrtle(4, channels=1))
    matrices = sample_action(network, 1)
    other = act(network, matrices)
    assert change(network, splice(network, other, name, matrices[name]), inputs_for(network)) < 1e-10
    wrong = splice(network, other, name, torch.eye(len(matrices[name])))
    assert change(network, wrong, inputs_for(network)) > 1e-3


@pytest.mark.parametrize("build", [lambda: myrtle(4, channels=1), lambda: resnet20(4, channels=1),
                                   lambda: mlp(nn.ReLU, norm=True)])  # fmt: skip
def test_folding_batch_norm_keeps_the_function(build):
    torch.manual_seed(0)
    network = disturbed(build())
    folded = fold_norm(network)
    assert not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in folded.modules())
    assert [layer.channels for layer in hidden_layers(folded)] == [layer.channels for layer in hidden_layers(network)]
    assert change(network, folded, inputs_for(network)) < 1e-10
    assert change(network, act(folded, sample_action(folded, 0)), inputs_for(network)) < 1e-10


def test_scaling_before_batch_norm_is_taken_out_up_to_eps():
    torch.manual_seed(0)
    network = disturbed(myrtle(4, channels=1))
    scales = {"relu2": torch.linspace(0.2, 5, 8), "relu3": torch.linspace(3, 0.5, 16)}
    x = inputs_for(network)
    with_eps = change(network, scale_before_norm(network, scales), x)
    assert 1e-10 < with_eps < 1e-2
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-30
    for mode in (network.eval(), network.train()):
        assert change(mode, scale_before_norm(mode, scales), x) < 1e-10


def test_the_printed_batch_norm_is_not_invariant_and_the_corrected_one_is():
    """E.9.1 as printed: X diag(X^T X)^-1; corrected: X diag(X^T X / b)^-1/2, X less its mean over the b rows."""
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 3
    scales = torch.tensor([0.5, 1, 2, 5], dtype=torch.float64)

    def printed(x):
        x = x - x.sum(0)
        return x / (x * x).sum(0)

    def corrected(x):
        x = x - x.mean(0)
        return x / ((x * x).mean(0)).sqrt()

    torch.testing.assert_close(corrected(x * scales), corrected(x), rtol=1e-12, atol=1e-12)
    assert (printed(x * scales) - printed(x)).abs().max() > 0.1 * printed(x).abs().max()
    norm = nn.BatchNorm1d(4, affine=False, eps=1e-30).double()
    torch.testing.assert_close(corrected(x), norm(x), rtol=1e-12, atol=1e-12)


def test_mixing_channels_is_the_first_half_of_the_action():
    torch.manual_seed(0)
    network = myrtle(4, channels=1, norm=False).double().eval()
    x = inputs_for(network)
    a = intertwiner("relu").sample(8, 0)
    mixed = mix_channels(network, "relu2", a)
    features, moved = (torch.relu(net[:3](x)) for net in (network, mixed))
    torch.testing.assert_close(moved, torch.einsum("ij,njhw->nihw", a, features), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(mixed.linear.weight, network.linear.weight)
    with pytest.raises(ValueError, match="follows a batch norm"):
        mix_channels(myrtle(4), "relu2", a)
    with pytest.raises(ValueError, match="relu2 has 8 channels"):
        mix_channels(network, "relu2", a[:3, :3])
    with pytest.raises(ValueError, match="layer is 'conv1'"):
        mix_channels(network, "conv1", a)


@pytest.mark.parametrize("seed", range(3))
def test_random_rotations_are_orthogonal_and_not_biased(seed):
    q = torch.stack([random_rotation(3, 1000 * seed + k) for k in range(400)])
    torch.testing.assert_close(q @ q.mT, torch.eye(3, dtype=torch.float64).expand_as(q), rtol=0, atol=1e-12)
    assert q.mean(0).abs().max() < 0.15
    assert torch.equal(random_rotation(3, 5), random_rotation(3, 5))


def test_act_names_what_it_cannot_do():
    relu = intertwiner("relu")
    small = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    cases = [
        (small, {"0": relu.sample(3, 0)}, ValueError, "'0', which is not a hidden activation: 1"),
        (small, {"1": relu.sample(2, 0)}, ValueError, "1 has 3 channels"),
        (small, {"1": random_rotation(3, 0)}, ValueError, "is not in the group of ReLU"),
        (small, {"1": [[1.0]]}, TypeError, "it should be a real floating-point tensor"),
        (myrtle(2, slope=1.0), {"relu1": random_rotation(2, 0)}, ValueError, "the batch norm before relu1 does not"),
        (myrtle(2, slope=1.0, norm=False), {"relu2": random_rotation(4, 0)}, ValueError, "the max-pooling after relu2"),
        (nn.Linear(2, 2), {}, TypeError, "network is a Linear; it should be an nn.Sequential"),
        (nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), {}, ValueError, "network.0 should follow a linear"),
        (nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), {}, TypeError, "network.1 is a LayerNorm"),
        (nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=1)), {}, TypeError, "network.1 is a Softmax"),
        (nn.Sequential(nn.Conv2d(4, 4, 1, groups=2), nn.ReLU()), {}, ValueError, "a convolution with groups"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.ReLU()), {}, ValueError, "lies between a layer and"),
        (nn.Sequential(nn.BatchNorm1d(2)), {}, ValueError, "network.0 should follow"),
    ]
    for network, matrices, error, message in cases:
        with pytest.raises(error, match=message):
            act(network, matrices)
    with pytest.raises(ValueError, match="layer is 'relu9'"):
        splice(myrtle(2), myrtle(2), "relu9", torch.eye(2))
    with pytest.raises(ValueError, match="matrix has shape"):
        splice(myrtle(2), myrtle(2), "relu1", torch.eye(3))
    with pytest.raises(ValueError, match="should have the same layers"):
        splice(myrtle(2), small, "relu1", torch.eye(2))
    with pytest.raises(ValueError, match="should hold 2 positive, finite factors"):
        scale_before_norm(myrtle(2), {"relu1": torch.tensor([1.0, -1.0])})
    with pytest.raises(ValueError, match="not a hidden activation with batch norm"):
        scale_before_norm(small, {"1": torch.ones(3)})


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["Myrtle", "ResNet20", "MLP, identity"])
def test_the_action_on_a_gpu(name):
    torch.manual_seed(0)
    network = disturbed(ARCHITECTURES[name]())
    matrices = sample_action(network, 0)
    x = inputs_for(network)
    with torch.no_grad():
        expected = network(x)
    network.cuda()
    layer = hidden_layers(network)[0]
    other = act(network, matrices)
    for changed in (other, fold_norm(other), splice(network, other, layer.name, layer.group.phi(matrices[layer.name]))
                    if "MLP" not in name else other):  # fmt: skip
        assert next(changed.parameters()).is_cuda
        with torch.no_grad():
            torch.testing.assert_close(changed(x.cuda()).cpu(), expected, rtol=1e-10, atol=1e-10)


def test_tanh_before_max_pooling_may_be_permuted_and_not_turned():
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2)).double()
    x = torch.randn(4, 1, 6, 6, dtype=torch.float64)
    for seed in range(4):
        matrices = sample_action(network, seed)
        assert (matrices["1"] >= 0).all()
        assert change(network, act(network, matrices), x) < 1e-10
    with pytest.raises(ValueError, match="turns signs"):
        act(network, {"1": -matrices["1"]})


# ------------------------------------------------------------------------- the stored test, exercises, the widget


def test_interval_is_students():
    values = np.random.default_rng(0).normal(3.0, 2.0, (2000, 4))
    covered = np.mean([low <= 3.0 <= high for _, low, high in map(interval, values)])
    assert 0.93 < covered < 0.97
    with pytest.raises(ValueError, match="at least 2 finite numbers"):
        interval([1.0])
    with pytest.raises(ValueError, match="at least 2 finite numbers"):
        interval([1.0, math.nan])


def test_stored_rotations_are_complete_and_consistent():
    stored = load_rotations(ROTATIONS)
    assert stored.layers == ["relu1", "relu2", "relu3", "relu4"] and len(stored.networks) >= 2
    for layer in stored.layers:
        for kind, draws in (
            ("identity", 1),
            ("group", stored.settings["group_draws"]),
            ("rotation", stored.settings["draws"]),
        ):
            penalties = stored.penalties(layer, kind, "before")
            assert penalties.shape == (len(stored.networks), draws)
            assert (penalties == 0).all() if kind == "identity" else (penalties > 0).all()
        assert abs(stored.penalties(layer, "group", "least_squares")).max() < 0.5
    some = [stored.penalties("relu1", "rotation", "after", [name]) for name in stored.networks]
    np.testing.assert_array_equal(np.concatenate(some), stored.penalties("relu1", "rotation", "after"))
    with pytest.raises(ValueError, match="stage is 'later'"):
        stored.penalties("relu1", "group", "later")
    with pytest.raises(ValueError, match="no run with layer 'relu9'"):
        stored.penalties("relu9", "group", "after")


def test_only_draws_that_every_network_has_are_compared(tmp_path):
    """A script that was stopped in the middle leaves runs of some networks; the penalties are those without them."""
    data = json.loads(ROTATIONS.read_text(encoding="utf-8"))
    before = load_rotations(ROTATIONS).penalties("relu2", "rotation", "after")
    name = next(iter(data["networks"]))
    extra = data["runs"][f"{name} relu2 rotation 0"] | {"after": 0.0}
    data["runs"][f"{name} relu2 rotation {before.shape[1]}"] = extra
    (tmp_path / "more.json").write_text(json.dumps(data), encoding="utf-8")
    more = load_rotations(tmp_path / "more.json")
    np.testing.assert_array_equal(more.penalties("relu2", "rotation", "after"), before)
    alone = more.penalties("relu2", "rotation", "after", [name])
    assert alone.shape == (1, before.shape[1] + 1) and alone[0, -1] > 50


def test_damaged_rotations_are_named(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        load_rotations(tmp_path / "none.json")
    text = ROTATIONS.read_text(encoding="utf-8")
    file = tmp_path / "some.json"
    data = json.loads(text)
    data["runs"][next(iter(data["runs"]))]["after"] = 7.0
    for bad in (text[:200], "{}", "[]", json.dumps(data)):
        file.write_text(bad, encoding="utf-8")
        with pytest.raises(ValueError, match="is not a stored rotation test"):
            load_rotations(file)


def test_the_script_repairs_a_group_element_and_not_a_rotation(tmp_path):
    """The stored study's script in small; a second call goes on from the file and repeats nothing."""
    out = tmp_path / "smoke.json"
    command = [sys.executable, str(DATA / "symmetries" / "make.py"), "--smoke", "--out", str(out)]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    stored = load_rotations(out)
    group, rotation = (stored.penalties("relu1", kind, "least_squares").item() for kind in ("group", "rotation"))
    assert group == 0 < rotation
    assert stored.penalties("relu1", "group", "before").item() > 10
    done = subprocess.run([*command, "--rate", "0.1"], capture_output=True, text=True, check=False)
    assert done.returncode and "has other settings" in done.stderr


def said(capsys, check, *arguments):
    check(*arguments)
    return capsys.readouterr().out


def test_exercises_accept_right_answers_and_explain_wrong_ones(capsys):
    assert said(capsys, exercises.check_function, lambda x: x.abs() ** 3).startswith("Right")
    assert "odd" not in said(capsys, exercises.check_function, lambda x: x**3)
    assert said(capsys, exercises.check_function, torch.relu).startswith("Not yet: its group is 'positive scalings")
    assert "cannot be told" in said(capsys, exercises.check_function, torch.sqrt)
    right = torch.tensor([[2.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, -1], [0, 0, -3, 0]])
    assert said(capsys, exercises.check_prelu, right).startswith("Right")
    assert said(capsys, exercises.check_prelu, torch.eye(4)).startswith("Not yet: it belongs")
    assert "needs equal slopes" in said(capsys, exercises.check_prelu, right.abs())
    torch.manual_seed(0)
    network = resnet20(2, channels=1).eval()
    assert said(capsys, exercises.check_ties, network, sample_action(network, 0), "block1.relu2").startswith("Right")
    alone = {"block1.relu2": sample_action(network, 0)["block1.relu2"]}
    assert "is added before" in said(capsys, exercises.check_ties, network, alone, "block1.relu2")
    assert "should not be the identity" in said(
        capsys, exercises.check_ties, network, {"block1.relu1": torch.eye(2)}, "block1.relu1"
    )
    assert "should have a matrix" in said(capsys, exercises.check_ties, network, {}, "block1.relu1")
    assert said(capsys, exercises.check_count, 3840).startswith("Right")
    assert said(capsys, exercises.check_count, 120).startswith("Not yet")


def test_widget_draws_the_same_curves_in_both_languages(node):
    random = np.random.default_rng(0)
    widgets = [
        HiddenAction(
            activation=str(random.choice(["relu", "leaky_relu", "tanh", "gaussian", "identity"])),
            angle=float(random.integers(-36, 37) * 5), order=str(random.choice(ORDERS)),
            first=int(random.integers(-8, 9)), second=int(random.integers(-8, 9)),
        )
        for _ in range(120)
    ]  # fmt: skip
    keys = ["x", "after", "hidden", "wanted", "fitted"]
    body = "(m, [states, keys]) => states.map(s => { const r = m.evaluate(s); return keys.map(k => Array.isArray(r[k]) "
    found = node(HiddenAction._esm, body + "? r[k].map(v => Array.from(v)) : r[k]); })",
                 [[widget.state() for widget in widgets], keys])  # fmt: skip
    for widget, values in zip(widgets, found, strict=True):
        curves = widget.curves()
        for key, value in zip(keys, values, strict=True):
            np.testing.assert_allclose(np.array(value).T, curves[key], atol=1e-6, err_msg=f"{widget} {key}")


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ({"first": 5, "second": -8, "order": "swapped"}, ["relu", "leaky_relu", "identity"]),
        ({"angle": 180.0}, ["tanh", "gaussian", "identity"]),
        ({"angle": 90.0}, ["tanh", "gaussian", "identity"]),
        ({"angle": 40.0}, ["identity"]),
        ({"order": "swapped"}, ["relu", "leaky_relu", "tanh", "gaussian", "identity"]),
    ],
)
def test_widget_says_what_the_groups_say(state, kept):
    for name in ("relu", "leaky_relu", "tanh", "gaussian", "identity"):
        widget = HiddenAction(activation=name, **state)
        member = intertwiner(name).contains(torch.from_numpy(widget.matrix()))
        assert member is (name in kept)
        assert (widget.score() < 1e-9) is member
        assert (": an output layer gives" in widget.fallback()) is member


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("sin * p, cos * q", "sin * p, cos * p"), ("rest.map((value) => value / left)", "rest"), ("BIAS[i]", "0")],
)
def test_a_wrong_formula_in_the_widget_is_noticed(node, right, wrong):
    assert HiddenAction._esm.count(right)
    widget = HiddenAction(angle=35.0, first=3, second=-2)
    score = node(HiddenAction._esm.replace(right, wrong), "(m, state) => m.evaluate(state).score", widget.state())
    assert abs(score - widget.score()) > 1e-3
