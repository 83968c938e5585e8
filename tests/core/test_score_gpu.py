"""Scores by matrix products alone: they are those of the decompositions, whatever the clouds look like."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from clouds import cloud, hard_pair
from grids import each

import affscore
import affscore.score_gpu as batched
from affscore.samples import centre
from affscore.score_gpu import affinity_scores

seeds = each("seed", range(3))


def singly(pairs):
    return [affscore.affinity_score(x, y).item() for x, y in pairs]


@seeds
@each(("n", "d"), [(200, 2), (100, 30), (64, 64), (64, 100), (64, 128), (64, 129), (20, 300)])
def test_they_equal_those_of_single_calls(n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    x = [cloud(rng, n, d, orders=orders) for orders in (0, 1, 3)]
    pairs = [(a, f(a)) for a in x for f in (np.tanh, lambda a: np.maximum(a + 0.05, 0))]
    assert affinity_scores(pairs) == pytest.approx(singly(pairs), abs=1e-10)


CASES = (
    "low rank", "repeated rows", "constant channels", "offset", "tiny", "huge", "mixed scales", "identical", "affine",
    "outlier", "equal spectrum",
)  # fmt: skip


@seeds
@each("case", CASES)
@each(("n", "d"), [(60, 12), (40, 70), (12, 60)])
def test_they_equal_those_of_single_calls_on_hard_data(n, d, case, seed):
    rng = np.random.default_rng([seed, n])
    x = cloud(rng, n, d, rank=4 if case == "low rank" else None)
    if case == "repeated rows":
        x[n // 2 :] = x[: n - n // 2]
    elif case == "equal spectrum":
        x = np.sign(rng.normal(size=(n, d)))
    elif case == "outlier":
        x[0] *= 100
    x, y = hard_pair(rng, x, case)
    if case == "identical":
        y = x.copy()
    elif case == "affine":
        y = 3 * x - 1
    # Here and there the same pair beside others that need more steps.
    other = cloud(rng, n, d, orders=3)
    pairs = [(x, y), (other, np.tanh(other))]
    assert affinity_scores(pairs) == pytest.approx(singly(pairs), abs=1e-10)


def test_pairs_of_all_shapes_keep_their_places():
    rng = np.random.default_rng(0)
    x = [cloud(rng, n, d) for n, d in [(30, 4), (12, 30), (12, 40), (30, 4), (30, 1), (12, 30), (31, 4)]] * 7
    pairs = [(a, np.maximum(a + 0.01 * k, 0)) for k, a in enumerate(x)]
    found = affinity_scores(pairs)
    assert found == pytest.approx(singly(pairs), abs=1e-10)
    assert len({round(value, 6) for value in found}) > 40  # a mix-up would show


@pytest.mark.parametrize("case", ["one channel", "dead", "constant input", "two points", "wide spectrum"])
def test_pairs_without_a_ridge_to_rely_on_are_scored_as_single_calls_are(case):
    rng = np.random.default_rng(0)
    x = cloud(rng, 50, 1 if case == "one channel" else 6)
    y = np.maximum(x, 0)
    if case == "dead":
        y[:] = 0.3
    elif case == "constant input":
        x[:] = 1.0
    elif case == "two points":  # of equal norm after centring: Ledoit and Wolf find nothing to shrink
        x = np.where(np.arange(50) % 2, 1.0, -1.0)[:, None] * x[0]
    elif case == "wide spectrum":
        x, y = (v * [1, 1e-5, 1e-6, 1e-7, 1e-7, 1e-7] * (1 + 1e-8 * rng.normal(size=(50, 1))) for v in (x, y))
        x[:, 0] = y[:, 0] = np.where(np.arange(50) % 2, 1.0, -1.0)
    good = cloud(rng, *x.shape)
    pairs = [(good, np.tanh(good)), (x, y)]
    found = affinity_scores(pairs)
    np.testing.assert_allclose(found, singly(pairs), atol=1e-10)
    assert math.isnan(found[1]) == (case == "dead") and math.isfinite(found[0])
    centred = [centre(torch.from_numpy(v))[0] for v in pairs[1]]
    assert not batched._covariances(*centred)[3] >= batched._LEAST


@seeds
@each("least", [1e-1, 1e-3, 1e-5])
def test_the_iteration_solves_its_equation(seed, least):
    """A S_X A = S_Y with A positive, for eigenvalues of S_X S_Y as small as the bound says."""
    rng = np.random.default_rng(seed)
    matrices = []
    for _ in range(2):
        q = np.linalg.qr(rng.normal(size=(3, 20, 20)))[0]
        values = np.concatenate([[least, 1], 10 ** rng.uniform(np.log10(least), 0, size=18)])
        matrices.append(torch.from_numpy((q * values) @ q.transpose(0, 2, 1)))
    s_x, s_y = matrices
    a = batched._solutions(s_x.clone(), s_y.clone(), least)
    torch.testing.assert_close(a @ s_x @ a, s_y, atol=1e-12 / least**0.5, rtol=0)
    assert torch.linalg.eigvalsh((a + a.mT) / 2).min() > 0


@pytest.mark.parametrize("least", [1e-6, 1e-3, 0.5, 1.0])
def test_the_scaling_brings_every_root_to_one(least):
    t = np.geomspace(least, 1, 1001)
    for scale in batched.scales(least):
        t = (3 * scale * t - (scale * t) ** 3) / 2
        assert t.min() > 0 and t.max() <= 1 + 1e-15
    assert abs(t - 1).max() < 1e-14


def test_neither_the_executor_nor_the_groups_change_a_bit(monkeypatch):
    rng = np.random.default_rng(0)
    x = [cloud(rng, 30, d) for d in (5, 80, 5, 70, 5)]
    pairs = [(a, np.tanh(3 * a)) for a in x]
    with ThreadPoolExecutor(3) as pool:
        assert affinity_scores(pairs, solve=pool.map) == affinity_scores(pairs)
    monkeypatch.setattr(batched, "TOGETHER", 1)
    # Alone, a pair takes as many steps as it needs itself.
    assert affinity_scores(pairs) == pytest.approx(singly(pairs), abs=1e-10)


def test_nothing_to_score_and_bad_input():
    assert affinity_scores([]) == []
    x = torch.randn(10, 3)
    with pytest.raises(ValueError, match="NaN or infinite"):
        affinity_scores([(x, x), (x, x / 0)])
    with pytest.raises(ValueError, match="should be the same"):
        affinity_scores([(x, x[:, :2])])


def test_inputs_are_left_as_they_were_and_no_gradient_is_kept():
    x = torch.randn(40, 5, dtype=torch.float64, requires_grad=True)
    before = x.detach().clone()
    assert all(isinstance(value, float) for value in affinity_scores([(x, torch.relu(x))]))
    assert torch.equal(x.detach(), before)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_cpu():
    rng = np.random.default_rng(0)
    x = [torch.from_numpy(cloud(rng, 64, d, orders=2)) for d in (3, 40, 100, 300, 40, 200)]
    pairs = [(a, torch.relu(a)) for a in x]
    found = affinity_scores([(a.cuda(), b.cuda()) for a, b in pairs])
    assert found == pytest.approx(singly(pairs), abs=1e-10)
