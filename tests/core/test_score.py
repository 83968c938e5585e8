"""The affinity score against an oracle that shares no code with it, its invariances, gradients and errors."""

import math
import threading

import numpy as np
import ot
import pytest
import torch
from clouds import cloud, hard_pair, root
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf

from affscore.affine import COVARIANCES, affine_map, shrinkage
from affscore.score import affinity_score, paired_affinity_score, wasserstein2

both = pytest.mark.parametrize("covariance", COVARIANCES)
seeds = pytest.mark.parametrize("seed", range(3))


def prepared(value):
    """Centred twice and rescaled, so that the oracle's own rounding does not depend on offset and scale."""
    value = np.asarray(value, dtype=np.float64)
    value = value / np.abs(value).max()
    for _ in range(2):
        value = value - value.mean(axis=0)
    return value / np.abs(value).max()


def oracle(x, y, covariance):
    """Equation 5 by full d x d matrices, scikit-learn's shrinkage and POT's linear programme."""
    x, y = prepared(x), prepared(y)
    if covariance == "ledoit_wolf":
        s_x, s_y = (LedoitWolf(assume_centered=True).fit(v).covariance_ for v in (x, y))
    else:
        s_x, s_y = (v.T @ v / len(v) for v in (x, y))
    half = root(s_y, 0.5, 1e-14)
    a = half @ root(half @ s_x @ half, -0.5, 1e-13) @ half
    uniform = np.full(len(x), 1 / len(x))
    w2 = ot.emd2(uniform, uniform, ot.dist(x @ a, y), numItermax=10_000_000)
    return 1 - math.sqrt(max(w2, 0) / (2 * np.trace(s_y)))


def agrees(ours, theirs, tolerance=1e-8):
    """To the tolerance, and near a score of 1, where a root magnifies rounding, on (1 - score)^2."""
    return abs(ours - theirs) <= tolerance or abs((1 - ours) ** 2 - (1 - theirs) ** 2) <= tolerance


PLAIN = [("plain", n, d) for n, d in [(2, 1), (40, 3), (200, 17), (20, 30), (16, 33), (30, 200)]]
CASES = ["low rank", "constant channels", "offset", "tiny", "huge", "mixed scales"]
HARD = [(case, n, d) for case in CASES for n, d in [(60, 12), (20, 50)]]


@both
@seeds
@pytest.mark.parametrize(("case", "n", "d"), PLAIN + HARD)
def test_score_equals_the_oracle(case, n, d, seed, covariance):
    rng = np.random.default_rng([seed, n, d])
    x, y = hard_pair(rng, cloud(rng, n, d, rank=4 if case == "low rank" else None), case)
    if case == "plain":
        y = y + 0.01 * rng.normal(size=(n, d))
    assert agrees(affinity_score(x, y, covariance=covariance).item(), oracle(x, y, covariance))


@seeds
@pytest.mark.parametrize("d", [1, 4, 30])
def test_a_positive_affine_image_scores_one_without_shrinkage(d, seed):
    rng = np.random.default_rng([seed, d])
    x, b = cloud(rng, 20, d), rng.normal(size=(d, d))
    score = affinity_score(x, x @ (b @ b.T) + 5, covariance="empirical").item()
    assert (1 - score) ** 2 < 1e-12


@both
@seeds
def test_paired_score_compares_each_image_with_its_output(seed, covariance):
    """The paired score compares the image of each input with that input's own output.

    The oracle is the map applied to the inputs, with NumPy's moments.
    """
    rng = np.random.default_rng(seed)
    x = cloud(rng, 40, 5)
    y = np.maximum(x, 0)[rng.permutation(40)]
    apart = affine_map(x, y, covariance=covariance)(x) - y
    expected = 1 - math.sqrt((apart**2).sum(axis=1).mean() / (2 * y.var(axis=0).sum()))
    assert paired_affinity_score(x, y, covariance=covariance).item() == pytest.approx(expected, abs=1e-9)
    assert expected < affinity_score(x, y, covariance=covariance).item() - 0.1  # it sees that rows were permuted


@seeds
@pytest.mark.parametrize(("n", "d"), [(2, 1), (17, 1), (17, 2), (40, 3), (30, 100)])
def test_wasserstein_equals_pot(n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    x, y = rng.normal(size=(n, d)), rng.uniform(size=(n, d)) + 1
    uniform = np.full(n, 1 / n)
    theirs = math.sqrt(ot.emd2(uniform, uniform, ot.dist(x, y)))
    assert wasserstein2(x, y).item() == pytest.approx(theirs, rel=1e-10)


@given(shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_wasserstein_is_a_distance_that_knows_translations(shift, scale, seed):
    x = np.random.default_rng(seed).normal(size=(12, 3))
    y = x[::-1] + shift
    assert wasserstein2(x, x[::-1]).item() == 0
    distance = wasserstein2(x, y).item()
    assert distance == pytest.approx(abs(shift) * math.sqrt(3), rel=1e-9, abs=1e-12)
    assert wasserstein2(scale * x, scale * y).item() == pytest.approx(scale * distance, rel=1e-9, abs=1e-12)


@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(30, 4), (12, 30), (8, 20), (40, 1)]),
    scale_x=st.floats(-25, 25),
    scale_y=st.floats(-25, 25),
    covariance=st.sampled_from(COVARIANCES),
)
@settings(max_examples=40, deadline=None)
def test_invariances(seed, shape, scale_x, scale_y, covariance):
    """Common rotations, translations, separate positive scalings, common and separate permutations of rows."""
    rng = np.random.default_rng(seed)
    n, d = shape
    x = cloud(rng, n, d)
    y = np.maximum(x, 0) + 0.05 * rng.normal(size=shape)
    q = np.linalg.qr(rng.normal(size=(d, d)))[0] if d > 1 else np.eye(1)

    def score(a, b):
        return affinity_score(a, b, covariance=covariance).item()

    base = score(x, y)
    assert score(10**scale_x * x, 10**scale_y * y) == pytest.approx(base, abs=1e-9)
    assert score(x @ q, y @ q) == pytest.approx(base, abs=1e-9)
    assert score(x + rng.normal(size=d), y - 3 * rng.normal(size=d)) == pytest.approx(base, abs=1e-9)
    assert score(x, y[rng.permutation(n)]) == pytest.approx(base, abs=1e-9)
    assert base <= 1
    assert paired_affinity_score(x, y, covariance=covariance).item() <= base + 1e-12


@seeds
@pytest.mark.parametrize("d", [1, 2, 30])
def test_without_shrinkage_the_score_is_in_the_unit_interval(d, seed):
    rng = np.random.default_rng([seed, d])
    x, y = rng.standard_t(2, size=(15, d)), rng.standard_t(1.5, size=(15, d))
    assert 0 <= affinity_score(x, y, covariance="empirical").item() <= 1
    assert 1 - math.sqrt(2) <= paired_affinity_score(x, y, covariance="empirical").item() <= 1


def one_outlier(seed, n=12, d=8):
    """x has one outlier, so it is shrunk hard; y is spread evenly along the outlier's direction and is not."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d) / math.sqrt(d)
    x = 0.1 * rng.normal(size=(n, d))
    x[0] += 10 * direction
    y = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * direction + 0.01 * rng.normal(size=(n, d))
    return x, y


@seeds
def test_shrunk_scores_stay_above_the_proven_bound(seed):
    """With shrinkage a score may fall below zero, but not below the proven bound."""
    x, y = one_outlier(seed)
    score, s = affinity_score(x, y).item(), shrinkage(x).item()
    assert 0.5 < s < 1
    assert 1 - math.sqrt((1 + 1 / (1 - s)) / 2) - 1e-9 <= score < 0
    assert agrees(score, oracle(x, y, "ledoit_wolf"))


@pytest.mark.parametrize("degree", [3, 7, 41])
def test_odd_powers_match_the_closed_form(degree):
    """The score of an odd power is that of the closed form for monotone functions.

    On a fine quantile grid of U(-1, 1) the score is 1 - sqrt(1 - r), r = sqrt(3 (2k + 1)) / (k + 2).
    """
    n = 20_000
    x = (2 * np.arange(n) + 1) / n - 1
    r = math.sqrt(3 * (2 * degree + 1)) / (degree + 2)
    score = affinity_score(x, x**degree, covariance="empirical").item()
    assert score == pytest.approx(1 - math.sqrt(1 - r), abs=1e-6)


def differentiable_pair(seed, n, d):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, dtype=torch.float64, generator=generator)
    y = torch.tanh(2 * x) + 0.3 * torch.randn(n, d, dtype=torch.float64, generator=generator)
    return x.requires_grad_(), y.requires_grad_()


@both
@pytest.mark.parametrize(("n", "d"), [(12, 1), (9, 3), (5, 8), (4, 8)])
@pytest.mark.parametrize("function", [affinity_score, paired_affinity_score])
def test_gradients_equal_finite_differences(function, n, d, covariance):
    pair = differentiable_pair(0, n, d)
    assert torch.autograd.gradcheck(lambda a, b: function(a, b, covariance=covariance), pair, atol=1e-5, rtol=1e-4)
    assert torch.autograd.gradcheck(wasserstein2, pair)


@both
@pytest.mark.parametrize(
    "case", ["identical", "dead", "constant channel", "repeated rows", "equal spectrum", "rank one"]
)
def test_gradients_are_finite_everywhere(case, covariance):
    x, y = (v.detach() for v in differentiable_pair(0, 10, 4))
    if case == "identical":
        y = x.clone()
    elif case == "dead":
        y = torch.full_like(y, 0.3)
    elif case == "constant channel":
        x[:, 1], y[:, 2] = 1.0, 0.0
    elif case == "repeated rows":
        x[5:], y[5:] = x[:5], y[:5]
    elif case == "equal spectrum":
        x = torch.cat([torch.eye(4), -torch.eye(4)]).double()
        y = x.clone()
    elif case == "rank one":
        x = x[:, :1] * torch.ones(4, dtype=torch.float64)
    x.requires_grad_(), y.requires_grad_()
    score = affinity_score(x, y, covariance=covariance)
    score.backward()
    assert torch.isnan(score) == (case == "dead")
    assert torch.isfinite(x.grad).all() and torch.isfinite(y.grad).all()


@pytest.mark.parametrize("enter", [lambda: torch.autocast("cpu", torch.bfloat16), torch.inference_mode])
def test_ambient_settings_do_not_change_a_bit(enter):
    x = torch.randn(80, 30, generator=torch.Generator().manual_seed(0))
    plain = affinity_score(x, torch.relu(x)).item()
    with enter():
        assert affinity_score(x, torch.relu(x)).item() == plain
    torch.set_default_dtype(torch.float64)
    try:
        assert affinity_score(x, torch.relu(x)).item() == plain
    finally:
        torch.set_default_dtype(torch.float32)


@both
@pytest.mark.parametrize(("n", "d"), [(200, 100), (60, 500)])
def test_the_callers_threads_do_not_change_a_bit(n, d, covariance):
    x = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    values = set()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            values.add(affinity_score(x, torch.relu(x), covariance=covariance).item())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(values) == 1


def test_a_score_leaves_threads_to_new_threads():
    """Threads that start while another one computes a score keep the process's number of torch threads."""
    x = np.random.default_rng(0).normal(size=(400, 3))
    before, found, all_start = torch.get_num_threads(), [], threading.Barrier(4)

    def run():
        all_start.wait()
        affinity_score(x, abs(x))
        found.append(torch.get_num_threads())

    try:
        torch.set_num_threads(3)
        threads = [threading.Thread(target=run) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [3] * 4 and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_memory_does_not_grow_with_the_square_of_d():
    """A (d, d) matrix in float64 would need 320 GB here."""
    x = torch.randn(4, 200_000, generator=torch.Generator().manual_seed(0))
    assert 0 < affinity_score(x, torch.relu(x)).item() < 1


@pytest.mark.parametrize("value", [0.0, 3.5, -1e12])
def test_constant_output_is_undefined_and_constant_input_is_not(value):
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    constant = torch.full_like(x, value)
    assert math.isnan(affinity_score(x, constant).item())
    assert math.isnan(affinity_score(x, constant.double() * (1 + 1e-16)).item())
    assert affinity_score(constant, x, covariance="empirical").item() == pytest.approx(1 - math.sqrt(0.5))
    torch.testing.assert_close(affine_map(constant, x)(constant), x.double().mean(0).expand(20, 3))


@pytest.mark.parametrize("function", [affinity_score, paired_affinity_score, affine_map])
@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros((5, 2)), np.zeros((4, 2)), r"x has shape \(5, 2\) and y has shape \(4, 2\)"),
        (np.zeros((1, 2)), np.zeros((1, 2)), "n = 1 samples"),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), r"x has shape \(2, 2, 2\)"),
        (np.zeros((4, 0)), np.zeros((4, 0)), "at least one column"),
        (np.array([1.0, np.nan]), np.zeros(2), "x holds 1 values that are NaN"),
        (np.zeros(3), np.array([np.inf, 1.0, -np.inf]), "y holds 2 values"),
        (np.zeros(3), np.array([np.inf, 1.0, 2.0]), "y holds 1 values"),
    ],
)
def test_bad_input_is_named(function, x, y, words):
    with pytest.raises(ValueError, match=words):
        function(x, y)
    with pytest.raises(ValueError, match="covariance is 'oas'; it should be one of 'ledoit_wolf', 'empirical'"):
        function(np.eye(3), np.eye(3), covariance="oas")


@pytest.mark.gpu
@both
@pytest.mark.parametrize(("n", "d"), [(100, 20), (50, 400)])
def test_the_gpu_agrees(n, d, covariance):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0))
    cpu = affinity_score(x, torch.relu(x), covariance=covariance).item()
    gpu = affinity_score(x.cuda(), torch.relu(x).cuda(), covariance=covariance)
    assert gpu.is_cuda and gpu.item() == pytest.approx(cpu, abs=1e-10)


@pytest.mark.parametrize("d", [1, 10, 39, 60, 100, 400])
def test_constant_inputs_map_to_the_mean_of_the_outputs(d):
    """Constant inputs are mapped to the mean of the outputs, so the score is 1 - sqrt(1/2) in every width."""
    y = np.random.default_rng(0).normal(size=(40, d))
    for covariance in ("ledoit_wolf", "empirical"):
        found = affinity_score(np.full_like(y, 5.0), y, covariance=covariance).item()
        assert found == pytest.approx(1 - 0.5**0.5, abs=1e-12)
