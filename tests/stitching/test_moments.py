"""Closed forms against other implementations."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from affscore_book.stitching.moments import Moments, assignment, best_scales, explained, least_squares
from affscore_study.stitching.maps import stitch_layer


def features(seed, n=40, inputs=5, outputs=6, side=3):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, inputs, side, side, generator=generator, dtype=torch.float64).exp()
    mix = torch.randn(outputs, inputs, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, outputs, side, side, generator=generator, dtype=torch.float64)
    return x, torch.relu(torch.einsum("oi,nihw->nohw", mix, x) + noise)


def rows(x):
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]).numpy()


@pytest.mark.parametrize("rank", [None, 1, 2, 4])
def test_least_squares_of_any_rank_is_optimal(rank):
    x, y = features(0)
    a, b = rows(x), rows(y)
    found = least_squares(Moments.of(x, y), rank).numpy()
    full = np.linalg.lstsq(a, b, rcond=None)[0]
    if rank is None:
        assert np.allclose(found, full.T, atol=1e-9)
        return
    assert np.linalg.matrix_rank(found) == rank
    # Eckart and Young: the best approximation of the fitted values is their truncated singular value decomposition.
    u, s, v = np.linalg.svd(a @ full, full_matrices=False)
    assert np.allclose(a @ found.T, (u[:, :rank] * s[:rank]) @ v[:rank], atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_assignment_is_the_best_permutation_with_scales(seed):
    """The assignment is the best of all permutations, with the best scales."""
    x, y = features(seed, outputs=5)
    permutation, scale = assignment(Moments.of(x, y))
    a, b = rows(x), rows(y)
    correlation = np.corrcoef(a.T, b.T)[5:, :5]
    best = max(itertools.permutations(range(5)), key=lambda p: sum(correlation[i, p[i]] for i in range(5)))
    assert permutation.tolist() == list(best)
    for i in range(5):
        expected = nnls(a[:, [best[i]]], b[:, i])[0][0]
        assert scale[i].item() == pytest.approx(max(expected, 1e-6), rel=1e-9)
    assert torch.equal(best_scales(Moments.of(x, y), permutation), scale)


@pytest.mark.parametrize("kind", ["full", "rank 1", "rank 4", "lasso", "g_relu"])
def test_stitches_start_at_the_closed_form(kind):
    x, y = features(0, inputs=6)
    moments = Moments.of(x, y)
    found = stitch_layer(kind, moments).rounded().matrix().double()
    if kind == "g_relu":
        permutation, scale = assignment(moments)
        expected = torch.zeros(6, 6, dtype=torch.float64)
        expected[range(6), permutation] = scale
    else:
        expected = least_squares(moments, int(kind[5:]) if kind.startswith("rank") else None)
    assert torch.allclose(found, expected, atol=1e-4)


def test_explained_share_is_highest_for_least_squares():
    """The explained share is that of the features and is highest for least squares."""
    x, y = features(0, outputs=5)
    moments = Moments.of(x, y)
    for kind in ("full", "rank 2", "g_relu"):
        matrix = stitch_layer(kind, moments).rounded().matrix().double()
        left = rows(y) - rows(x) @ matrix.detach().numpy().T
        expected = 1 - (left**2).sum() / ((rows(y) - rows(y).mean(0)) ** 2).sum()
        assert explained(matrix, moments) == pytest.approx(expected, abs=1e-9)
        assert explained(matrix, moments) <= explained(least_squares(moments), moments) + 1e-9


def test_features_that_do_not_fit_are_refused():
    x = torch.ones(2, 3, 4, 4)
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 4\) and y \(3, 3, 4, 4\)"):
        Moments.of(x, torch.ones(3, 3, 4, 4))
    with pytest.raises(ValueError, match=r"matrix has shape \(2, 3\)"):
        assignment(Moments.of(x, x[:, :2]))
