"""The theorems by full matrices, and what the score sees or does not, against affscore and closed forms."""

import math

import numpy as np
import pytest

from affscore import affinity_score, paired_affinity_score, wasserstein2
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
@pytest.mark.parametrize("name", ["normal", "uniform", "skewed", "heavy", "two clumps"])
def test_gelbrich_and_its_equality_case(name, seed):
    rng = np.random.default_rng([seed, 11])
    x, y = measures.law(name, 50, 2, rng), measures.law("skewed", 50, 2, rng)
    assert wasserstein2(x, y).item() >= measures.normal_distance(x, y) - 1e-9
    image = measures.fixed_image(x, seed)
    assert wasserstein2(x, image).item() == pytest.approx(measures.normal_distance(x, image), rel=1e-7)
    assert measures.normal_distance(x, x + 2) == pytest.approx(2 * math.sqrt(2), rel=1e-6)


@seeds
def test_optimal_partners_cost_w2(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 20, 3))
    square = np.mean(np.sum((x - y[measures.optimal_partners(x, y)]) ** 2, axis=1))
    assert square == pytest.approx(wasserstein2(x, y).item() ** 2, rel=1e-10)


@seeds
def test_shuffling_changes_only_the_paired_score(seed):
    x = np.random.default_rng(seed).normal(size=(100, 2))
    scores, paired = measures.shuffled_scores(x, np.tanh(x), [0, 0.5, 1])
    np.testing.assert_allclose(scores, scores[0], atol=1e-12)
    assert paired[0] > paired[1] > paired[2]
    assert paired[0] == pytest.approx(paired_affinity_score(x, np.tanh(x), covariance="empirical").item())


def test_independent_scores_tend_to_1_on_the_line_and_are_never_0():
    means = [measures.independent_scores(n, 1, 50).mean() for n in (32, 256, 2048)]
    assert means == sorted(means) and means[-1] > 0.95
    assert measures.independent_scores(64, 50, 5).min() > 0.05


def test_only_shrinkage_loses_identifiability():
    assert measures.identifiability(50, 20, 3, "empirical").min() > 1 - 1e-6
    assert measures.identifiability(50, 20, 3, "ledoit_wolf").max() < 0.9


@pytest.mark.parametrize("outliers", [1, 2, 6, 24])
def test_outlier_scores_keep_the_proven_bound(outliers):
    shrunk, scores = measures.outlier_scores([outliers])
    assert (scores >= 1 - np.sqrt((1 + 1 / (1 - shrunk)) / 2)).all()
    assert (scores < 0).all() == (outliers == 1)
    x, y = measures.outlier_pair(outliers)
    assert affinity_score(x, y, covariance="empirical").item() >= 0
    assert shrunk[0] == shrinkage(x).item()


def test_turned_scores_start_at_1_and_a_square_recovers_at_a_quarter_turn():
    square = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 9)]), axis=-1).reshape(-1, 2)
    zero, tilted, quarter = measures.turned_scores(square, [0, 45, 90])
    assert zero == pytest.approx(1, abs=1e-6) and quarter == pytest.approx(1, abs=1e-6) and tilted < 0.95


@seeds
def test_r_squared(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 1))
    y = np.maximum(x, 0)
    r = np.corrcoef(x[:, 0], y[:, 0])[0, 1]
    assert measures.r_squared(x, y) == pytest.approx(r**2)
    assert affinity_score(x, y).item() == pytest.approx(1 - math.sqrt(1 - r))
    assert measures.r_squared(x, rng.normal(size=(60, 1))) >= 0
    assert measures.r_squared(x, 3 * x - 1, 10 * x, 30 * x - 1) == pytest.approx(1)
    assert measures.r_squared(x, y, x, -y) < 0
    wide = rng.normal(size=(20, 19))
    assert measures.r_squared(wide, rng.normal(size=(20, 3))) == pytest.approx(1)
