"""Which is larger, the group of ReLU or the matrices of rank 1? Footnote 5 and appendix E.7, counted exactly.

Entries have magnitude up to M, and K = M / epsilon values of either sign. The paper counts the points of a grid, and
computes with dimensions; those belong to boxes: how many of side epsilon cover a set. The two differ.

Source: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, footnotes 5 and 11, appendix E.7.
"""

from __future__ import annotations

import math

from affscore.arguments import whole_number
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = ["counting_claims", "group_size", "rank_one_boxes", "rank_one_points"]


def group_size(n: int, k: int) -> int:
    """How many elements of G_ReLU have their n entries among the k positive values, n! k^n; as many boxes cover all.

    >>> group_size(2, 3)
    18
    """
    whole_number("n", n, 1)
    whole_number("k", k, 1)
    return math.factorial(n) * k**n


def rank_one_points(n: int, k: int) -> int:
    """How many matrices (n, n) of rank 1 have all entries among the whole numbers from -k to k.

    Each is u v^T with whole u and v, where the entries of u have no common factor: one way but for the signs. If the
    largest magnitude in u is a, those of v go up to k / a. Of all u with largest magnitude a, those with the common
    factor d are as many as those without one and with largest magnitude a / d.

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
    """At least so many boxes of side M / k it takes to cover the matrices (n, n) of rank 1 with entries up to M.

    For even k; it is the number of matrices that the proof in the chapter puts into boxes of their own.

    >>> rank_one_boxes(2, 8) > group_size(2, 8), rank_one_boxes(8, 2) > group_size(8, 2)
    (True, False)
    """
    whole_number("n", n, 1)
    whole_number("k", k, 2)
    if k % 2:
        raise ValueError(f"k is {k}; it should be even.")
    return (k // 2 + 1) ** n * (k + 1) ** (n - 1)


def counting_claims(n: int = 64, k: int = 4096) -> list[Claim]:
    """Appendix E.7 for the first layer of the paper's Myrtle CNN, and a grid with 64 times as many values: by points
    of the grid as it is written, and by boxes."""
    group = math.log10(group_size(n, k))
    counts = {"points of the grid": rank_one_points(n, k), "boxes that cover, at least": rank_one_boxes(n, k)}
    sizes = {name: math.log10(count) - group for name, count in counts.items()}
    return judged("symmetries", "counting", {"sizes": sizes}, n=str(n), k=str(k))
