"""Signatures as sequences: DTW against a plain dynamic programme, and what has no sequence."""

import math

import numpy as np
import pytest
from made_signatures import made, programme

from affscore_book.kit.sequences import dtw, sequence

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_dtw_is_the_least_cost_of_a_warping_path(seed):
    generator = np.random.default_rng(seed)
    n, m = generator.integers(1, 40, size=2)
    a, b = generator.normal(size=n), generator.normal(size=m)
    assert dtw(a, b) == pytest.approx(programme(a, b), rel=1e-12)


@pytest.mark.parametrize(("a", "b", "message"), [
    ([], [1.0], r"a has shape \(0,\)"),
    ([1.0], [math.nan], r"b has shape \(1,\) and 1 values that are not finite"),
    ([1.0], [[1.0]], r"b has shape \(1, 1\)"),
])  # fmt: skip
def test_dtw_refuses_what_has_no_distance(a, b, message):
    with pytest.raises(ValueError, match=message):
        dtw(a, b)


def test_dead_calls_are_left_out():
    np.testing.assert_allclose(sequence(made([[0.5, math.nan, 0.25]])), [0.5, 0.25])


def test_a_network_whose_calls_are_all_dead_is_named():
    with pytest.raises(ValueError, match="signature of deadnet has 2 activation calls, all dead"):
        sequence(made([[math.nan, math.nan]], model="deadnet"))


def test_a_network_without_activation_calls_has_no_sequence():
    with pytest.raises(ValueError, match="signature of network has no activation call"):
        sequence(made([[]]))
