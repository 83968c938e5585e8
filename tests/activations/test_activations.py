"""The catalogue and the exact score curves, against mpmath, SciPy, closed forms and affinity_score."""

import dataclasses
import math
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import mpmath as mp
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import norm

from affscore import affinity_score, paired_affinity_score
from affscore_book.activations import exercises, figures
from affscore_book.activations.catalogue import CATALOGUE, ActivationFunction, lookup
from affscore_book.activations.laws import polynomial_score, score_curve, summarise
from affscore_book.activations.sweeps import FIGURE_8, Sweep, load_sweep, pooled_score, sample_score
from affscore_book.kit.bundle import bundle, sources
from affscore_book.relu_1d.exact import gaussian_input, uniform_input

mpl.use("Agg")

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "activations" / "figure_8.json"
NAMES = list(CATALOGUE)
MONOTONE = [name for name, row in CATALOGUE.items() if row.monotone]
TURNING = [name for name in NAMES if name not in MONOTONE]


# ------------------------------------------------------------------------ the catalogue, written out once more


def s(x):
    return 1 / (1 + mp.exp(-x))


def phi(x):
    return mp.ncdf(x)


def clip(x, low, high):
    return min(max(x, low), high)


def when(condition, yes, no):
    return yes() if condition else no()


def softplus(x):
    return mp.log1p(mp.exp(x))


# In multiple precision, straight from the formulas, without regard for cancellation.
ORACLE = {
    "identity": lambda x: x,
    "heaviside": lambda x: mp.mpf(x > 0),
    "sign": mp.sign,
    "sigmoid": s,
    "tanh": mp.tanh,
    "lecun_tanh": lambda x: mp.mpf("1.7159") * mp.tanh(2 * x / 3),
    "penalized_tanh": lambda x: mp.tanh(x) * (1 if x > 0 else mp.mpf(1) / 4),
    "hardtanh": lambda x: clip(x, -1, 1),
    "hardsigmoid": lambda x: clip(x + 3, 0, 6) / mp.mpf(6),
    "softsign": lambda x: x / (1 + abs(x)),
    "arctan": mp.atan,
    "erf": mp.erf,
    "isru": lambda x: x / mp.sqrt(1 + x * x),
    "sqnl": lambda x: clip(x, -2, 2) - clip(x, -2, 2) * abs(clip(x, -2, 2)) / 4,
    "symlog": lambda x: mp.sign(x) * mp.log(1 + abs(x)),
    "cloglog": lambda x: 1 - mp.exp(-mp.exp(x)),
    "logsigmoid": lambda x: mp.log(s(x)),
    "tanhshrink": lambda x: x - mp.tanh(x),
    "hardshrink": lambda x: x if abs(x) > 0.5 else 0,
    "softshrink": lambda x: mp.sign(x) * max(abs(x) - mp.mpf(1) / 2, 0),
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: clip(x, 0, 6),
    "brelu": lambda x: clip(x, 0, 1),
    "shifted_relu": lambda x: max(x, -1),
    "threshold": lambda x: x if x > 1 else 0,
    "leaky_relu": lambda x: max(x, x * mp.mpf("0.01")),
    "prelu": lambda x: max(x, x / 4),
    "rrelu": lambda x: max(x, x * mp.mpf(11) / 48),
    "nlrelu": lambda x: mp.log(1 + max(x, 0)),
    "relu_squared": lambda x: max(x, 0) ** 2,
    "plu": lambda x: max((x + 1) / 10 - 1, min((x - 1) / 10 + 1, x)),
    "elu": lambda x: when(x > 0, lambda: x, lambda: mp.expm1(x)),
    "selu": lambda x: mp.mpf("1.0507009873554805") * when(
        x > 0, lambda: x, lambda: mp.mpf("1.6732632423543772") * mp.expm1(x)),
    "isrlu": lambda x: x / mp.sqrt(1 + min(x, 0) ** 2),
    "reu": lambda x: when(x > 0, lambda: x, lambda: x * mp.exp(x)),
    "elish": lambda x: when(x > 0, lambda: x / (1 + mp.exp(-x)), lambda: mp.expm1(x) / (1 + mp.exp(-x))),
    "hard_elish": lambda x: clip((x + 1) / 2, 0, 1) * when(x > 0, lambda: x, lambda: mp.expm1(x)),
    "exponential": mp.exp,
    "softplus": softplus,
    "squareplus": lambda x: (x + mp.sqrt(x * x + 4)) / 2,
    "gelu": lambda x: x * phi(x),
    "quick_gelu": lambda x: x * s(mp.mpf("1.702") * x),
    "gelu_tanh": lambda x: x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))),
    "silu": lambda x: x * s(x),
    "dsilu": lambda x: s(x) * (1 + x * (1 - s(x))),
    "hardswish": lambda x: x * clip(x + 3, 0, 6) / 6,
    "fts": lambda x: max(x, 0) * s(x) - mp.mpf(1) / 5,
    "mish": lambda x: x * mp.tanh(softplus(x)),
    "tanhexp": lambda x: x * mp.tanh(mp.exp(x)),
    "serf": lambda x: x * mp.erf(softplus(x)),
    "logish": lambda x: x * mp.log(1 + s(x)),
    "smish": lambda x: x * mp.tanh(mp.log(1 + s(x))),
    "phish": lambda x: x * mp.tanh(x * phi(x)),
    "lisht": lambda x: x * mp.tanh(x),
    "gaussian": lambda x: mp.exp(-x * x),
    "ricker": lambda x: (1 - x * x) * mp.exp(-x * x / 2),
    "sq_rbf": lambda x: 1 - x * x / 2 if abs(x) < 1 else max(2 - abs(x), 0) ** 2 / 2,
    "sine": mp.sin,
    "cosine": mp.cos,
    "snake": lambda x: x + mp.sin(x) ** 2,
    "gcu": lambda x: x * mp.cos(x),
    "abs": abs,
    "square": lambda x: x * x,
    "cube": lambda x: x**3,
}  # fmt: skip

POINTS = np.concatenate([np.linspace(-24, 24, 49), [-1e-3, 1e-3, -0.5, 0.5, -7.3, 7.3, -1.2, 0.7]])


def deviations(values, oracle, points, floor=lambda x: 0.0):
    """Errors of values relative to the oracle's, or to ``floor(x)`` if that is larger; none below 1e-290."""
    with mp.workdps(400):
        exact = [mp.mpf(oracle(mp.mpf(float(x)))) for x in points]
        return [
            float(abs(mp.mpf(value) - target) / max(abs(target), floor(x)))
            for value, target, x in zip(values.tolist(), exact, points, strict=True)
            if abs(target) > 1e-290 or floor(x)
        ]


def test_the_catalogue_is_large_and_unambiguous():
    assert len(CATALOGUE) >= 40 and set(ORACLE) == set(CATALOGUE)
    assert len({row.title for row in CATALOGUE.values()}) == len(CATALOGUE)
    assert all(name == row.name for name, row in CATALOGUE.items())
    assert set(FIGURE_8) <= set(CATALOGUE)


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_filled_in(name):
    row = CATALOGUE[name]
    assert row.title and row.family and row.reference
    assert row.formula.count("{") == row.formula.count("}") and "|" not in row.formula
    assert row.formula.count("(") == row.formula.count(")") and ("x" in row.formula)
    assert row.kinks == tuple(sorted(row.kinks))
    assert 1943 <= max(map(int, re.findall(r"\b(?:19|20)\d\d\b", row.reference))) <= 2023


@pytest.mark.parametrize("name", NAMES)
def test_values_keep_their_digits(name):
    x = torch.from_numpy(POINTS)
    values = CATALOGUE[name](x)
    assert values.dtype == torch.float64 and values.shape == x.shape
    # Relative to the value, but for functions that are differences by nature relative to the input.
    differences = ("tanhshrink", "sine", "cosine", "gcu", "snake", "ricker", "dsilu")
    floor = (lambda x: min(1.0, abs(x))) if name in differences else (lambda x: 0.0)
    assert max(deviations(values, ORACLE[name], POINTS, floor)) < 2e-12


def test_the_oracle_notices_a_wrong_formula():
    wrong = deviations(CATALOGUE["quick_gelu"](POINTS), ORACLE["silu"], POINTS)
    assert max(wrong) > 0.1


@pytest.mark.parametrize("name", [name for name, row in CATALOGUE.items() if any(row.tails)])
def test_tails_are_measured_from_the_limit(name):
    row = CATALOGUE[name]
    with mp.workdps(400):
        far = mp.mpf(2000)
        limits = [ORACLE[name](-far), ORACLE[name](far)]
        for tail, limit, claimed in zip(row.tails, limits, row.limits, strict=True):
            if tail is None:
                continue
            assert float(limit) == pytest.approx(claimed, abs=1e-15)
            errors = deviations(tail(torch.from_numpy(POINTS)), lambda x, limit=limit: ORACLE[name](x) - limit, POINTS)
            assert max(errors) < 2e-12


def tail_needed(row, side):
    """Whether the distance to a finite limit drops below what float64 can tell apart from the limit."""
    limit = row.limits[0 if side < 0 else 1]
    if limit == 0 or not math.isfinite(limit):
        return False
    with mp.workdps(400):
        x = mp.mpf(18 * side)
        return 0 < abs(ORACLE[row.name](x) - ORACLE[row.name](2000 * mp.mpf(side))) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_tails_are_there_where_they_are_needed(name):
    row = CATALOGUE[name]
    for tail, side in zip(row.tails, (-1, 1), strict=True):
        assert (tail is not None) == tail_needed(row, side) or name == "cloglog"


TORCH = [name for name, row in CATALOGUE.items() if row.torch]


@pytest.mark.parametrize("name", TORCH)
def test_agrees_with_torch(name):
    row = CATALOGUE[name]
    x = torch.linspace(-12, 12, 4801, dtype=torch.float64)
    if hasattr(torch.nn, row.torch):
        arguments = {"threshold": (1.0, 0.0)}.get(name, ())
        options = {"approximate": "tanh"} if name == "gelu_tanh" else {}
        theirs = getattr(torch.nn, row.torch)(*arguments, **options).double().eval()(x).detach()
    elif name == "heaviside":
        theirs = torch.heaviside(x, torch.zeros(1, dtype=torch.float64))
    else:
        theirs = getattr(torch, row.torch)(x)
    # torch's GELU, SELU and softplus round at 1e-15 or switch to an asymptote.
    torch.testing.assert_close(row(x), theirs, rtol=1e-9, atol=1e-8 if name == "softplus" else 1e-14)


def test_torch_has_what_the_catalogue_says():
    assert len(TORCH) >= 30
    for name in TORCH:
        assert hasattr(torch.nn, CATALOGUE[name].torch) or hasattr(torch, CATALOGUE[name].torch)


@pytest.mark.parametrize("name", NAMES)
def test_limits(name):
    row = CATALOGUE[name]
    for limit, side in zip(row.limits, (-1, 1), strict=True):
        if math.isnan(limit):
            values = row(side * np.linspace(1e3, 1e3 + 20, 2001))
            assert values.max() - values.min() > 1.5
        elif math.isinf(limit):
            assert row(side * 1e5) * math.copysign(1, limit) > 10
        else:
            assert row(side * 1e5).item() == pytest.approx(limit, abs=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_monotone_flag(name):
    row = CATALOGUE[name]
    x = torch.cat([torch.linspace(-60, 60, 24001), torch.linspace(-3, 3, 24001)]).double().sort().values
    falls = row(x).diff() < -1e-13 * x.abs()[1:].clamp(min=1)
    assert row.monotone == (not bool(falls.any()))


def rough(function, at, width=1e-2):
    """How far the function is from a polynomial around a point: its sixth difference over its first scale."""
    x = at + width * torch.arange(-7, 8, dtype=torch.float64) / 2
    values = function(x)
    return float(values.diff(n=6).abs().max() / width)


@pytest.mark.parametrize("name", NAMES)
def test_kinks_are_where_they_are_said_to_be(name):
    row = CATALOGUE[name]
    elsewhere = [-6.7, -4.3, -2.6, -1.7, -0.71, -0.23, 0.31, 0.77, 1.9, 2.7, 4.4, 5.6]
    smooth = max(rough(row, at) for at in elsewhere)
    assert smooth < 2e-6
    for kink in row.kinks:
        assert rough(row, kink) > 1e-5
    for at in {-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0} - set(map(float, row.kinks)):
        assert rough(row, at) < 2e-6


# -------------------------------------------------------------------------------------- the exact scores


def mp_score(name, mean, std, distribution):
    """1 - sqrt(1 - r) with r the correlation of x and f(x), by mpmath in 40 digits."""
    with mp.workdps(40):
        mean, std = mp.mpf(mean), mp.mpf(std)
        if distribution == "normal":
            reach, density = mp.mpf(12), mp.npdf
        else:
            reach, density = mp.sqrt(3), lambda z: 1 / (2 * mp.sqrt(3))
        kinks = [(mp.mpf(k) - mean) / std for k in CATALOGUE[name].kinks]
        inside = [k for k in kinks if -reach < k < reach]
        edges = sorted([-reach + reach * i / 4 for i in range(9)] + inside)
        f = ORACLE[name]

        def integral(g):
            return mp.quad(lambda z: g(z) * density(z), edges)

        m_y = integral(lambda z: f(mean + std * z))
        var = integral(lambda z: (f(mean + std * z) - m_y) ** 2)
        r = integral(lambda z: z * (f(mean + std * z) - m_y)) / mp.sqrt(var)
        return float(1 - mp.sqrt(1 - r))


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("sigmoid", 18.5, 0.3), ("tanh", -17.0, 1.0), ("elu", -0.4, 1.3), ("selu", -11.0, 0.7), ("erf", 3.0, 0.8),
        ("relu", 0.3, 1.7), ("hardshrink", 0.2, 0.9), ("sqnl", -1.1, 0.5), ("gelu", -2.0, 1.1), ("silu", 4.0, 0.05),
        ("mish", -6.0, 2.0), ("cube", -0.6, 1.0), ("sine", 1.0, 2.0), ("gaussian", 2.0, 0.6), ("exponential", 5.0, 2.0),
        ("symlog", 0.1, 1e-3), ("penalized_tanh", 15.0, 0.5), ("dsilu", 17.0, 0.4), ("cloglog", 3.0, 0.4),
    ],
)  # fmt: skip
def test_quadrature_against_mpmath(name, mean, std, distribution):
    ours = score_curve(name, mean, std, distribution=distribution, coupling="paired").item()
    assert ours == pytest.approx(mp_score(name, mean, std, distribution), rel=1e-9, abs=1e-10)


def test_a_forgotten_kink_shows():
    forgetful = dataclasses.replace(CATALOGUE["hardshrink"], kinks=())
    error = score_curve(forgetful, 0.2, 0.9).item() - mp_score("hardshrink", 0.2, 0.9, "normal")
    assert abs(error) > 1e-6


def test_forgotten_tails_show():
    forgetful = dataclasses.replace(CATALOGUE["tanh"], tails=(None, None))
    exact = mp_score("tanh", -18.0, 0.2, "normal")
    assert abs(score_curve(forgetful, -18.0, 0.2).item() - exact) > 1e-4
    assert abs(score_curve("tanh", -18.0, 0.2).item() - exact) < 1e-10


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh"])
def test_against_the_closed_forms(name):
    rng = np.random.default_rng(1)
    for std in (0.02, 0.3, 1.0, 4.0):
        means = rng.uniform(-25, 25, 40)
        exact = gaussian_input(means, std, name).score
        ours = score_curve(name, means, std)
        seen = exact > 1e-140
        assert int(seen.sum()) > 2
        torch.testing.assert_close(ours[seen], exact[seen], rtol=1e-9, atol=0)
        assert bool((ours[~seen] < 1e-139).all())
        half = math.sqrt(3) * std
        torch.testing.assert_close(
            score_curve(name, means, std, distribution="uniform"),
            uniform_input(means - half, means + half, name).score, rtol=1e-8, atol=1e-8, equal_nan=True,
        )  # fmt: skip


@pytest.mark.parametrize("std", [0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("mean", [-7.0, 0.0, 3.0])
def test_exponential_depends_on_the_std_only(mean, std):
    r = std / math.sqrt(math.expm1(std**2))
    assert score_curve("exponential", mean, std).item() == pytest.approx(1 - math.sqrt(1 - r), abs=1e-9)


def test_far_from_the_origin_a_sigmoid_is_an_exponential():
    for mean in (-20.0, 20.0):
        assert score_curve("sigmoid", mean).item() == pytest.approx(score_curve("exponential", 0.0).item(), abs=1e-7)


@pytest.mark.parametrize("mean", [-3.0, -0.4, 0.0, 2.0])
def test_heaviside_in_closed_form(mean):
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
        ("silu", -1.2784645427610738, -1.0, 1.0), ("silu", -1.2784645427610738, -4.0, 1.5),
        ("silu", -1.2784645427610738, 0.7, 0.6), ("hardswish", -1.5, -0.5, 0.8), ("square", 0.0, 0.3, 1.0),
        ("abs", 0.0, -0.6, 1.36), ("lisht", 0.0, 0.0, 1.0),
    ],
)  # fmt: skip
def test_sorted_coupling_against_branches(name, bottom, mean, std):
    f = CATALOGUE[name]
    exact = sorted_score_by_branches(lambda x: f(x).item(), bottom, mean, std)
    assert score_curve(name, mean, std).item() == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_against_the_score_of_many_quantiles(name, distribution):
    grid = (np.arange(20000) + 0.5) / 20000
    z = ndtri(grid) if distribution == "normal" else math.sqrt(3) * (2 * grid - 1)
    for mean, std in ((0.0, 1.0), (-1.4, 0.8), (0.9, 0.5), (-2.5, 0.3)):
        x = torch.from_numpy(mean + std * z)
        y = CATALOGUE[name](x)
        for coupling, score in (("sorted", affinity_score), ("paired", paired_affinity_score)):
            ours = score_curve(name, mean, std, distribution=distribution, coupling=coupling).item()
            theirs = score(x, y, covariance="empirical").item()
            if math.isnan(theirs):
                assert math.isnan(ours) or ours < 1e-2
            else:
                assert ours == pytest.approx(theirs, abs=4e-3)


@pytest.mark.parametrize("name", TURNING)
def test_sorting_never_lowers_the_score(name):
    means = torch.linspace(-8, 8, 33)
    for std in (0.1, 1.0, 2.0):
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
    curve = score_curve("relu", [-3.0, 0.0], distribution="uniform")
    assert bool(curve.isnan()[0]) and not bool(curve.isnan()[1])
    assert score_curve(lambda x: 0 * x + 3, 0.0).isnan()
    assert score_curve(lambda x: -x, [0.0, 5.0], coupling="sorted").tolist() == pytest.approx([1, 1])
    assert score_curve(lambda x: -x, 0.0, coupling="paired").item() == pytest.approx(1 - math.sqrt(2))


# --------------------------------------------------------------------------------------------- polynomials


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 7, 11, 41])
def test_polynomials_against_the_law_and_samples(degree):
    exact = polynomial_score(degree)
    law = score_curve(lambda x: x**degree, 0.0, 1 / math.sqrt(3), distribution="uniform").item()
    # Without the flag "monotone" the law is sorted on a grid; 1 - r is about 1e-16 for a straight line.
    assert exact == pytest.approx(law, abs=1e-5)
    draws = []
    for seed in range(60):
        x = np.random.default_rng(seed).uniform(-1, 1, 1000)
        draws.append(affinity_score(x, x**degree, covariance="empirical").item())
    spread = np.std(draws)
    assert abs(draws[0] - exact) < 3 * spread + 1e-7
    assert abs(np.mean(draws) - exact) < 3 * spread / math.sqrt(10) + 1e-7
    if degree > 1:
        assert abs(draws[0] - polynomial_score(2 * degree + 1)) > 3 * spread


def test_polynomials_match_the_formula():
    for k in (1, 2, 3, 5, 7, 11, 41):
        r = math.sqrt(3 * (2 * k + 1)) / (k + 2)
        assert polynomial_score(k) == pytest.approx(1 - math.sqrt(max(0.0, 1 - r)), abs=1e-7)
    assert polynomial_score(1) == 1


# ----------------------------------------------------------------------------------- summaries and samples


def test_summary_of_relu():
    """Below 0 by more than 3.29 standard deviations ReLU is dead, above 0 it becomes linear."""
    summary = summarise("relu", std=1.0, points=401)
    curve = score_curve("relu", torch.linspace(-3.2, 20, 233, dtype=torch.float64))
    assert summary.lowest == pytest.approx(curve.min().item()) and summary.lowest_at == pytest.approx(-3.2)
    assert summary.dead == pytest.approx(20 - 3.3, abs=0.11)
    assert summary.width == pytest.approx(0.1 * int((curve < 0.9).sum()), abs=0.01)
    half = summarise("relu", std=0.5, domain=(-10, 10), points=401)
    assert half.width == pytest.approx(summary.width / 2) and half.lowest == pytest.approx(summary.lowest)


def test_summary_of_the_identity_and_of_an_exponential():
    assert summarise("identity").width == 0 and summarise("identity").lowest == pytest.approx(1)
    flat = summarise("exponential", domain=(0.0, 10.0), points=11)
    assert flat.width == pytest.approx(11) and flat.dead == 0


@pytest.mark.parametrize("name", ["relu", "tanh", "silu", "gelu"])
def test_many_independent_coordinates_give_the_paired_law(name):
    for mean in (-0.5, 0.5):
        law = score_curve(name, mean, coupling="paired").item()
        assert sample_score(name, mean, 1.0, n=400, d=150) == pytest.approx(law, abs=0.01)


def test_where_the_activation_falls_the_dimension_decides():
    one, many = (sample_score("silu", -5.0, 0.5, n=400, d=d) for d in (1, 150))
    assert one > 0.75 and many < 0.2
    assert sample_score("silu", -5.0, 0.5, n=400, d=150, paired=True) < -0.35


def test_samples_are_reproducible_and_shared():
    same = [sample_score("relu", 0.5, 1.0, n=50, d=3, seed=2) for _ in range(2)]
    assert same[0] == same[1] != sample_score("relu", 0.5, 1.0, n=50, d=3, seed=3)
    # Shifting and scaling ReLU's output changes nothing, so it has seen the same inputs.
    assert sample_score(lambda x: 5 * torch.relu(x) + 1, 0.5, 1.0, n=50, d=3, seed=2) == pytest.approx(same[0])
    assert math.isnan(sample_score("relu", -20.0, 1.0, n=50, d=3))


def test_pooling_keeps_the_score_of_many_channels_only():
    flat, pooled = (pooled_score("relu", channels=64, positions=8, pool=pool, n=200) for pool in (1, 8))
    assert pooled == pytest.approx(flat, abs=0.02)
    assert pooled_score("relu", channels=1, positions=8, pool=8, n=200) > flat + 0.2


@pytest.mark.parametrize("name", ["relu", "hardswish"])
def test_the_stored_sweep_can_be_recomputed(name):
    sweep = load_sweep(STORED)
    assert set(sweep.scores) == set(FIGURE_8) and sweep.scores[name].shape == (20, 6)
    sizes = {key: sweep.settings[key] for key in ("n", "d", "seed")}
    for i, j in ((10, 1), (3, 5)):
        ours = sample_score(name, sweep.means[i], sweep.stds[j], **sizes)
        assert ours == pytest.approx(sweep.scores[name][i, j], abs=1e-9, nan_ok=True)


def test_what_a_sweep_says():
    scores = {"relu": np.array([[math.nan, math.nan], [0.2, math.nan], [0.8, 0.95], [0.9, 1.0]])}
    sweep = Sweep(np.arange(4.0), np.array([1.0, 2.0]), scores, {"n": 3, "d": 2, "seed": 0}, {})
    assert sweep.lowest("relu") == 0.2 and sweep.average("relu") == pytest.approx(0.77)
    assert sweep.non_linear_means("relu") == 2 and sweep.non_linear_means("relu", 0.1) == 0
    law = sweep.law()
    assert np.isnan(law.scores["relu"]).sum() == 3 and law.settings["d"] == 1
    assert law.scores["relu"][2, 1] == pytest.approx(score_curve("relu", 2.0, 2.0).item())
    assert repr(sweep) == "Sweep(1 activations, 4 means, 2 standard deviations, n=3, d=2, seed=0)"


def test_the_stored_sweep_follows_the_law():
    """In 300 dimensions the score is that of the paired law, or slightly above 0 where that is negative."""
    sweep = load_sweep(STORED)
    for name, scores in sweep.scores.items():
        for j, std in enumerate(sweep.stds):
            law, ours = score_curve(name, sweep.means, std, coupling="paired").numpy(), scores[:, j]
            # Farther out float64 rounds tanh to a few values, and the law knows no rounding.
            seen = (law > 0.1) & (np.abs(sweep.means) < 12)
            assert np.nanmax(np.abs(ours - law)[seen], initial=0) < 0.08
            assert np.nanmax(ours[law < 0], initial=0) < 0.12


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lookup("swoosh"), ValueError, r"activation is 'swoosh'; it should be one of heaviside"),
        (lambda: lookup(3), TypeError, r"activation is 3; it should be a name"),
        (lambda: score_curve("relu", [0.0, math.inf]), ValueError, r"means holds inf; all should be finite"),
        (lambda: score_curve("relu", 0.0, 0.0), ValueError, r"std is 0.0; it should be a finite number greater than 0"),
        (lambda: score_curve("relu", 0.0, math.nan), ValueError, r"std is nan"),
        (lambda: score_curve("relu", 0.0, distribution="cauchy"), ValueError, r"distribution is 'cauchy'"),
        (lambda: score_curve("relu", 0.0, coupling="random"), ValueError, r"coupling is 'random'"),
        (lambda: polynomial_score(0), ValueError, r"degree is 0; it should be a whole number"),
        (lambda: polynomial_score(2.5), ValueError, r"degree is 2.5"),
        (lambda: summarise("relu", domain=(1.0, 1.0)), ValueError, r"domain is \(1.0, 1.0\)"),
        (lambda: summarise("relu", points=1), ValueError, r"points is 1; it should be at least 2"),
        (lambda: sample_score("relu", 0.0, -1.0), ValueError, r"std is -1.0"),
        (lambda: sample_score("relu", 0.0, 1.0, d=0), ValueError, r"sizes are \(1000, 0\)"),
        (lambda: pooled_score("relu", channels=2, positions=8, pool=3), ValueError, r"pool is 3; it should divide"),
        (lambda: load_sweep("nowhere.json"), FileNotFoundError, r"there is no nowhere.json; book/data/activations/"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "text", ["", "{}", "[1, 2]", '{"settings": {"means": [1], "stds": [1]}, "scores": {"relu": []}}']
)
def test_a_broken_sweep_is_refused(tmp_path, text):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(ValueError, match=r"is not a complete file of book/data/activations/figure_8.py"):
        load_sweep(tmp_path / "sweep.json")


def test_custom_activations():
    row = ActivationFunction("mine", "mine", "custom", "2x", lambda x: 2 * x, (-math.inf, math.inf), True, "here")
    assert repr(row) == "ActivationFunction('mine')" and score_curve(row, 1.0).item() == pytest.approx(1)
    assert row([1, 2]).tolist() == [2.0, 4.0]


# ----------------------------------------------------------------------------------------------- the widget


@pytest.fixture(scope="module")
def javascript():
    return bundle(sources()["ActivationExplorer"])


def test_javascript_has_the_same_catalogue(node, javascript):
    rows = node(
        javascript, "m => Object.entries(m.CATALOGUE).map(([k, r]) => [k, r[0], r[2], Boolean(r[3]), Boolean(r[4])])"
    )
    assert [row[:3] for row in rows] == [[row.name, row.title, list(row.kinks)] for row in CATALOGUE.values()]
    assert [row[3:] for row in rows] == [[tail is not None for tail in row.tails] for row in CATALOGUE.values()]


def test_javascript_functions(node, javascript):
    kinks = np.array([-6, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 6.0])
    x = np.concatenate([np.linspace(-40, 24, 401), kinks, kinks - 1e-9, kinks + 1e-9])
    body = """(m, x) => Object.fromEntries(Object.entries(m.CATALOGUE).map(
        ([name, row]) => [name, [row[1], row[3] ?? null, row[4] ?? null].map((f) => f && x.map(f))]))"""
    for name, theirs in node(javascript, body, x.tolist()).items():
        row = CATALOGUE[name]
        for ours, values in zip((row.function, *row.tails), theirs, strict=True):
            assert (ours is None) == (values is None)
            if ours is not None:
                expected = ours(torch.from_numpy(x)).numpy()
                np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12, err_msg=name)


def test_javascript_scores(node, javascript):
    """On a grid with kinks (0, +-3), tails (+-10) and dead ranges (ReLU at -10)."""
    states = [
        {"activation": name, "mean": mean, "std": std}
        for name in CATALOGUE
        for mean in (-10.0, -3.0, -1.3, 0.0, 0.7, 6.0, 10.0)
        for std in (0.05, 0.6, 1.0, 4.0)
    ]
    scores = node(javascript, "(m, states) => states.map((state) => m.evaluate(state).score)", states)
    exact = [score_curve(s["activation"], s["mean"], s["std"]).item() for s in states]
    np.testing.assert_allclose(scores, exact, rtol=0, atol=1e-6)
    assert not np.allclose(scores[28:], exact[:-28], atol=1e-2, equal_nan=True)
    coarse = node(
        javascript, "(m, states) => states.map((s) => m.scoreCurve(s.activation, [s.mean], s.std)[0])", states
    )
    alive = ~np.isnan(exact)
    np.testing.assert_allclose(np.array(coarse)[alive], np.array(exact)[alive], rtol=0, atol=0.02)


# -------------------------------------------------------------------------------- the exercises and figures


def check(capsys, call):
    call()
    return capsys.readouterr().out.startswith("Right")


def test_exercises_accept_right_answers_only(capsys):
    assert check(capsys, lambda: exercises.check_even_power(0.634)) and not check(
        capsys, lambda: exercises.check_even_power(0.711)
    )

    def score(std):
        return 1 - math.sqrt(1 - std / math.sqrt(math.expm1(std**2)))

    assert check(capsys, lambda: exercises.check_exponential(score))
    assert not check(capsys, lambda: exercises.check_exponential(lambda std: score(1.01 * std)))
    crossing = brentq(lambda std: (score_curve("tanh", 0, std) - score_curve("relu", 0, std)).item(), 1, 20)
    assert check(capsys, lambda: exercises.check_crossing(crossing))
    assert not check(capsys, lambda: exercises.check_crossing(1.05 * crossing))
    assert not check(capsys, lambda: exercises.check_crossing(-1.0))
    assert check(capsys, lambda: exercises.check_dimension(lambda x: -x))
    assert not check(capsys, lambda: exercises.check_dimension(torch.relu))
    assert check(capsys, lambda: exercises.check_rounding(-15.0))
    assert not check(capsys, lambda: exercises.check_rounding(-2.0))
    assert not check(capsys, lambda: exercises.check_rounding(-60.0))


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: figures.plot_inputs("sigmoid"), 2),
        (lambda: figures.explore(torch.nn.Softplus(beta=3), 1.0, 0.5), 2),
        (lambda: figures.plot_curves(["sigmoid"], (0.5, 1.0)), 1),
        (lambda: figures.plot_moving_range(), 1),
        (lambda: figures.plot_shapes(), 1),
        (lambda: figures.plot_polynomials({3: 0.71}), 1),
        (lambda: figures.plot_boxes(load_sweep(STORED), ["relu", "silu"]), 2),
        (lambda: figures.plot_dimensions(load_sweep(STORED)), 1),
        (lambda: figures.plot_pooling(n=20, positions=4), 1),
        (lambda: figures.plot_shrinkage(n=20), 2),
        (lambda: figures.plot_zoo("power"), 4),
        (lambda: figures.plot_map({"relu": summarise("relu"), "silu": summarise("silu")}, ["silu"]), 1),
    ],
)
def test_figures_draw_labelled_panels(draw, panels):
    """Every figure is 6 inches wide, on white, with as many panels as it has ideas, and each has data in it."""
    plt.close("all")
    assert draw() is None
    figure = plt.gcf()
    visible = [axes for axes in figure.axes if axes.get_visible()]
    assert len(visible) == panels and all(axes.has_data() for axes in visible)
    assert figure.get_size_inches()[0] == 6 and figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    labels = [axes.get_xlabel() for axes in visible] + [figure.get_supxlabel()]
    assert any("input" in label or label in ("degree k", "d / n", "channels") or "range" in label for label in labels)
    plt.close(figure)


def test_tables_show_every_row_once():
    table = figures.ActivationTable()
    assert len(table._repr_markdown_().splitlines()) == len(CATALOGUE) + 2
    assert all(line.count(" | ") == 5 for line in table._repr_markdown_().splitlines())
    summary = figures.SummaryTable({name: summarise(name) for name in ("silu", "tanh", "relu")})
    assert summary._repr_html_().count("<tr>") == 4 and [row[0] for row in summary.rows] == ["ReLU", "tanh", "SiLU"]
