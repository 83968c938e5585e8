"""The score has a derivative at random samples, a peak at 1 and corners where the best coupling changes."""

import math

import numpy as np
import pytest

from affscore import paired_affinity_score
from affscore_study.theory import smooth


def test_the_slope_jumps_at_a_peak_and_at_a_tie_only():
    corners = smooth.corners()
    assert abs(corners["random samples"]) < 1e-3
    assert corners["a score of 1"] < -0.1 < 0.1 < corners["equal outputs of ReLU"]


def test_the_jump_at_a_peak_is_that_of_the_correlation():
    """Near 1 on the line, 1 - r is half the share of a move that is not along x, so the score falls by its root."""
    x = np.linspace(-1, 1, 9)[:, None]
    across = x**2 - np.mean(x**2)  # uncorrelated with x
    slope = math.sqrt(np.mean(across**2) / np.mean(x**2) / 2)
    assert smooth.slope_jump(x, x, across) == pytest.approx(-2 * slope, rel=1e-2)


def test_the_jump_at_a_tie_is_that_of_the_two_couplings():
    """Of two equal outputs the one that moves up takes the larger of their inputs."""
    y, move, step = np.array([[0.0], [0.0], [1.0]]), np.eye(3)[:, :1], 1e-6

    def slope(inputs):
        x = np.array(inputs)[:, None]
        right, left = (paired_affinity_score(x, y + t * move, covariance="empirical").item() for t in (step, -step))
        return (right - left) / (2 * step)

    up, down = slope([1.0, 0.0, 3.0]), slope([0.0, 1.0, 3.0])
    assert smooth.slope_jump(np.array([[0.0], [1.0], [3.0]]), y, move) == pytest.approx(up - down, rel=1e-3)
    assert up - down > 0.1
