"""The affine map against Theorem 3.3, and scikit-learn's shrinkage."""

import numpy as np
import pytest
from clouds import cloud, root
from sklearn.covariance import LedoitWolf

import affscore
from affscore.affine import COVARIANCES, shrinkage

both = pytest.mark.parametrize("covariance", COVARIANCES)
seeds = pytest.mark.parametrize("seed", range(3))


@pytest.mark.parametrize(("n", "d"), [(10, 3), (50, 5), (8, 40), (30, 200)])
@seeds
def test_shrinkage_equals_scikit_learn(n, d, seed):
    x = cloud(np.random.default_rng([seed, n]), n, d)
    assert shrinkage(x).item() == pytest.approx(LedoitWolf().fit(x).shrinkage_, abs=1e-12)


@both
@seeds
@pytest.mark.parametrize(("n", "d"), [(400, 5), (6, 20), (5, 64)])
def test_the_map_pushes_the_covariance_forward(n, d, seed, covariance):
    """A S_X A = S_Y where S_X is invertible, and T sends mean to mean (Theorem 3.3)."""
    rng = np.random.default_rng([seed, n, d])
    x, y = cloud(rng, n, d) + 3, np.tanh(cloud(rng, n, d)) - 1
    fitted = affscore.affine_map(x, y, covariance=covariance)
    a = fitted.matrix()
    np.testing.assert_allclose(a, a.T, atol=1e-12 * abs(a).max())
    assert np.linalg.eigvalsh(a).min() > -1e-10 * abs(a).max()
    assert repr(fitted) == f"AffineMap(d={d}, rank={np.linalg.matrix_rank(a, hermitian=True)})"
    np.testing.assert_allclose(fitted(x.mean(axis=0)), y.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(fitted.offset, y.mean(axis=0) - a @ x.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(fitted(x), (x - x.mean(0)) @ a + y.mean(0), atol=1e-9)
    if covariance == "ledoit_wolf" and n > 5:
        s_x, s_y = (LedoitWolf().fit(v).covariance_ for v in (x, y))
    elif n > d:
        s_x, s_y = (np.cov(v.T, bias=True) for v in (x, y))
    else:
        return
    np.testing.assert_allclose(a @ s_x @ a, s_y, atol=1e-9 * abs(s_y).max())


@seeds
def test_a_singular_input_gives_the_limit_of_a_vanishing_ridge(seed):
    """x varies in 2 of 40 directions: the images of x are those for S_X + epsilon I as epsilon goes to 0."""
    rng = np.random.default_rng(seed)
    x, y = cloud(rng, 100, 40, rank=2), cloud(rng, 100, 40)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    fitted = affscore.affine_map(x, y, covariance="empirical")
    half = root(y.T @ y / 100, 0.5, 1e-14)
    gaps = []
    for ridge in (1e-5, 1e-7, 1e-9):
        s_x = x.T @ x / 100 + ridge * np.trace(x.T @ x / 100) * np.eye(40)
        image = x @ half @ root(half @ s_x @ half, -0.5, 0.0) @ half
        gaps.append(np.abs(fitted(x) - image).max() / np.abs(image).max())
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-3
    # A rank-2 cloud has a rank-2 image.
    assert np.linalg.matrix_rank(fitted(x), tol=1e-8) == 2


def test_the_map_rejects_vectors_of_another_length():
    fitted = affscore.affine_map(np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match=r"v has shape \(4,\); it should be \(3,\) or \(m, 3\)"):
        fitted([0.0] * 4)
