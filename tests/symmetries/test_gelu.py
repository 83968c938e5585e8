"""GELU's gap from homogeneity against integrals and samples."""

import math

import pytest
from scipy import integrate, special

from affscore_study.symmetries.gelu import (
    homogeneity_gap,
    homogeneity_slope,
    relative_gap,
)


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
    assert homogeneity_gap(1.0) == 0


def test_the_relative_gap_is_beside_the_size_of_the_output():
    size = integrate.quad(lambda x: (x * special.ndtr(x)) ** 2 * math.exp(-(x**2) / 2), -40, 40)[0] ** 0.5
    expected = homogeneity_gap(3.0).item() / (3 * size / (2 * math.pi) ** 0.25)
    assert relative_gap(3.0).item() == pytest.approx(expected, rel=1e-8) and relative_gap(1.0) == 0
