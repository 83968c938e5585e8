"""What each measure is invariant to, and what it sees."""

import numpy as np
import pytest
from moved_features import ORTHOGONAL, RELU, SEEDS, SHAPES, draw, relu_moved, rotated

from affscore_book.similarity.procrustes import procrustes


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("compare", "moved", "other"), [
    *((compare, relu_moved, rotated) for compare in RELU.values()),
    *((compare, rotated, relu_moved) for compare in ORTHOGONAL.values()),
])  # fmt: skip
def test_measure_is_invariant_to_its_own_group_only(compare, moved, other, shape, seed):
    """A measure is invariant to its own group and to shifts, and not to the other group."""
    x, y = draw(seed, SHAPES[shape]), draw(seed + 50, SHAPES[shape])
    assert compare(x, moved(seed, x)) == pytest.approx(1, abs=1e-10)
    plain = compare(x, y)
    assert plain < 0.95
    assert compare(moved(seed, x), y) == pytest.approx(plain, abs=1e-10)
    assert compare(x, moved(seed + 1, y)) == pytest.approx(plain, abs=1e-10)
    assert compare(y, x) == pytest.approx(plain, abs=1e-10)
    assert compare(x, other(seed, x)) < 0.99


def test_without_centring_shifts_are_seen_and_scales_are_not():
    x, y = draw(0, (40, 6)), draw(1, (40, 6))

    def compare(x, y):
        return procrustes(x, y, centred=False, null=0).value

    assert compare(x, (x * np.arange(1, 7))[:, ::-1]) == pytest.approx(1, abs=1e-10)
    assert compare(x * np.arange(1, 7), y) == pytest.approx(compare(x, y), abs=1e-10)
    assert abs(compare(x + 5, y) - compare(x, y)) > 0.01


def test_the_order_of_common_samples_does_not_matter():
    x, y = draw(0, (40, 6)), draw(1, (40, 6))
    order = np.random.default_rng(0).permutation(40)
    for compare in (*RELU.values(), *ORTHOGONAL.values()):
        assert compare(x[order], y[order]) == pytest.approx(compare(x, y), abs=1e-10)
