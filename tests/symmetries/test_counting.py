"""Sizes of the group of ReLU and of rank 1: against enumeration, and the inequality that the chapter proves."""

import itertools
import math

import numpy as np
import pytest

from affscore_study.symmetries.counting import (
    counting_claims,
    group_size,
    rank_one_boxes,
    rank_one_points,
)


@pytest.mark.parametrize(("n", "k"), [(1, 4), (2, 1), (2, 3), (2, 4), (3, 1)])
def test_points_are_those_of_enumeration(n, k):
    matrices = np.array(list(itertools.product(range(-k, k + 1), repeat=n * n))).reshape(-1, n, n)
    assert rank_one_points(n, k) == (np.linalg.matrix_rank(matrices) == 1).sum()
    positive = [m for m in matrices if (m >= 0).all() and all(((m > 0).sum(axis) == 1).all() for axis in (0, 1))]
    assert group_size(n, k) == len(positive)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (2, 6), (3, 2), (3, 4)])
def test_the_matrices_of_the_proof_need_boxes_of_their_own(n, k):
    """Those u v^T with u_1 = 1 have rank 1 and entries up to M = k, and two differ by at least 1 in some entry."""
    v = np.array(list(itertools.product(np.arange(k / 2, k + 1), repeat=n)))
    u = np.array([(1, *rest) for rest in itertools.product(np.arange(-1, 1 + 1e-9, 2 / k), repeat=n - 1)])
    chosen = np.einsum("ai,bj->abij", u, v).reshape(-1, n * n)
    assert len(chosen) == rank_one_boxes(n, k) and np.abs(chosen).max() <= k + 1e-9
    apart = max(1, 4000 // len(chosen))
    for one in chosen[:: max(1, len(chosen) // apart)]:
        gaps = np.abs(chosen - one).max(1)
        assert (gaps < 1 - 1e-9).sum() == 1


def test_points_are_fewer_by_the_bound_of_the_chapter():
    """At most n 3^(2n-1) (1 + log k) k^n, which falls behind n! k^n as n grows; in two channels rank 1 wins. Boxes
    decide the other way, from four values a channel on."""
    for n, k in ((2, 50), (8, 40), (64, 256)):
        assert rank_one_points(n, k) <= n * 3 ** (2 * n - 1) * (1 + math.log(k)) * k**n
    assert rank_one_points(2, 50) > group_size(2, 50) and rank_one_points(64, 256) < group_size(64, 256)
    assert all(rank_one_boxes(n, 4 * n) > group_size(n, 4 * n) for n in (2, 3, 8, 64, 512))
    with pytest.raises(ValueError, match=r"^k is 3; it should be even\.$"):
        rank_one_boxes(2, 3)


def test_what_is_counted_decides():
    points, boxes = counting_claims()
    assert points.ours < 0 < boxes.ours and {points.verdict, boxes.verdict} == {"depends on what is counted"}
