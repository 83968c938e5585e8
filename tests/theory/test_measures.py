"""The theorems by full matrices, against affscore and closed forms."""

import numpy as np
import pytest

from affscore import affinity_score
from affscore.affine import shrinkage
from affscore_book.theory import measures
from affscore_study.theory import trials

seeds = pytest.mark.parametrize("seed", range(3))


@seeds
def test_form_two_is_the_limit_of_ridges(seed):
    """Form two is the limit of vanishing ridges and finds affine images where form one does not.

    These are parts (a) to (c) of the theorem on singular covariances.
    """
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=(8, 20)), measures.random_psd(20, rng)
    for y in (x @ b, np.maximum(x, 0)):
        s_x, s_y = measures.covariance(x), measures.covariance(y)
        centred = x - x.mean(axis=0)
        two = centred @ trials.form_two(s_x, s_y)
        ridge = centred @ trials.form_two(s_x + 1e-9 * np.eye(20), s_y)
        np.testing.assert_allclose(two, ridge, atol=1e-4)
        assert np.linalg.eigvalsh(s_y - measures.covariance(two)).min() > -1e-9
    y = x @ b
    two, one = (form(measures.covariance(x), measures.covariance(y)) for form in (trials.form_two, trials.form_one))
    np.testing.assert_allclose((x - x.mean(axis=0)) @ two, y - y.mean(axis=0), atol=1e-6)
    assert trials.map_score(x, y, two) > 0.999 > 0.9 > trials.map_score(x, y, one)


@seeds
@pytest.mark.parametrize("shape", [(60, 3), (12, 30)])
def test_map_score_with_form_two_is_the_score(shape, seed):
    x = np.random.default_rng(seed).normal(size=shape)
    y = np.tanh(2 * x) + 1
    matrix = trials.form_two(measures.covariance(x), measures.covariance(y))
    assert trials.map_score(x, y, matrix) == pytest.approx(
        affinity_score(x, y, covariance="empirical").item(), abs=1e-6
    )


@seeds
def test_outlier_makes_shrunk_score_negative_above_its_bound(seed):
    """One outlier makes the score with shrinkage negative, but not less than the independent coupling allows."""
    x, y = measures.outlier_pair(seed)
    lowest = 1 - np.sqrt((1 + 1 / (1 - shrinkage(x).item())) / 2)  # the map stretches the cloud by at most 1 / (1 - s)
    assert lowest <= affinity_score(x, y).item() < 0 <= affinity_score(x, y, covariance="empirical").item()
