"""The theorems by full matrices, against affscore and closed forms."""

import numpy as np
import pytest

from affscore import affinity_score, wasserstein2
from affscore.score import shrinkage
from affscore_book.theory import measures

seeds = pytest.mark.parametrize("seed", range(3))


@seeds
@pytest.mark.parametrize("d", [1, 2, 6])
def test_both_forms_solve_the_equation(d, seed):
    rng = np.random.default_rng([seed, d])
    s_x, s_y = measures.random_psd(d, rng) + 0.1 * np.eye(d), measures.random_psd(d, rng)
    for a in (measures.form_one(s_x, s_y), measures.form_two(s_x, s_y)):
        np.testing.assert_allclose(a @ s_x @ a, s_y, atol=1e-9)
        np.testing.assert_allclose(a, a.T, atol=1e-9)
        assert np.linalg.eigvalsh(a).min() > -1e-9


@seeds
def test_form_two_is_the_limit_and_finds_affine_images_where_form_one_does_not(seed):
    """Parts (a) to (c) of the theorem on singular covariances."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=(8, 20)), measures.random_psd(20, rng)
    for y in (x @ b, np.maximum(x, 0)):
        s_x, s_y = measures.covariance(x), measures.covariance(y)
        centred = x - x.mean(axis=0)
        two = centred @ measures.form_two(s_x, s_y)
        ridge = centred @ measures.form_two(s_x + 1e-9 * np.eye(20), s_y)
        np.testing.assert_allclose(two, ridge, atol=1e-4)
        assert np.linalg.eigvalsh(s_y - measures.covariance(two)).min() > -1e-9
    y = x @ b
    two, one = (form(measures.covariance(x), measures.covariance(y)) for form in (measures.form_two, measures.form_one))
    np.testing.assert_allclose((x - x.mean(axis=0)) @ two, y - y.mean(axis=0), atol=1e-6)
    assert measures.map_score(x, y, two) > 0.999 > 0.9 > measures.map_score(x, y, one)


@seeds
@pytest.mark.parametrize("shape", [(60, 3), (12, 30)])
def test_map_score_with_form_two_is_the_score(shape, seed):
    x = np.random.default_rng(seed).normal(size=shape)
    y = np.tanh(2 * x) + 1
    matrix = measures.form_two(measures.covariance(x), measures.covariance(y))
    assert measures.map_score(x, y, matrix) == pytest.approx(
        affinity_score(x, y, covariance="empirical").item(), abs=1e-6
    )


@seeds
def test_optimal_partners_cost_w2(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 20, 3))
    square = np.mean(np.sum((x - y[measures.optimal_partners(x, y)]) ** 2, axis=1))
    assert square == pytest.approx(wasserstein2(x, y).item() ** 2, rel=1e-10)


@pytest.mark.parametrize("outliers", [1, 2, 6, 24])
def test_outlier_scores_keep_the_proven_bound(outliers):
    shrunk, scores = measures.outlier_scores([outliers])
    assert (scores >= 1 - np.sqrt((1 + 1 / (1 - shrunk)) / 2)).all()
    assert (scores < 0).all() == (outliers == 1)
    x, y = measures.outlier_pair(outliers)
    assert affinity_score(x, y, covariance="empirical").item() >= 0
    assert shrunk[0] == shrinkage(x).item()


@seeds
def test_an_optimal_coupling_has_crossings_but_no_exchange_that_saves(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 25, 2))
    assert measures.paying_swaps(x, y) > 0
    best = y[measures.optimal_partners(x, y)]
    assert measures.paying_swaps(x, best) == 0
    i, j = np.triu_indices(25, 1)
    kept = ((x[i] - y[i]) ** 2 + (x[j] - y[j]) ** 2).sum(axis=1)
    changed = ((x[i] - y[j]) ** 2 + (x[j] - y[i]) ** 2).sum(axis=1)
    assert measures.paying_swaps(x, y) == (changed < kept).sum()


def test_crossing_lines_can_be_the_cheaper_ones():
    x, y = np.array([[0.0, 0], [1, -1]]), np.array([[10.0, 0], [12, 1]])
    assert measures.crossings(x, y) == 1 and measures.paying_swaps(x, y) == 0
    assert measures.crossings(x, y[::-1]) == 0 and measures.paying_swaps(x, y[::-1]) == 1


@seeds
def test_crossings_are_counted_once_and_do_not_change_when_the_plane_is_moved(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 12, 2))
    moved = rng.normal(size=(2, 2))
    assert measures.crossings(x @ moved + 3, y @ moved + 3) == measures.crossings(x, y) > 0
    fan = np.stack([np.cos(np.linspace(0, 3, 7)), np.sin(np.linspace(0, 3, 7))], axis=1)
    assert measures.crossings(fan, -fan) == 7 * 6 / 2  # all lines pass through the middle
    assert measures.crossings([[0, 0], [5, -1]], [[1, 0], [5, 1]]) == 0  # one meets the other's line, beyond its end
