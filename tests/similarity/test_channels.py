"""Features are checked in one place, for every measure."""

import numpy as np
import pytest
import torch
from moved_features import SHAPES, draw

from affscore_book.similarity.channels import as_samples, unit_channels
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes

GOOD = np.arange(12.0).reshape(6, 2) ** 1.5
BAD = {
    "x has shape": (np.zeros(6), GOOD),
    r"y has shape \(6, 2, 1\); it should be \(n, channels\)": (GOOD, np.zeros((6, 2, 1))),
    "x has 6 samples and y has 5": (GOOD, GOOD[:5]),
    "x has n = 1 samples": (GOOD[:1], GOOD[:1]),
    "y holds 2 values that are NaN or infinite": (GOOD, np.where(GOOD > 30, np.nan, GOOD)),
    "y has no channels that vary": (GOOD, np.ones((6, 2))),
}


@pytest.mark.parametrize("compare", [procrustes, cka, lambda x, y: procrustes(x, y, "orthogonal")])
@pytest.mark.parametrize("text", BAD)
def test_bad_features_are_named(text, compare):
    with pytest.raises(ValueError, match=text):
        compare(*BAD[text])


def test_things_that_are_not_real_numbers_are_refused():
    for value in ("text", np.array([[True, False]] * 6), GOOD * 1j, object()):
        with pytest.raises(TypeError, match="real numbers"):
            procrustes(value, GOOD)


def test_units_have_norm_one_and_what_does_not_vary_is_zero():
    x = draw(0, SHAPES["maps"])
    x[:, 2] = 7.0
    found = unit_channels(x)
    wanted = x - x.mean((0, 2, 3), keepdims=True)
    wanted[:, 2] = 0
    norms = np.linalg.norm(wanted.transpose(1, 0, 2, 3).reshape(5, -1), axis=1)
    np.testing.assert_allclose(found, wanted / np.where(norms > 0, norms, 1)[:, None, None], atol=1e-14)
    assert torch.equal(as_samples(found)[:12, 0], found[0, 0].flatten())
