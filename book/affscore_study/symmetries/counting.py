"""Exact counts that compare the sizes of the group of ReLU and of the matrices of rank 1 (footnote 5, appendix E.7).

Entries have magnitude up to M, and K = M / epsilon values of either sign. The paper counts the points of a grid, but
computes with dimensions, which belong to the number of boxes of side epsilon that cover a set. The two numbers differ.

Source: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, footnotes 5 and 11, appendix E.7.
"""

from __future__ import annotations

import math

from affscore.arguments import whole_number
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = ["counting_claims", "group_size", "rank_one_boxes", "rank_one_points"]


def group_size(n: int, k: int) -> int:
    """The number of elements of G_ReLU with their n entries among the k positive values, n! k^n.

    As many boxes cover the group.

    >>> group_size(2, 3)
    18
    """
    whole_number("n", n, 1)
    whole_number("k", k, 1)
    return math.factorial(n) * k**n


def rank_one_points(n: int, k: int) -> int:
    """The number of matrices (n, n) of rank 1 whose entries are integers from -k to k.

    Each is u v^T with integer vectors u and v, and the entries of u have no common factor; u and v are then unique up
    to a common sign. If the largest magnitude in u is a, the magnitudes in v are at most k / a. The number of vectors u
    with largest magnitude a and common factor d is the number of those with largest magnitude a / d and no common
    factor.

    >>> rank_one_points(2, 1), rank_one_points(1, 5)
    (32, 10)
    """
    whole_number("n", n, 1)
    whole_number("k", k, 1)
    without_factor = [0] + [(2 * a + 1) ** n - (2 * a - 1) ** n for a in range(1, k + 1)]
    for a in range(1, k + 1):
        for multiple in range(2 * a, k + 1, a):
            without_factor[multiple] -= without_factor[a]
    return sum(number // 2 * ((2 * (k // a) + 1) ** n - 1) for a, number in enumerate(without_factor) if a)


def rank_one_boxes(n: int, k: int) -> int:
    """A lower bound of the number of boxes of side M / k that cover the matrices (n, n) of rank 1 with entries up to M.

    It is the number of matrices that the proof in the audit puts into different boxes. Raises ValueError if k is odd.

    >>> rank_one_boxes(2, 8) > group_size(2, 8), rank_one_boxes(8, 2) > group_size(8, 2)
    (True, False)
    """
    whole_number("n", n, 1)
    whole_number("k", k, 2)
    if k % 2:
        raise ValueError(f"k is {k}; it should be even.")
    return (k // 2 + 1) ** n * (k + 1) ** (n - 1)


def counting_claims(n: int = 64, k: int = 4096) -> list[Claim]:
    """Tests of appendix E.7 for the first layer of the paper's Myrtle CNN, and a grid with 64 times as many values.

    The sizes are counted in points of the grid, as in the paper, and in boxes.
    """
    group = math.log10(group_size(n, k))
    counts = {"points of the grid": rank_one_points(n, k), "boxes that cover, at least": rank_one_boxes(n, k)}
    sizes = {name: math.log10(count) - group for name, count in counts.items()}
    return judged("symmetries", "counting", {"sizes": sizes}, n=str(n), k=str(k))
