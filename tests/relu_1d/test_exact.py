"""Exact scores of piecewise linear activations in one dimension, against mpmath, SymPy and affinity_score."""

import math

import mpmath as mp
import numpy as np
import pytest
import sympy
import torch

from affscore import affine_map, affinity_score, wasserstein2
from affscore_book.relu_1d.exact import PIECEWISE_LINEAR, gaussian_input, monotone_score, uniform_input

FIELDS = ("score", "deficit", "correlation", "w2", "bound")
INPUTS = {"uniform": uniform_input, "gaussian": gaussian_input}


# Textbook moments, which cancel badly, in so many digits that it does not matter.


def oracle(law, first, second, slope, low, high):
    """The fields of Affinity for y = slope x + (1 - slope) clip(x, low, high), as mpmath numbers."""
    with mp.workdps(1400):
        first, second, slope, low, high = map(mp.mpf, (first, second, slope, low, high))
        moments = _uniform_moments if law == "uniform" else _gaussian_moments
        mean_x, mean_c, xx, cc, xc = moments(first, second, low, high)
        var_x, var_c, cov = xx - mean_x**2, cc - mean_c**2, xc - mean_x * mean_c
        var_y = slope**2 * var_x + 2 * slope * (1 - slope) * cov + (1 - slope) ** 2 * var_c
        r = (slope * var_x + (1 - slope) * cov) / mp.sqrt(var_x * var_y)
        deficit = mp.sqrt(1 - r)
        bound = mp.sqrt(2 * var_y)
        return {"score": 1 - deficit, "deficit": deficit, "correlation": r, "w2": bound * deficit, "bound": bound}


def _uniform_moments(a, b, low, high):
    start, stop = min(max(low, a), b), max(min(high, b), a)

    def moment(i, j):
        """E x^i c^j, c = clip(x, low, high)."""
        total = (stop ** (i + j + 1) - start ** (i + j + 1)) / (i + j + 1)
        total += low**j * (start ** (i + 1) - a ** (i + 1)) / (i + 1)
        if stop < b:
            total += high**j * (b ** (i + 1) - stop ** (i + 1)) / (i + 1)
        return total / (b - a)

    return moment(1, 0), moment(0, 1), moment(2, 0), moment(0, 2), moment(1, 1)


def _gaussian_moments(mean, std, low, high):
    """Moments of z = (x - mean) / std and of the clip of z, in units of std; the means do not matter."""
    low, high = (low - mean) / std, (high - mean) / std
    above = mp.mpf(0) if mp.isinf(high) else mp.erfc(high / mp.sqrt(2)) / 2
    below = mp.erfc(-low / mp.sqrt(2)) / 2
    end = mp.mpf(0) if mp.isinf(high) else high
    density_low, density_high = mp.npdf(low), mp.npdf(end) if not mp.isinf(high) else mp.mpf(0)
    within = 1 - above - below
    first = low * below + end * above + density_low - density_high
    second = low**2 * below + end**2 * above + within + low * density_low - end * density_high
    return mp.mpf(0), first, mp.mpf(1), second, within


def assert_exact(law, first, second, activation, **options):
    got = INPUTS[law](first, second, activation, **options)
    want = oracle(law, first, second, **{"slope": 0, "low": 0, "high": math.inf} | options)
    if law == "gaussian":  # the oracle works in units of std
        want["w2"], want["bound"] = want["w2"] * second, want["bound"] * second
    for name in FIELDS:
        ours, theirs = mp.mpf(getattr(got, name).item()), want[name]
        assert abs(ours - theirs) <= 1e-10 * abs(theirs), f"{name}: {ours} instead of {mp.nstr(theirs, 17)}"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("activation", PIECEWISE_LINEAR)
def test_equal_to_mpmath(activation, seed):
    """Parameters of every size: narrow and wide ranges, kinks anywhere, tails up to 45 standard deviations."""
    rng = np.random.default_rng(seed)
    low = rng.normal() if activation == "hardtanh" else 0.0
    high, slope = low + 10 ** rng.uniform(-6, 2), rng.uniform() ** 3
    options = {"relu": {}, "leaky_relu": {"slope": slope}, "hardtanh": {"low": low, "high": high}}[activation]
    width, reach = 10 ** rng.uniform(-6, 3), [1.0, 6.0, 45.0][seed % 3]
    share = [rng.uniform(), 10 ** rng.uniform(-6, 0), 1 - 10 ** rng.uniform(-6, 0)][seed % 3]
    assert_exact("gaussian", low + width * rng.uniform(-reach, reach), width, activation, **options)
    assert_exact("uniform", low - width * share, low + width * (1 - share), activation, **options)


@pytest.mark.parametrize(
    ("law", "first", "second"),
    [
        ("uniform", -5e-7, 5e-7), ("uniform", -1e-6, 1e-15), ("uniform", -1e-15, 1e-6), ("uniform", -1.0, 1e-60),
        ("gaussian", -30.0, 1.0), ("gaussian", -50.0, 1.0), ("gaussian", 30.0, 1.0), ("gaussian", 50.0, 1.0),
        ("gaussian", -3e-5, 1e-6),
    ],
)  # fmt: skip
def test_equal_to_mpmath_in_the_tails(law, first, second):
    assert_exact(law, first, second, "relu")
    assert_exact(law, first, second, "leaky_relu", slope=1e-3)


def test_appendix_a2_symbolically():
    """The chapter's formulas for ReLU and uniform input, from the integrals, for every a < 0 < b."""
    n, b, x, c = sympy.symbols("n b x c", positive=True)  # the range is [-n, b]; c is the slope of T
    width = n + b

    def mean(on_negative, on_positive):
        total = sympy.integrate(sympy.expand(on_negative), (x, -n, 0))
        return sympy.cancel((total + sympy.integrate(sympy.expand(on_positive), (x, 0, b))) / width)

    def same(one, other):
        return sympy.cancel(one - other) == 0

    mean_x, mean_y = mean(x, x), mean(0 * x, x)
    var_x, var_y = mean(x**2, x**2) - mean_x**2, mean(0 * x, x**2) - mean_y**2
    cov = mean(0 * x, x**2) - mean_x * mean_y
    p, t = b / width, n / width
    square_r = cov**2 / (var_x * var_y)
    assert same(var_x, width**2 / 12)
    assert same(mean_y, width * p**2 / 2)
    assert same(var_y, width**2 * p**3 * (1 + 3 * t) / 12)
    assert same(cov, width**2 * p**2 * (1 + 2 * t) / 12)
    assert same(square_r, p * (1 + 2 * t) ** 2 / (1 + 3 * t))
    assert same(1 - square_r, 4 * t**3 / (1 + 3 * t))
    # The transport cost of the line with slope c through the means, from its integral. T has c^2 var_x = var_y, which
    # makes the cost 2 var_y - 2 c cov = 2 var_y (1 - r), and (1 - r)(1 + r) = 1 - r^2.
    line = c * (x - mean_x) + mean_y
    assert same(mean(line**2, (line - x) ** 2), c**2 * var_x + var_y - 2 * c * cov)
    assert same(2 * var_y * (1 - square_r), sympy.Rational(2, 3) * width**2 * (p * t) ** 3)


def test_family_of_clips_symbolically():
    """The identity behind `across` in uniform_input: no subtraction is left."""
    c, d, k = sympy.symbols("below above within", nonnegative=True)
    total = c + d + k  # = 1; keeps the forms homogeneous
    var_x = total**2 / 12
    var_y = k**2 * (c * d + k * (c + d) / 3 + k**2 / 12)
    cov = k * (c * d + k * (c + d) / 2 + k**2 / 6) / 2
    residual = k**2 * ((c - d) ** 2 + c * d) * (k * (c + d) + 3 * c * d) / 36
    assert sympy.expand(var_x * var_y - cov**2 - residual) == 0


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_all_positive_is_exactly_one(activation):
    exact = uniform_input([0.0, 1e-300, 3.0, 1e8], [1.0, 1.0, 3.5, 1e8 + 1], activation)
    assert (exact.score == 1).all() and (exact.deficit == 0).all() and (exact.w2 == 0).all()
    assert abs(exact.correlation - 1).max() < 1e-15 and (exact.correlation <= 1).all()


@pytest.mark.parametrize(("a", "b"), [(-1.0, 0.0), (-2.0, -1.0), (-3.0, -1e-300)])
def test_all_negative_is_undefined(a, b):
    dead = uniform_input([a, -1.0], [b, 1.0])
    assert np.isnan(dead.score).tolist() == [True, False] and np.isnan(dead.correlation).tolist() == [True, False]
    assert dead.w2[0] == 0 and dead.bound[0] == 0
    assert uniform_input(a, b, "leaky_relu").score == 1
    assert np.isnan(uniform_input(-b, -a, "hardtanh", low=-1, high=-b).score)
    assert np.isnan(monotone_score([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]))


def test_towards_all_negative_the_score_goes_to_zero_like_a_root():
    share = np.logspace(-12, -3, 10)
    score = uniform_input(share - 1, share).score
    np.testing.assert_allclose(score, 0.75 * np.sqrt(share), rtol=0.03)
    assert (np.diff(gaussian_input(np.linspace(-60, -5, 50), 1.0).score) >= 0).all()


def test_numerator_is_symmetric_up_to_the_root_of_one_plus_r():
    """The chapter's theorem: w2 sqrt(1 + r) is the same for x and -x; so mirrored w2 differ by less than sqrt 2."""
    middle = np.linspace(-4.5, 4.5, 19)
    for one in (uniform_input(middle - 5, middle + 5), gaussian_input(middle, 1.0)):
        even = one.w2 * np.sqrt(1 + one.correlation)
        np.testing.assert_allclose(even, even[::-1], rtol=1e-12)
        assert abs(np.log(one.w2 / one.w2[::-1])).max() <= math.log(2) / 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("function", [torch.relu, torch.tanh, torch.sin, torch.square, lambda x: 2 * x + 1])
def test_monotone_score_is_the_transport_score(seed, function):
    """Also for activations that are not monotone: sorting is what counts."""
    x = 2 * torch.randn(300, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    y = function(x)
    # Near a score of 1 an error of 1e-16 under the root becomes 1e-8.
    assert abs(monotone_score(x, y) - affinity_score(x, y, covariance="empirical")) < 1e-7


@pytest.mark.parametrize("law", INPUTS)
def test_agrees_with_the_transport_of_many_quantiles(law):
    first, second = (-1.3, 2.1) if law == "uniform" else (0.4, 1.3)
    exact = INPUTS[law](first, second, "hardtanh")
    share = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    x = first + (second - first) * share if law == "uniform" else first + second * torch.special.ndtri(share)
    y = x.clamp(-1, 1)
    image = affine_map(x, y, covariance="empirical")(x[:, None])
    assert exact.score.item() == pytest.approx(affinity_score(x, y, covariance="empirical").item(), abs=1e-4)
    assert exact.w2.item() == pytest.approx(wasserstein2(image, y).item(), abs=1e-4)
    assert exact.bound.item() == pytest.approx(math.sqrt(2) * y.std(correction=0).item(), abs=1e-3)


@pytest.mark.parametrize("law", INPUTS)
def test_shapes_and_types(law):
    first = np.linspace(-3, -1, 5, dtype=np.float32)[:, None]
    exact = INPUTS[law](first, torch.tensor([1, 2, 3]), "hardtanh", low=-2)
    assert all(value.shape == (5, 3) and value.dtype == np.float64 for value in vars(exact).values())
    assert INPUTS[law](-1, 1).score.shape == ()


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda: uniform_input([0.0, 1.0], 1.0), r"a is 1\.0; it should be below b"),
        (lambda: uniform_input(math.nan, 1.0), r"a is nan; it should be finite"),
        (lambda: uniform_input(0.0, math.inf), r"b is inf; it should be finite"),
        (lambda: uniform_input(-1e308, 1e308), r"b is 1e\+308; it should be so close"),
        (lambda: gaussian_input(0.0, 0.0), r"std is 0\.0; it should be above 0"),
        (lambda: gaussian_input(math.nan, 1.0), r"mean is nan; it should be finite"),
        (lambda: uniform_input(0, 1, "swish"), r"activation is 'swish'; it should be one of 'relu'"),
        (lambda: uniform_input(0, 1, "leaky_relu", slope=1.5), r"slope is 1\.5; it should be in \[0, 1\]"),
        (lambda: uniform_input(0, 1, "leaky_relu", slope=math.nan), r"slope is nan; it should be finite"),
        (lambda: uniform_input(0, 1, "hardtanh", low=1, high=1), r"low is 1\.0; it should be below high"),
        (lambda: monotone_score([1.0, 1.0], [0.0, 1.0]), r"x is constant, all values are 1\.0"),
        (lambda: monotone_score([1.0, 2.0], [0.0, math.nan]), r"y is nan; it should be finite"),
        (lambda: monotone_score([1.0, 2.0], [0.0]), r"shapes \(2,\) and \(1,\); both should be \(n,\)"),
        (lambda: monotone_score([1.0], [0.0]), r"n >= 2"),
    ],
)
def test_bad_values_are_named(compute, message):
    with pytest.raises(ValueError, match=message):
        compute()


@pytest.mark.parametrize("bad", [1j, True])
def test_bad_types_are_named(bad):
    with pytest.raises(TypeError, match=r"a has dtype .*; it should hold real numbers"):
        uniform_input(bad, 2.0)
