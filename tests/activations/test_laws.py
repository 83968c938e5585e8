"""Exact score curves against mpmath, SciPy, closed forms and the affinity score of many quantiles."""

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
import torch
from formulas import ORACLE
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import norm

from affscore import affinity_score, paired_affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import score_curve, summarise
from affscore_book.relu_1d.exact import gaussian_input
from affscore_study.activations.claims import polynomial_score

NAMES = list(CATALOGUE)
TURNING = [name for name, row in CATALOGUE.items() if not row.monotone]


def mp_score(name, mean, std):
    """1 - sqrt(1 - r) with r the correlation of x and f(x), by mpmath in 30 digits."""
    with mp.workdps(30):
        mean, std, reach = mp.mpf(mean), mp.mpf(std), mp.mpf(12)
        kinks = [(mp.mpf(k) - mean) / std for k in CATALOGUE[name].kinks]
        edges = sorted([-reach + reach * i / 4 for i in range(9)] + [k for k in kinks if -reach < k < reach])
        f = ORACLE[name]

        def integral(g):
            return mp.quad(lambda z: g(z) * mp.npdf(z), edges)

        m_y = integral(lambda z: f(mean + std * z))
        var = integral(lambda z: (f(mean + std * z) - m_y) ** 2)
        r = integral(lambda z: z * (f(mean + std * z) - m_y)) / mp.sqrt(var)
        return float(1 - mp.sqrt(1 - r))


# Tails on both sides, kinks near the mean, smooth ones that fall, a narrow and a wide input.
@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("tanh", -17.0, 1.0), ("sigmoid", 18.5, 0.3), ("hardshrink", 0.2, 0.9), ("penalized_tanh", 15.0, 0.5),
        ("sine", 1.0, 2.0), ("exponential", 5.0, 2.0), ("symlog", 0.1, 1e-3), ("gaussian", 2.0, 0.6),
    ],
)  # fmt: skip
def test_quadrature_against_mpmath(name, mean, std):
    ours = score_curve(name, mean, std, coupling="paired").item()
    assert ours == pytest.approx(mp_score(name, mean, std), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh"])
def test_against_the_closed_forms(name):
    rng = np.random.default_rng(1)
    for std in (0.02, 0.3, 1.0, 4.0):
        means = rng.uniform(-25, 25, 40)
        exact = gaussian_input(means, std, name).score
        ours = score_curve(name, means, std)
        seen = exact > 1e-140
        assert int(seen.sum()) > 2
        np.testing.assert_allclose(ours[seen], exact[seen], rtol=1e-9)
        assert bool((ours[~seen] < 1e-139).all())


def test_more_closed_forms():
    for std in (0.01, 0.5, 1.0, 2.0):
        r = std / math.sqrt(math.expm1(std**2))
        assert score_curve("exponential", [-7.0, 0.0, 3.0], std).tolist() == pytest.approx([1 - math.sqrt(1 - r)] * 3)
    # Far from the origin a sigmoid is an exponential, and tanh is the sigmoid at twice the width.
    exponential = score_curve("exponential", 0.0).item()
    assert score_curve("sigmoid", [-20.0, 20.0]).tolist() == pytest.approx([exponential] * 2, abs=1e-7)
    assert score_curve("tanh", -3.0, 0.5).item() == pytest.approx(score_curve("sigmoid", -6.0, 1.0).item(), abs=1e-8)
    for mean in (-3.0, -0.4, 0.0, 2.0):
        p = norm.cdf(mean)
        r = norm.pdf(mean) / math.sqrt(p * (1 - p))
        assert score_curve("heaviside", mean).item() == pytest.approx(1 - math.sqrt(1 - r), abs=1e-10)


def sorted_score_by_branches(f, bottom, mean, std):
    """The sorted score of a function with one minimum, from its distribution function: Cov = s Int phi(Phi^-1(F_Y))."""
    low, high = mean - 12 * std, mean + 12 * std
    floor = f(bottom)

    def between(y):
        left = brentq(lambda x: f(x) - y, low, bottom) if f(low) > y else low
        right = brentq(lambda x: f(x) - y, bottom, high) if f(high) > y else high
        return norm.cdf((right - mean) / std) - norm.cdf((left - mean) / std)

    top = max(f(low), f(high))
    joints = [y for y in (f(low), f(high), f(mean)) if floor < y < top]
    cov, _ = quad(
        lambda y: norm.pdf(ndtri(between(y))), floor, top, points=joints or None, epsabs=1e-11, limit=400
    )  # fmt: skip
    first = quad(lambda z: f(mean + std * z) * norm.pdf(z), -12, 12, points=[0, (bottom - mean) / std], limit=200)[0]
    var = quad(lambda z: (f(mean + std * z) - first) ** 2 * norm.pdf(z), -12, 12,
               points=[0, (bottom - mean) / std], epsabs=1e-13, limit=200)[0]  # fmt: skip
    return 1 - math.sqrt(1 - cov / math.sqrt(var))


@pytest.mark.parametrize(
    ("name", "bottom", "mean", "std"),
    [
        ("silu", -1.2784645427610738, -4.0, 1.5), ("hardswish", -1.5, -0.5, 0.8), ("square", 0.0, 0.3, 1.0),
        ("abs", 0.0, -0.6, 1.36),
    ],
)  # fmt: skip
def test_sorted_coupling_against_branches(name, bottom, mean, std):
    f = CATALOGUE[name]
    exact = sorted_score_by_branches(lambda x: f(x).item(), bottom, mean, std)
    assert score_curve(name, mean, std).item() == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_against_the_score_of_many_quantiles(name):
    z = ndtri((np.arange(20_000) + 0.5) / 20_000)
    for mean, std in ((0.0, 1.0), (-1.4, 0.8), (0.9, 0.5), (-2.5, 0.3)):
        x = torch.from_numpy(mean + std * z)
        y = CATALOGUE[name](x)
        for coupling, score in (("sorted", affinity_score), ("paired", paired_affinity_score)):
            ours = score_curve(name, mean, std, coupling=coupling).item()
            theirs = score(x, y, covariance="empirical").item()
            if math.isnan(theirs):
                assert math.isnan(ours) or ours < 1e-2
            else:
                assert ours == pytest.approx(theirs, abs=4e-3)


@pytest.mark.parametrize("name", TURNING)
def test_sorting_never_lowers_the_score(name):
    means = torch.linspace(-8, 8, 17)
    for std in (0.1, 1.0):
        both = [score_curve(name, means, std, coupling=coupling) for coupling in ("sorted", "paired")]
        alive = ~(both[0].isnan() | both[1].isnan())
        assert bool((both[0] >= both[1] - 1e-5)[alive].all()) and bool((both[0][alive] > -1e-6).all())


@pytest.mark.parametrize("name", ["silu", "gelu", "relu", "gcu"])
@pytest.mark.parametrize("coupling", ["sorted", "paired"])
def test_invariances(name, coupling):
    f, means = CATALOGUE[name], torch.linspace(-5, 5, 21, dtype=torch.float64)
    base = score_curve(f, means, 0.8, coupling=coupling)
    scaled = dataclasses.replace(f, function=lambda x: 3 * f(x) - 7)
    torch.testing.assert_close(score_curve(scaled, means, 0.8, coupling=coupling), base, rtol=0, atol=2e-7)
    # A point reflection of the activation reflects the curve.
    mirrored = dataclasses.replace(f, function=lambda x: -f(-x), kinks=tuple(-k for k in f.kinks))
    flipped = score_curve(mirrored, means, 0.8, coupling=coupling).flip(0)
    torch.testing.assert_close(flipped, base, rtol=0, atol=2e-5 if coupling == "sorted" else 1e-9)


def test_shapes_and_undefined_scores():
    assert score_curve("relu", torch.zeros(2, 3)).shape == (2, 3) and score_curve("relu", 0).shape == ()
    assert score_curve("silu", []).shape == (0,)
    assert score_curve(lambda x: 0 * x + 3, 0.0).isnan()
    assert score_curve(lambda x: -x, [0.0, 5.0], coupling="sorted").tolist() == pytest.approx([1, 1])
    assert score_curve(lambda x: -x, 0.0, coupling="paired").item() == pytest.approx(1 - math.sqrt(2))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 41])
def test_polynomials_are_the_score_of_an_even_sample(degree):
    x = (2 * np.arange(10_000) + 1) / 10_000 - 1
    ours = affinity_score(x, x**degree, covariance="empirical").item()
    assert polynomial_score(degree) == pytest.approx(ours, abs=2e-4)
    assert (polynomial_score(degree) == 1) == (degree == 1)


def test_summaries_of_relu_the_identity_and_an_exponential():
    """Below 0 by more than 3.29 standard deviations ReLU is dead, above 0 it becomes linear."""
    summary = summarise("relu")
    curve = score_curve("relu", torch.linspace(-3.2, 20, 117, dtype=torch.float64))
    assert summary.lowest == pytest.approx(curve.min().item()) and summary.lowest_at == pytest.approx(-3.2)
    assert summary.dead == pytest.approx(20 - 3.3, abs=0.11)
    assert summary.width == pytest.approx(0.2 * int((curve < 0.9).sum()), abs=0.01)
    assert summarise("relu", std=0.5).width == pytest.approx(summary.width / 2, abs=0.2)
    assert summarise("identity").width == 0 and summarise("identity").lowest == pytest.approx(1)
    assert summarise("exponential").width == pytest.approx(201 * 0.2) and summarise("exponential").dead == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score_curve("relu", [0.0, math.inf]), r"means holds inf; all should be finite"),
        (lambda: score_curve("relu", 0.0, 0.0), r"std is 0.0; it should be a finite number greater than 0"),
        (lambda: score_curve("relu", 0.0, math.nan), r"std is nan"),
        (lambda: score_curve("relu", 0.0, coupling="random"), r"coupling is 'random'"),
        (lambda: polynomial_score(0), r"degree is 0; it should be a whole number of at least 1"),
        (lambda: polynomial_score(2.5), r"degree is 2.5; it should be a whole number"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
