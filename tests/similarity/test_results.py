"""Every similarity comes with its null, and says which channels are dead."""

import math

import numpy as np
import pytest
from moved_features import RELU, SHAPES, draw

from affscore_book.similarity.kernels import KERNELS, cka
from affscore_book.similarity.procrustes import procrustes
from affscore_book.similarity.results import Similarity


@pytest.mark.parametrize("kind", ["procrustes relu", "procrustes orthogonal", *KERNELS])
@pytest.mark.parametrize("shape", ["vectors", "maps"])
def test_null_values_are_those_of_shuffled_samples(kind, shape):
    x, y = draw(0, SHAPES[shape]), draw(1, SHAPES[shape])

    def compare(y, null):
        first, _, group = kind.partition(" ")
        return procrustes(x, y, group, null=null) if group else cka(x, y, first, null=null)

    found = compare(y, 4)
    rng = np.random.default_rng(0)
    expected = [compare(y[rng.permutation(len(y))], 0).value for _ in range(4)]
    np.testing.assert_allclose(found.null, expected, atol=1e-9)
    assert found.null_mean == pytest.approx(np.mean(expected), abs=1e-9)
    assert isinstance(found, Similarity)
    assert math.isnan(compare(y, 0).null_mean)


@pytest.mark.parametrize("kind", RELU)
def test_dead_channels_are_reported_and_not_compared(kind):
    x, y = draw(0, (40, 4)), draw(1, (40, 4))
    dead_x = np.insert(x, [1, 3], [2.5, -7.0], axis=1)
    dead_y = np.insert(y, 0, 0.0, axis=1)
    assert RELU[kind](dead_x, dead_y) == pytest.approx(RELU[kind](x, y), abs=1e-12)
    found = procrustes(dead_x, dead_y, null=0)
    assert (found.dead_x, found.dead_y, found.channels_x, found.channels_y) == ((1, 4), (0,), 6, 5)
    assert "2 of 6 channels of x dead, 1 of 5 channels of y dead" in repr(found)
