"""Similarity of representations: what each measure is invariant to, against closed forms and other implementations."""

from __future__ import annotations

import itertools
import json
import math
from collections import OrderedDict
from pathlib import Path

import cka as pytorch_cka
import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, manhattan_distances
from sklearn.preprocessing import KernelCenterer
from torch import nn

from affscore_book.similarity import exercises
from affscore_book.similarity import measures as similarity
from affscore_book.similarity.figures import load_study, related_clouds
from affscore_book.similarity.measures import (
    KERNELS,
    Moments,
    as_samples,
    cka,
    cka_map,
    gram,
    hsic,
    layer_outputs,
    procrustes,
    unit_channels,
)

SEEDS = range(3)
SHAPES = {"vectors": (40, 6), "fewer samples than channels": (12, 30), "maps": (15, 5, 3, 4)}
RELU = {
    "procrustes": lambda x, y: procrustes(x, y, null=0).value,
    "max": lambda x, y: cka(x, y, "max", null=0).value,
    "max, biased": lambda x, y: cka(x, y, "max", unbiased=False, null=0).value,
    "laplace": lambda x, y: cka(x, y, "laplace", null=0).value,
}
ORTHOGONAL = {
    "procrustes": lambda x, y: procrustes(x, y, "orthogonal", null=0).value,
    "linear": lambda x, y: cka(x, y, "linear", null=0).value,
    "linear, biased": lambda x, y: cka(x, y, "linear", unbiased=False, null=0).value,
}


def draw(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Anisotropic, correlated and far from centred, as features are."""
    rng = np.random.default_rng(seed)
    mixed = np.moveaxis(rng.normal(size=shape), 1, -1) @ rng.normal(size=(shape[1], shape[1]))
    spread = np.exp(rng.normal(size=shape[1]))
    return np.moveaxis(np.maximum(mixed + 0.5, 0.1 * mixed) * spread + 3 * rng.normal(size=shape[1]), -1, 1)


def relu_moved(seed: int, x: np.ndarray) -> np.ndarray:
    """x A + 1 v^T for a permutation times positive scales over six orders of magnitude."""
    rng = np.random.default_rng(1000 + seed)
    d = x.shape[1]
    a = np.diag(np.exp(rng.uniform(-7, 7, size=d)))[:, rng.permutation(d)]
    shift = rng.normal(size=d) * a.max(0)
    return np.moveaxis(np.moveaxis(x, 1, -1) @ a + shift, -1, 1)


def rotated(seed: int, x: np.ndarray) -> np.ndarray:
    """c x Q + 1 v^T for an orthogonal Q, of either determinant."""
    rng = np.random.default_rng(2000 + seed)
    d = x.shape[1]
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return np.moveaxis(math.exp(rng.uniform(-3, 3)) * np.moveaxis(x, 1, -1) @ q + rng.normal(size=d), -1, 1)


# -------------------------------------------------------------------------------------------- invariance


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("measure", RELU)
def test_measures_of_relu_see_neither_permutations_nor_scales_nor_shifts(measure, shape, seed):
    x, y = draw(seed, SHAPES[shape]), draw(seed + 50, SHAPES[shape])
    compare = RELU[measure]
    assert compare(x, relu_moved(seed, x)) == pytest.approx(1, abs=1e-10)
    plain = compare(x, y)
    assert plain < 0.9
    assert compare(relu_moved(seed, x), y) == pytest.approx(plain, abs=1e-10)
    assert compare(x, relu_moved(seed + 1, y)) == pytest.approx(plain, abs=1e-10)
    assert compare(y, x) == pytest.approx(plain, abs=1e-10)
    assert compare(x, rotated(seed, x)) < 0.99


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("measure", ORTHOGONAL)
def test_orthogonal_measures_see_neither_rotations_nor_one_scale_nor_shifts(measure, shape, seed):
    x, y = draw(seed, SHAPES[shape]), draw(seed + 50, SHAPES[shape])
    compare = ORTHOGONAL[measure]
    assert compare(x, rotated(seed, x)) == pytest.approx(1, abs=1e-10)
    plain = compare(x, y)
    assert plain < 0.95
    assert compare(rotated(seed, x), y) == pytest.approx(plain, abs=1e-10)
    assert compare(x, rotated(seed + 1, y)) == pytest.approx(plain, abs=1e-10)
    assert compare(y, x) == pytest.approx(plain, abs=1e-10)
    assert compare(x, relu_moved(seed, x)) < 0.99


@pytest.mark.parametrize("group", ["relu", "orthogonal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_related_pairs_are_at_distance_zero(shape, group):
    x = draw(7, SHAPES[shape])
    found = procrustes(x, (relu_moved if group == "relu" else rotated)(7, x), group, null=0)
    assert found.distance < 1e-10


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


# ------------------------------------------------------------------------------------------ independent values


@pytest.mark.parametrize("seed", SEEDS)
def test_matching_against_all_permutations(seed):
    """Definition 5.2, by brute force."""
    x, y = draw(seed, (30, 5)), draw(seed + 9, (30, 5))
    x_, y_ = x / np.linalg.norm(x, axis=0), y / np.linalg.norm(y, axis=0)
    delta = min(np.linalg.norm(x_ - y_[:, list(p)]) for p in itertools.permutations(range(5)))
    found = procrustes(x, y, centred=False, null=0)
    assert found.value == pytest.approx(1 - delta / (2 * math.sqrt(5)), abs=1e-12)


@pytest.mark.parametrize("shape", [(30, 5), (6, 20)])
def test_orthogonal_procrustes_against_scipy(shape):
    x, y = (value - value.mean(0) for value in (draw(0, shape), draw(1, shape)))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    q, _ = orthogonal_procrustes(y, x)
    assert procrustes(x, y, "orthogonal", null=0).distance == pytest.approx(np.linalg.norm(x - y @ q), abs=1e-12)


@pytest.mark.parametrize("group", ["relu", "orthogonal"])
def test_channels_without_partner_count_as_if_matched_with_zero(group):
    x, y = draw(0, (30, 3)), draw(1, (30, 5))
    found = procrustes(x, y, group, null=0)
    assert found.distance == pytest.approx(procrustes(y, x, group, null=0).distance, abs=1e-12)
    x, y = x - x.mean(0), y - y.mean(0)
    if group == "relu":
        x, y = x / np.linalg.norm(x, axis=0), y / np.linalg.norm(y, axis=0)
        padded = np.hstack([x, np.zeros((30, 2))])
        best = min(np.linalg.norm(padded - y[:, list(p)]) for p in itertools.permutations(range(5)))
        assert found.distance == pytest.approx(math.sqrt(2 * best**2 / 8), abs=1e-12)
    else:
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        padded = np.hstack([x, np.zeros((30, 2))])
        q, _ = orthogonal_procrustes(y, padded)
        assert found.distance == pytest.approx(np.linalg.norm(padded - y @ q), abs=1e-12)


def naive_max_gram(x: np.ndarray) -> np.ndarray:
    """Definition 5.3 and appendix D.7.2, with the whole (n, n, C) tensor."""
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    x = x - x.mean(others, keepdims=True)
    x = x / np.sqrt((x**2).sum(others, keepdims=True))
    x = x.reshape(*x.shape[:2], -1)
    return np.einsum("mcp,ncp->mnc", x, x).max(-1)


@pytest.mark.parametrize("tile", [1, 50, 2**16])
@pytest.mark.parametrize("shape", SHAPES)
def test_max_kernel_in_tiles_against_the_whole_tensor(shape, tile, monkeypatch):
    monkeypatch.setattr(similarity, "_TILE", tile)
    x = draw(0, SHAPES[shape])
    np.testing.assert_allclose(gram(x, "max"), naive_max_gram(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("rows", [1, 7, 256])
@pytest.mark.parametrize("shape", SHAPES)
def test_linear_and_laplace_kernels_against_scikit_learn(shape, rows, monkeypatch):
    monkeypatch.setattr(similarity, "_ROWS", rows)
    x = draw(0, SHAPES[shape])
    tilde = np.asarray(unit_channels(x)).reshape(len(x), -1)
    distance = manhattan_distances(tilde)
    scale = 1 / np.sort(distance[np.triu_indices(len(x), 1)])[(len(x) * (len(x) - 1) // 2 - 1) // 2]
    np.testing.assert_allclose(gram(x, "laplace"), laplacian_kernel(tilde, gamma=scale), rtol=1e-12)
    np.testing.assert_allclose(gram(x, "laplace", scale=0.3), laplacian_kernel(tilde, gamma=0.3), rtol=1e-12)
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    rows = (x - x.mean(others, keepdims=True)).reshape(len(x), -1)
    np.testing.assert_allclose(gram(x, "linear"), linear_kernel(rows / np.linalg.norm(rows)), atol=1e-14)


def symmetric(seed: int, n: int) -> np.ndarray:
    a = np.random.default_rng(seed).normal(size=(n, n))
    return a + a.T


@pytest.mark.parametrize("n", [4, 5, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_hsic_against_other_implementations(seed, n):
    k, l = symmetric(seed, n), symmetric(seed + 1, n) + 100  # noqa: E741
    theirs = pytorch_cka.hsic_cross(torch.tensor(k)[None], torch.tensor(l)[None]).item()
    assert hsic(k, l) == pytest.approx(theirs, abs=1e-9)
    biased = np.sum(KernelCenterer().fit_transform(k) * KernelCenterer().fit_transform(l)) / (n - 1) ** 2
    assert hsic(k, l, unbiased=False) == pytest.approx(biased, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_unbiased_hsic_against_its_definition_as_a_u_statistic(seed):
    """The mean over all quadruples of different samples (Song et al. 2012, equation 3 and theorem 2)."""
    n = 7
    k, l = symmetric(seed, n), symmetric(seed + 1, n)  # noqa: E741
    total = np.mean([
        k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q]) for i, j, q, r in itertools.permutations(range(n), 4)
    ])  # fmt: skip
    assert hsic(k, l) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30), (500, 10)])
@pytest.mark.parametrize("seed", SEEDS)
def test_linear_cka_against_a_package_of_another(seed, shape):
    x, y = draw(seed, shape), draw(seed + 1, (shape[0], 9))
    grams = [torch.tensor(value @ value.T)[None] for value in (x - x.mean(0), y - y.mean(0))]
    xy, xx, yy = (value.item() for value in pytorch_cka.hsic(*grams))
    assert cka(x, y, null=0).value == pytest.approx(xy / math.sqrt(xx * yy), abs=1e-12)
    centred = [KernelCenterer().fit_transform(linear_kernel(value)) for value in (x, y)]
    biased = np.sum(centred[0] * centred[1]) / np.linalg.norm(centred[0]) / np.linalg.norm(centred[1])
    assert cka(x, y, unbiased=False, null=0).value == pytest.approx(biased, abs=1e-12)


@pytest.mark.parametrize("kernel", ["max", "laplace"])
def test_other_kernels_against_a_package_of_another(kernel):
    x, y = draw(0, (30, 6)), draw(1, (30, 6))
    if kernel == "max":
        k, l = naive_max_gram(x), naive_max_gram(y)  # noqa: E741
    else:
        k, l = (laplacian_kernel(np.asarray(unit_channels(value)), gamma=2.0) for value in (x, y))  # noqa: E741
    xy, xx, yy = (value.item() for value in pytorch_cka.hsic(torch.tensor(k)[None], torch.tensor(l)[None]))
    scale = 2.0 if kernel == "laplace" else None
    assert cka(x, y, kernel, scale=scale, null=0).value == pytest.approx(xy / math.sqrt(xx * yy), abs=1e-12)


@pytest.mark.parametrize("unbiased", [True, False])
def test_the_map_is_made_of_single_comparisons(unbiased):
    x = [draw(seed, (20, 4)) for seed in range(3)]
    y = [draw(seed, (20, 6)) for seed in (5, 6)]
    found = cka_map([gram(v) for v in x], [gram(v) for v in y], unbiased=unbiased)
    singles = [[cka(a, b, "max", unbiased=unbiased, null=0).value for b in y] for a in x]
    np.testing.assert_allclose(found, singles, atol=1e-12)


# ------------------------------------------------------------------------------------------------ facts


def test_the_max_kernel_is_not_positive_semi_definite():
    """Example E.44 of the paper, on its own vectors, and through ``gram``: some Gram matrix has a negative value."""
    x, c = np.array([[1, 1], [10, 1], [0, 5]]), np.array([10, -1, -1])
    assert c @ (x[:, None] * x).max(-1) @ c == -65
    smallest = {kernel: [torch.linalg.eigvalsh(gram(draw(seed, (20, 3)), kernel))[0].item() for seed in SEEDS]
                for kernel in KERNELS}  # fmt: skip
    assert max(smallest["max"]) < -1e-3
    assert min(smallest["laplace"]) > 0
    assert min(smallest["linear"]) > -1e-12


def test_cka_with_normalised_channels_is_not_invariant_to_rotations():
    x = np.random.default_rng(0).normal(size=(500, 50)) / np.arange(1, 51)
    turned = rotated(0, x)
    assert cka(x, turned, null=0).value == pytest.approx(1, abs=1e-10)
    assert cka(unit_channels(x), unit_channels(turned), null=0).value < 0.6


@pytest.mark.parametrize("seed", SEEDS)
def test_uncentred_procrustes_of_non_negative_features_has_a_floor(seed):
    """Products of non-negative columns are non-negative, so delta^2 <= 2 d; disjoint supports reach it."""
    floor = 1 - 1 / math.sqrt(2)
    eye = np.eye(20)
    assert procrustes(eye[:, :10], eye[:, 10:], centred=False, null=0).value == pytest.approx(floor, abs=1e-12)
    x, y = np.maximum(np.random.default_rng(seed).normal(size=(2, 60, 8)), 0)
    assert procrustes(x, y, centred=False, null=0).value > floor


def test_independent_features_score_high_without_centring():
    """The number of the book: ReLU of independent Gaussians, N = 500, d = 512. The law of large numbers puts the
    cosine of two columns near (1 / (2 pi)) / (1 / 2) = 1 / pi, so the similarity a little above its value there."""
    x, y = np.maximum(np.random.default_rng(0).normal(size=(2, 500, 512)), 0)
    found = procrustes(x, y, centred=False, null=2)
    assert found.value == pytest.approx(0.458, abs=0.002)
    assert found.value > 1 - math.sqrt((1 - 1 / math.pi) / 2)
    assert found.null_mean == pytest.approx(found.value, abs=0.003)
    assert procrustes(x, y, null=0).value < found.value - 0.1


def test_unbiased_cka_of_independent_features_is_zero_in_the_mean():
    biased, unbiased = [], []
    for seed in range(40):
        x, y = np.random.default_rng(seed).normal(size=(2, 20, 40))
        biased.append(cka(x, y, unbiased=False, null=0).value)
        unbiased.append(cka(x, y, null=0).value)
    error = np.std(unbiased) / math.sqrt(40)
    assert abs(np.mean(unbiased)) < 4 * error < 0.1
    assert np.mean(biased) > 0.5


# --------------------------------------------------------------------------------------------- null and dead


@pytest.mark.parametrize("kind", ["procrustes relu", "procrustes orthogonal", *KERNELS])
@pytest.mark.parametrize("shape", ["vectors", "maps"])
def test_null_values_are_those_of_shuffled_samples(kind, shape):
    x, y = draw(0, SHAPES[shape]), draw(1, SHAPES[shape])

    def compare(y, null):
        first, _, group = kind.partition(" ")
        return procrustes(x, y, group, null=null, seed=3) if group else cka(x, y, first, null=null, seed=3)

    found = compare(y, 4)
    rng = np.random.default_rng(3)
    expected = [compare(y[rng.permutation(len(y))], 0).value for _ in range(4)]
    np.testing.assert_allclose(found.null, expected, atol=1e-9)
    assert found.null_mean == pytest.approx(np.mean(expected), abs=1e-9)
    assert found.p_value == (1 + sum(value >= found.value for value in expected)) / 5
    assert math.isnan(compare(y, 0).null_mean)


def test_the_null_tells_related_from_independent():
    x, y = draw(0, (60, 6)), draw(1, (60, 6))
    assert procrustes(x, relu_moved(0, x), null=30).p_value == 1 / 31
    values = [procrustes(draw(seed, (60, 6)), y, null=19, seed=seed).p_value for seed in range(20, 50)]
    assert 0.3 < np.mean(values) < 0.75


@pytest.mark.parametrize("kind", RELU)
def test_dead_channels_are_reported_and_not_compared(kind):
    x, y = draw(0, (40, 4)), draw(1, (40, 4))
    dead_x = np.insert(x, [1, 3], [2.5, -7.0], axis=1)
    dead_y = np.insert(y, 0, 0.0, axis=1)
    assert RELU[kind](dead_x, dead_y) == pytest.approx(RELU[kind](x, y), abs=1e-12)
    found = procrustes(dead_x, dead_y, null=0)
    assert (found.dead_x, found.dead_y, found.channels_x, found.channels_y) == ((1, 4), (0,), 6, 5)
    assert "2 of 6 channels of x dead, 1 of 5 channels of y dead" in repr(found)


def test_dead_channels_are_no_matches():
    """Two channels that are dead in both would add two perfect pairs."""
    x, y = draw(0, (40, 4)), draw(1, (40, 4))
    zeros = np.zeros((40, 2))
    both = procrustes(np.hstack([x, zeros]), np.hstack([y, zeros]), centred=False, null=0)
    assert both.value == pytest.approx(procrustes(x, y, centred=False, null=0).value, abs=1e-12)
    assert both.dead_x == both.dead_y == (4, 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_constant_is_dead_in_every_precision(dtype):
    x = torch.arange(20).reshape(10, 2).to(dtype)
    x[:, 1] = torch.tensor(1000.1).to(dtype)
    assert procrustes(x, x, null=0).dead_x == (1,)


def test_scales_far_from_one_neither_overflow_nor_vanish():
    x, y = draw(0, (20, 4)), draw(1, (20, 4))
    for compare in (*RELU.values(), *ORTHOGONAL.values()):
        for factor in (1e-200, 1e200):
            assert compare(factor * x, y) == pytest.approx(compare(x, y), abs=1e-10)


# ---------------------------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("sizes", [(60,), (1, 20, 39), (30, 30)])
def test_streaming_agrees_with_all_at_once(sizes, offset):
    x, y = draw(0, (60, 5)) + offset, draw(1, (60, 7)) - offset
    moments, start = Moments(), 0
    for size in sizes:
        moments.update(x[start : start + size], y[start : start + size])
        start += size
    assert moments.n == 60
    for group in ("relu", "orthogonal"):
        assert moments.procrustes(group) == pytest.approx(procrustes(x, y, group, null=0).value, abs=1e-8)
    for unbiased in (True, False):
        assert moments.cka(unbiased=unbiased) == pytest.approx(cka(x, y, unbiased=unbiased, null=0).value, abs=1e-8)


def test_streaming_leaves_dead_channels_out():
    x, y = draw(0, (60, 5)), draw(1, (60, 5))
    dead = np.insert(x, 2, 123.4, axis=1)
    moments = Moments()
    for index in (slice(0, 30), slice(30, 60)):
        moments.update(dead[index], y[index])
    assert moments.procrustes() == pytest.approx(procrustes(x, y, null=0).value, abs=1e-8)


def test_streaming_maps_pixel_by_pixel():
    x, y = draw(0, SHAPES["maps"]), draw(1, SHAPES["maps"])
    moments = Moments()
    for index in (slice(0, 7), slice(7, 15)):
        moments.update(as_samples(x[index]), as_samples(y[index]))
    assert moments.procrustes() == pytest.approx(procrustes(x, y, null=0).value, abs=1e-8)


def test_linear_cka_needs_no_gram_matrix():
    """With n = 20,000 a Gram matrix alone would take 3.2 GB."""
    x, y = np.random.default_rng(0).normal(size=(2, 20000, 4))
    moments = Moments()
    moments.update(x, y)
    assert cka(x, y, null=1).value == pytest.approx(moments.cka(), abs=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_a_gpu_gives_the_same(shape):
    x, y = (torch.from_numpy(draw(seed, SHAPES[shape])) for seed in (0, 1))
    for call in (procrustes, cka):
        for option in ("relu", "orthogonal") if call is procrustes else KERNELS:
            here, there = call(x, y, option, null=3), call(x.cuda(), y.cuda(), option, null=3)
            assert there.value == pytest.approx(here.value, abs=1e-9)
            np.testing.assert_allclose(there.null, here.null, atol=1e-9)
    moments = Moments()
    moments.update(as_samples(x).cuda(), as_samples(y).cuda())
    assert moments.procrustes() == pytest.approx(procrustes(x, y, null=0).value, abs=1e-7)
    grams = [gram(x.cuda()), gram(y.cuda())]
    np.testing.assert_allclose(cka_map(grams, grams), cka_map(*[[gram(x), gram(y)]] * 2), atol=1e-9)


# ------------------------------------------------------------------------------------------------ features


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.lost = nn.ReLU()

    def forward(self, x):
        return self.relu(self.relu(x) - 1)


def test_layer_outputs_are_what_the_layers_give_also_where_later_ones_work_in_place():
    network = nn.Sequential(OrderedDict(conv=nn.Conv2d(1, 3, 3), relu=nn.ReLU(inplace=True), pool=nn.MaxPool2d(2)))
    images = torch.randn(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    found = layer_outputs(network.eval(), ["pool", "conv"], images, batch_size=3)
    with torch.no_grad():
        conv = network.conv(images)
        torch.testing.assert_close(found["conv"], conv)
        torch.testing.assert_close(found["pool"], network.pool(conv.relu()))


@pytest.mark.parametrize(
    ("network", "layers", "text"),
    [
        (nn.Sequential(nn.ReLU()).eval(), ["relu7"], "no module 'relu7'; there are 0"),
        (nn.Sequential(nn.ReLU()), ["0"], "training mode"),
        (Shared().eval(), ["relu"], "'relu' runs more than once"),
        (Shared().eval(), ["lost"], "'lost' did not run"),
    ],
)
def test_layers_that_give_no_single_output_are_named(network, layers, text):
    with pytest.raises(ValueError, match=text):
        layer_outputs(network, layers, torch.ones(2, 3))


# --------------------------------------------------------------------------------------- results and exercises

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "similarity" / "study.json"


def test_stored_results_are_strict_json_with_possible_values():
    json.loads(STORED.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    study = load_study(STORED)
    for kind, kernels in study.settings["kinds"].items():
        layers = len(study.layers(kind))
        pairs = math.comb(study.settings["seeds"], 2)
        for measure in study.settings["measures"][kind]:
            values = study.procrustes(kind, measure)
            assert values.shape == (pairs, layers, 2)
            # In the mean, networks are nearer to each other than to shuffled ones, at every layer.
            assert (values > 0.2).all() and (values < 1).all()
            assert (values[..., 0].mean(0) > values[..., 1].mean(0)).all()
        for kernel in kernels:
            maps = study.maps(kind, kernel)
            assert maps.shape == (pairs, layers, layers)
            assert (np.abs(maps) <= 1).all()
            assert np.abs(study.maps(kind, kernel, "null")).mean() < 0.05
    for name in study.dissected:
        for curve in study.dissection(name).values():
            assert (curve["fraction"] >= 0).all() and (curve["fraction"] <= 1).all()
            assert np.ptp(curve["fraction"][:, 0]) == 0


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"settings": 1', "\xff"])
def test_damaged_results_are_refused(text, tmp_path):
    (tmp_path / "results.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="cannot be read as stored results"):
        load_study(tmp_path / "results.json")


def test_exercises(capsys):
    x = related_clouds()["X"]
    turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    for answer, right in ((x @ turn, True), (x, False), (x.flip(1), False), (x**3, False)):
        exercises.check_blind(x, answer)
        assert capsys.readouterr().out.startswith("Right: " if right else "Not yet: ")
    for share, right in ((0.125, True), (0.04, False), (8.0, False)):
        exercises.check_largest_share(share)
        assert capsys.readouterr().out.startswith("Right: " if right else "Not yet: ")


# ---------------------------------------------------------------------------------------------- bad input

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


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: procrustes(GOOD, GOOD, "rotation"), "group is 'rotation'; it should be one of 'relu', 'orthogonal'"),
        (lambda: cka(GOOD, GOOD, "rbf"), "kernel is 'rbf'"),
        (lambda: cka(GOOD[:3], GOOD[:3]), "x has n = 3 samples; this measure needs n >= 4"),
        (lambda: cka(GOOD, GOOD, null=-1), "null is -1"),
        (lambda: procrustes(GOOD, GOOD, null=2.5), "null is 2.5"),
        (lambda: cka(GOOD, GOOD, "max", scale=1.0), "scale is 1.0"),
        (lambda: cka(GOOD, GOOD, "laplace", scale=0.0), "scale is 0.0"),
        (lambda: procrustes(np.ones((4, 2, 3, 3)), np.ones((4, 2, 6, 6))), "height and width should be the same"),
        (lambda: hsic(GOOD, GOOD), r"k has shape \(6, 2\); a Gram matrix should be"),
        (lambda: hsic(np.eye(5), np.eye(6)), "they should be the same"),
        (lambda: hsic(np.eye(3), np.eye(3)), "n >= 4"),
        (lambda: cka_map([], [np.eye(5)]), "at least one Gram matrix"),
        (lambda: cka_map([np.eye(5)], [np.eye(6)]), r"grams_y\[0\] has shape \(6, 6\)"),
        (lambda: cka_map([np.ones((5, 5))], [np.eye(5)]), r"grams_x\[0\] is the same for all pairs"),
        (lambda: cka(np.eye(5), np.eye(5), "linear"), "the same for all pairs"),
        (lambda: Moments().procrustes(), "n = 0 samples"),
        (lambda: Moments().update(np.zeros((2, 2, 3, 3)), GOOD), "see as_samples"),
    ],
)
def test_bad_arguments_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_moments_refuse_other_channels():
    moments = Moments()
    moments.update(GOOD, GOOD)
    with pytest.raises(ValueError, match="x and y have 2 and 1 channels; before they had 2 and 2"):
        moments.update(GOOD, GOOD[:, :1])


def test_things_that_are_not_real_numbers_are_refused():
    for value in ("text", np.array([[True, False]] * 6), GOOD * 1j, object()):
        with pytest.raises(TypeError, match="real numbers"):
            procrustes(value, GOOD)


def test_memory_of_the_max_kernel():
    """Tiles, not (n, n, C): no tensor that torch makes is larger than the Gram matrix itself."""
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    n, d = 600, 40
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0))
    with Watch():
        cka(x, x, "max", null=1)
    assert largest == n * n
