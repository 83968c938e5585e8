"""The affine map against Theorem 3.3, scikit-learn's shrinkage, and the coordinates in which both are computed."""

import numpy as np
import pytest
import torch
from clouds import cloud, root
from grids import each
from sklearn.covariance import LedoitWolf

import affscore
from affscore.affine import COVARIANCES, coordinates, quick_coordinates, shrinkage

both = each("covariance", COVARIANCES)
seeds = each("seed", range(3))


@each(("n", "d"), [(10, 3), (50, 5), (8, 40), (30, 200)])
@seeds
def test_shrinkage_equals_scikit_learn(n, d, seed):
    x = cloud(np.random.default_rng([seed, n]), n, d)
    assert shrinkage(x).item() == pytest.approx(LedoitWolf().fit(x).shrinkage_, abs=1e-12)


@both
@seeds
@each(("n", "d"), [(400, 5), (6, 20), (5, 64)])
def test_the_map_pushes_the_covariance_forward(n, d, seed, covariance):
    """A S_X A = S_Y where S_X is invertible, and T sends mean to mean (Theorem 3.3)."""
    rng = np.random.default_rng([seed, n, d])
    x, y = cloud(rng, n, d) + 3, np.tanh(cloud(rng, n, d)) - 1
    fitted = affscore.affine_map(x, y, covariance=covariance)
    a = fitted.matrix().numpy()
    np.testing.assert_allclose(a, a.T, atol=1e-12 * abs(a).max())
    assert np.linalg.eigvalsh(a).min() > -1e-10 * abs(a).max()
    np.testing.assert_allclose(fitted(x.mean(axis=0)).numpy(), y.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(fitted.offset.numpy(), y.mean(axis=0) - a @ x.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(fitted(x).numpy(), (x - x.mean(0)) @ a + y.mean(0), atol=1e-9)
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
        gaps.append(np.abs(fitted(x).numpy() - image).max() / np.abs(image).max())
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-3
    # A rank-2 cloud has a rank-2 image.
    assert np.linalg.matrix_rank(fitted(x).numpy(), tol=1e-8) == 2


def test_the_map_rejects_vectors_of_another_length():
    fitted = affscore.affine_map(np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match=r"v has shape \(4,\); it should be \(3,\) or \(m, 3\)"):
        fitted([0.0] * 4)


# ----------------------------------------------------------------------------------------- coordinates


def centred_pair(seed, n, d, rank=None):
    rng = np.random.default_rng([seed, n, d])
    x = cloud(rng, n, d, rank)
    return [torch.from_numpy(v - v.mean(axis=0)) for v in (x, np.maximum(x, 0))]


def products(x, y):
    joint = torch.cat([x, y])
    return joint @ joint.T


@seeds
@each(("n", "d"), [(5, 3), (5, 9), (5, 10), (20, 50), (2, 400)])
@each("find", [coordinates, quick_coordinates])
def test_coordinates_keep_all_inner_products(find, n, d, seed):
    x, y = centred_pair(seed, n, d)
    found = find(x, y)
    if found is None:
        assert find is quick_coordinates and d < 2 * n
        return
    assert not found.y[:, found.inner :].any()
    torch.testing.assert_close(products(found.x, found.y), products(x, y), rtol=0, atol=1e-13 * n)


@seeds
def test_the_basis_leads_back_to_the_samples(seed):
    x, y = centred_pair(seed, 6, 30)
    found = coordinates(x, y, basis=True)
    torch.testing.assert_close(found.x @ found.basis.T, x, rtol=0, atol=1e-13)
    torch.testing.assert_close(found.y @ found.basis.T, y, rtol=0, atol=1e-13)


@seeds
@each("case", ["low rank", "equal rows", "y is x", "constant output"])
def test_dependent_samples_have_right_quick_coordinates_or_none(case, seed):
    x, y = centred_pair(seed, 12, 60, rank=3 if case == "low rank" else None)
    if case == "equal rows":
        x[:4], y[:4] = x[4:8], y[4:8]
        x, y = x - x.mean(dim=0), y - y.mean(dim=0)
    elif case == "y is x":
        y = x
    elif case == "constant output":
        y = torch.zeros_like(y)
    found = quick_coordinates(x, y)
    assert found is None or (products(found.x, found.y) - products(x, y)).abs().max() < 1e-12
