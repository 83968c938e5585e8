"""The measures of complexity on signals of known frequency and slope."""

import math

import numpy as np
import pytest

from affscore_book.redshift.complexity import dct_frequency, fourier_frequency, unexplained_variance
from affscore_book.redshift.networks import grid_points
from affscore_study.redshift.claims import dct_excess
from affscore_study.redshift.draws import image_of, random_network


@pytest.mark.parametrize(("k", "m"), [(1, 0), (3, 4), (0, 9), (15, 8)])
def test_fourier_frequency_of_a_wave(k, m):
    x = 2 * np.pi * np.arange(32) / 32
    wave = 3 + np.cos(k * x[:, None] + m * x + 0.3)
    assert fourier_frequency(wave) == pytest.approx(math.hypot(k, m) / 16, rel=1e-12)


@pytest.mark.parametrize(("k", "m"), [(1, 0), (0, 1), (3, 4), (0, 9), (31, 20)])
def test_dct_frequency_of_a_wave_and_its_excess_over_the_floor(k, m):
    x = (np.arange(32) + 0.5) / 32
    wave = -7 + 2 * np.outer(np.cos(np.pi * k * x), np.cos(np.pi * m * x))
    assert dct_frequency(wave) == pytest.approx(math.hypot(k, m), rel=1e-12)
    assert dct_excess(wave) == pytest.approx(math.hypot(k, m) - 1, abs=1e-12) and dct_excess(wave) >= 0
    mixture = np.add.outer(3 * np.cos(np.pi * 2 * x), 1 * np.cos(np.pi * 10 * x))
    assert dct_frequency(mixture) == pytest.approx((9 * 2 + 1 * 10) / 10, rel=1e-12), "weighted by power"


def test_fourier_has_a_floor_where_the_cosine_transform_has_none():
    """A ramp in any direction: the closed form of its Fourier series, |F_k|^2 ~ 1 / sin^2(pi k / n)."""
    n = 32
    k = np.arange(1, n)
    power = 1 / np.sin(np.pi * k / n) ** 2
    floor = (power * np.minimum(k, n - k)).sum() / power.sum() / (n / 2)
    points = grid_points(n)
    for angle in (0.0, 0.4, 0.7):
        ramp = (points[:, 0] * math.cos(angle) + points[:, 1] * math.sin(angle)).reshape(n, n)
        assert fourier_frequency(ramp) == pytest.approx(floor, rel=1e-9)
        assert 1 <= dct_frequency(ramp) < 1.04


@pytest.mark.parametrize("seed", range(4))
def test_frequency_has_a_floor_and_fourier_ranks_waves_low(seed):
    """No image is below the floor of the cosine frequency, and Fourier puts a periodic wave below a ramp."""
    image = np.random.default_rng(seed).normal(size=(9, 7)).cumsum(0).cumsum(1)
    assert dct_frequency(image) >= 1
    wave = np.tile(np.cos(2 * np.pi * np.arange(32) / 32 + seed), (32, 1))
    assert fourier_frequency(wave) < fourier_frequency(np.tile(np.arange(32.0), (32, 1)))


@pytest.mark.parametrize("shape", [(32, 32), (7, 12)])
def test_bend_is_what_a_linear_regression_leaves(shape):
    rng = np.random.default_rng(sum(shape))
    image = rng.normal(size=shape)
    row, column = (axis.ravel() for axis in np.indices(shape))
    design = np.stack([np.ones_like(row), row, column], axis=1).astype(float)
    rest = image.ravel() - design @ np.linalg.lstsq(design, image.ravel(), rcond=None)[0]
    assert unexplained_variance(image) == pytest.approx(rest.var() / image.var(), rel=1e-10)
    plane = (design @ rng.normal(size=3)).reshape(shape)
    assert unexplained_variance(plane) == pytest.approx(0, abs=1e-12)
    # Power adds up: what a plane explains, and an even wave of which it explains nothing.
    wave = np.tile(np.cos(2 * np.pi * (np.arange(shape[1]) + 0.5) / shape[1]), (shape[0], 1))
    tilted = np.tile(np.arange(shape[0])[:, None], (1, shape[1])).astype(float)
    expected = wave.var() / (wave.var() + tilted.var())
    assert unexplained_variance(wave + tilted) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("measure", [unexplained_variance, fourier_frequency, dct_frequency, dct_excess])
def test_measures_have_no_unit_and_are_undefined_on_constants(measure):
    image = image_of(random_network(seed=1), "tanh", grid=16)
    assert measure(image * 2**20 + 2**22) == pytest.approx(measure(image), rel=1e-6)
    assert measure(image.T) == pytest.approx(measure(image), rel=1e-9)
    assert math.isnan(measure(np.full((8, 8), 0.1)))
    with pytest.raises(ValueError, match=r"image has shape \(4,\); it should be \(rows, columns\)"):
        measure(np.zeros(4))
    with pytest.raises(ValueError, match="image holds values that are NaN or infinite"):
        measure(np.array([[0.0, math.nan], [1.0, 2.0]]))
