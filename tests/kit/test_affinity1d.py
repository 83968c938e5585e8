"""The mathematics that widgets share, in JavaScript, against SciPy, mpmath, the catalogue and affscore's own score."""

import itertools
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import special

import affscore_book.kit
from affscore import affine_map, affinity_score
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.affinity1d import CHOICES, uniforms
from affscore_book.kit.bundle import bundle

KIT = Path(affscore_book.kit.__file__).parent
MATHEMATICS = bundle(KIT / "affinity1d.js")


def uniform_grid(a, b, n):
    return np.linspace(a, b, 2 * n + 1)[1::2]


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_are_exact_to_1e_14_relative(node, name):
    x = [*np.linspace(-6, 25, 400).tolist(), 0.5, -0.5, 6.0, 1e-12, -1e-300]
    values = node(MATHEMATICS, f"(m, x) => x.map(m.{name})", x)
    with mpmath.workdps(40):
        exact = [getattr(mpmath, name)(mpmath.mpf(t)) for t in x]
        assert max(abs((value - one) / one) for value, one in zip(values, exact, strict=True)) < 1e-14


def test_normal_law_and_grids_match_scipy_and_python(node):
    x = np.linspace(-37, 9, 300).tolist()
    cdf, grid = node(MATHEMATICS, "(m, x) => [x.map(m.normalCdf), m.uniformGrid(-0.3, 7.1, 77)]", x)
    np.testing.assert_allclose(cdf, special.ndtr(x), rtol=1e-12)
    np.testing.assert_allclose(grid, uniform_grid(-0.3, 7.1, 77), rtol=1e-12)


def test_activations_match_the_catalogue(node):
    kinks = np.array([-1, 0, 1.0])
    far = [-1e-300, -800.0, 800.0, -2e4, 2e4]
    x = np.concatenate([np.linspace(-36, 36, 501), kinks, kinks - 1e-9, kinks + 1e-9, far])
    values, choices = node(MATHEMATICS, "(m, x) => [Object.fromEntries(Object.entries(m.ACTIVATIONS).map("
                           "([name, f]) => [name, x.map((value) => f(value))])), m.CHOICES]", x.tolist())  # fmt: skip
    assert tuple(name for name, _ in choices) == CHOICES and set(CHOICES) < set(values)
    for name, outputs in values.items():
        np.testing.assert_allclose(outputs, CATALOGUE[name](x), rtol=1e-11, atol=1e-300, err_msg=name)


def test_uniforms_are_the_same_in_both_languages_and_never_twice(node):
    drawn = node(bundle(KIT / "uniforms.js"), "m => [0, 3, 9].map((stream) => m.uniforms(stream, 700))")
    for stream, found in zip((0, 3, 9), drawn, strict=True):
        np.testing.assert_array_equal(found, uniforms(stream, 700))
    everything = np.concatenate([uniforms(stream, 576) for stream in range(10)])
    assert len(np.unique(everything)) == len(everything)
    assert abs(everything.mean()) < 0.02 and abs(everything.var() - 1 / 3) < 0.01


@pytest.mark.parametrize("count", [2, 9, 40])
def test_quadrature_is_that_of_gauss(node, count):
    found = node(bundle(KIT / "legendre.js"), f"m => m.legendre({count})")
    for ours, theirs in zip((found["nodes"], found["weights"]), np.polynomial.legendre.leggauss(count), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-15)


def normal_grid(mean, sd, n):
    return mean + sd * special.ndtri((np.arange(n) + 0.5) / n)


def grid_of_laws():
    """Inputs that lie across kinks, far out in the tails, where activations are dead, and everywhere between."""
    for kink, width in itertools.product([-6, -3, -1, 0, 1, 3, 6], [1e-6, 1e-2, 1]):
        for below in (0.3, 0.99):
            yield uniform_grid(kink - below * width, kink + (1 - below) * width, 101)
    for centre, width in itertools.product([-30, -12, -5, -1.5, 0.2, 2, 7, 20], [0.5, 4, 12]):
        yield uniform_grid(centre - width / 2, centre + width / 2, 101)
        yield normal_grid(centre, width / 4, 100)


@pytest.mark.filterwarnings("ignore:x and y vary so little")  # far out, where activations are flat
def test_javascript_score_and_image_are_pythons_over_the_grid(node):
    cases = [(name, x, CATALOGUE[name](x).numpy()) for name, x in itertools.product(CHOICES, grid_of_laws())]
    results = node(MATHEMATICS, "(m, cases) => cases.map(([x, y]) => { const { score, map } = m.affinity(x, y); "
                   "return [score, map(x[7])]; })", [(x.tolist(), y.tolist()) for _, x, y in cases])  # fmt: skip
    scores = []
    for (name, x, y), (score, image) in zip(cases, results, strict=True):
        scores.append(affinity_score(x, y, covariance="empirical").item())
        assert score == pytest.approx(scores[-1], abs=1e-6, nan_ok=True), (name, x[0], x[-1])
        if not math.isnan(scores[-1]):
            scale = np.abs(y).max() or 1.0
            wanted = affine_map(x, y, covariance="empirical")(x[7:8]).item()
            assert image / scale == pytest.approx(wanted / scale, abs=1e-6), (name, x[0], x[-1])
    assert any(map(math.isnan, scores)), "the grid should hold dead ranges"
    assert np.nanmin(scores) < 0.2, "the grid should hold tails"


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_javascript_score_has_no_unit(node, scale):
    x = normal_grid(0, 1, 50)
    pairs = [(x, np.tanh(x)), (x * scale, np.tanh(x)), (x, np.tanh(x) * scale), (x + 1e6, np.tanh(x) - 1e6)]
    scores = node(MATHEMATICS, "(m, pairs) => pairs.map(([x, y]) => m.affinity(x, y).score)",
                  [(a.tolist(), b.tolist()) for a, b in pairs])  # fmt: skip
    np.testing.assert_allclose(scores, scores[0], atol=1e-8)


def test_affine_pairs_score_1_and_constant_outputs_are_undefined(node):
    affine, constant_y, constant_x = node(
        MATHEMATICS, "m => [[1, 2, 5, 9], [3, 3, 3, 3]].map(y => m.affinity([0, 1, 4, 8], y).score)"
        ".concat(m.affinity([3, 3, 3, 3], [0, 1, 4, 8]).score)"
    )  # fmt: skip
    assert affine == pytest.approx(1, abs=1e-12)
    assert math.isnan(constant_y)
    assert constant_x == pytest.approx(affinity_score([3.0] * 4, [0.0, 1, 4, 8], covariance="empirical").item())
