"""Kernels, HSIC and CKA against their definitions and other implementations."""

import itertools
import math

import cka as pytorch_cka
import numpy as np
import pytest
import torch
from moved_features import SEEDS, SHAPES, draw
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, manhattan_distances

from affscore_book.similarity.channels import unit_channels
from affscore_book.similarity.kernels import KERNELS, cka, cka_map, gram
from affscore_book.similarity.procrustes import procrustes
from affscore_study.symmetries.lemmas import keeps_max, sample_kinds


def naive_max_gram(x: np.ndarray) -> np.ndarray:
    """Definition 5.3 and appendix D.7.2, with the whole (n, n, C) tensor."""
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    x = x - x.mean(others, keepdims=True)
    x = x / np.sqrt((x**2).sum(others, keepdims=True))
    x = x.reshape(*x.shape[:2], -1)
    return np.einsum("mcp,ncp->mnc", x, x).max(-1)


@pytest.mark.parametrize("shape", [*SHAPES.values(), (600, 4), (257, 2, 2, 2)])  # more than a tile
def test_max_kernel_in_tiles_against_the_whole_tensor(shape):
    x = draw(0, shape)
    np.testing.assert_allclose(gram(x, "max"), naive_max_gram(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [*SHAPES.values(), (300, 4)])
def test_linear_and_laplace_kernels_against_scikit_learn(shape):
    x = draw(0, shape)
    tilde = np.asarray(unit_channels(x)).reshape(len(x), -1)
    distance = manhattan_distances(tilde)
    scale = 1 / np.sort(distance[np.triu_indices(len(x), 1)])[(len(x) * (len(x) - 1) // 2 - 1) // 2]
    np.testing.assert_allclose(gram(x, "laplace"), laplacian_kernel(tilde, gamma=scale), rtol=1e-12)
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    rows = (x - x.mean(others, keepdims=True)).reshape(len(x), -1)
    np.testing.assert_allclose(gram(x, "linear"), linear_kernel(rows / np.linalg.norm(rows)), atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_cka_against_the_definition_of_hsic_as_a_u_statistic(kernel):
    """The mean over all quadruples of different samples (Song et al. 2012, equation 3 and theorem 2)."""
    x, y = draw(0, (7, 3)), draw(1, (7, 5))

    def hsic(k, l):  # noqa: E741
        quadruples = itertools.permutations(range(7), 4)
        return np.mean([k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q]) for i, j, q, r in quadruples])

    k, l = np.asarray(gram(x, kernel)), np.asarray(gram(y, kernel))  # noqa: E741
    assert cka(x, y, kernel, null=0).value == pytest.approx(hsic(k, l) / math.sqrt(hsic(k, k) * hsic(l, l)), abs=1e-12)


@pytest.mark.parametrize("d", [2, 4])
def test_only_signed_permutations_keep_the_largest_product(d):
    """Only permutations with signs keep the largest product (Lemma E.46)."""
    for seed in range(10):
        for kind, matrix in sample_kinds(d, seed).items():
            assert keeps_max(matrix) == (kind == "permutation with signs")
    assert keeps_max(torch.eye(d).flip(0))
    assert not keeps_max(torch.eye(d).flip(0) + 1e-4 * torch.eye(d))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [12, 30])  # fewer samples than channels, and more
def test_every_kernel_against_a_package_of_another(n, kernel):
    x, y = draw(0, (n, 20)), draw(1, (n, 20))
    xy, xx, yy = (value.item() for value in pytorch_cka.hsic(gram(x, kernel)[None], gram(y, kernel)[None]))
    assert cka(x, y, kernel, null=0).value == pytest.approx(xy / math.sqrt(xx * yy), abs=1e-12)


def test_the_map_is_made_of_single_comparisons():
    x = [draw(seed, (20, 4)) for seed in range(3)]
    y = [draw(seed, (20, 6)) for seed in (5, 6)]
    found = cka_map([gram(v) for v in x], [gram(v) for v in y])
    singles = [[cka(a, b, "max", null=0).value for b in y] for a in x]
    np.testing.assert_allclose(found, singles, atol=1e-12)


def test_the_max_kernel_is_not_positive_semi_definite():
    """Example E.44 of the paper, on its own vectors, and through ``gram``: some Gram matrix has a negative value."""
    x, c = np.array([[1, 1], [10, 1], [0, 5]]), np.array([10, -1, -1])
    assert c @ (x[:, None] * x).max(-1) @ c == -65
    smallest = {kernel: [torch.linalg.eigvalsh(gram(draw(seed, (20, 3)), kernel))[0].item() for seed in SEEDS]
                for kernel in KERNELS}  # fmt: skip
    assert max(smallest["max"]) < -1e-3
    assert min(smallest["laplace"]) > 0
    assert min(smallest["linear"]) > -1e-12


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_a_gpu_gives_the_same(shape):
    x, y = (torch.from_numpy(draw(seed, SHAPES[shape])) for seed in (0, 1))
    for call in (procrustes, cka):
        for option in ("relu", "orthogonal") if call is procrustes else KERNELS:
            here, there = call(x, y, option, null=3), call(x.cuda(), y.cuda(), option, null=3)
            assert there.value == pytest.approx(here.value, abs=1e-9)
            np.testing.assert_allclose(there.null, here.null, atol=1e-9)
    grams = [gram(x.cuda()), gram(y.cuda())]
    np.testing.assert_allclose(cka_map(grams, grams), cka_map(*[[gram(x), gram(y)]] * 2), atol=1e-9)


GOOD = np.arange(12.0).reshape(6, 2) ** 1.5


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cka(GOOD, GOOD, "rbf"), "kernel is 'rbf'"),
        (lambda: cka(GOOD[:3], GOOD[:3]), "x has n = 3 samples; this measure needs n >= 4"),
        (lambda: cka(GOOD, GOOD, null=-1), "null is -1"),
        (lambda: cka_map([GOOD], [GOOD]), r"grams_x\[0\] has shape \(6, 2\); it should be \(6, 6\)"),
        (lambda: cka_map([np.eye(3)], [np.eye(3)]), "n >= 4"),
        (lambda: cka_map([], [np.eye(5)]), "at least one Gram matrix"),
        (lambda: cka_map([np.eye(5)], [np.eye(6)]), r"grams_y\[0\] has shape \(6, 6\)"),
        (lambda: cka_map([np.ones((5, 5))], [np.eye(5)]), r"grams_x\[0\] is the same for all pairs"),
        (lambda: cka(np.eye(5), np.eye(5), "linear"), "the same for all pairs"),
    ],
)
def test_bad_arguments_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
