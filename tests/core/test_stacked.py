"""The scores of stacked calls: equal to the processor's, or left to it."""

import warnings

import numpy as np
import pytest
import torch
from clouds import cloud, hard_pair
from scipy.optimize import linear_sum_assignment
from small_network import Dead, Made, images, network
from torch import nn

import affscore.measuring
from affscore import affinity_score, score_queue, signature, stacked
from affscore.errors import AffscoreWarning
from affscore.samples import rounding_of
from affscore.stacked import PROMISE, device_name, most_calls, quintics, stacked_scores

SHAPES = (64, 12), (48, 48), (40, 70), (30, 60), (24, 200)


def scored(*pairs, device="cpu"):
    """The scores of pairs of arrays of one shape as a stack."""
    x, y = ([torch.as_tensor(value, device=device) for value in side] for side in zip(*pairs, strict=True))
    return stacked_scores(*(torch.stack(v) for v in (x, y, *(list(map(rounding_of, side)) for side in (x, y)))))


def left_or_equal(*pairs, device="cpu"):
    """Which scores of a stack were returned; those agree with the processor's as promised."""
    found = scored(*pairs, device=device)
    sure = ~found.isnan()
    for score, pair in zip(
        found[sure], [pair for pair, is_sure in zip(pairs, sure, strict=True) if is_sure], strict=True
    ):
        assert score.item() == pytest.approx(affinity_score(*pair).item(), abs=PROMISE)
    return sure.tolist()


def pairs_of(case, rng, n, d):
    """Inputs and outputs that are hard in one way."""
    x = cloud(rng, n, d)
    shape, y = (n, d), np.maximum(x, 0)
    one = np.arange(d) == 0
    made = {
        "relu": lambda: (x, y),
        "low rank": lambda: ((low := cloud(rng, n, d, rank=3)), np.maximum(low, 0)),
        "low rank of outputs": lambda: (x, cloud(rng, n, d, rank=3)),
        "wide spectrum": lambda: ((wide := cloud(rng, n, d, orders=5)), np.maximum(wide, 0)),
        "tied points": lambda: ((tied := np.round(x * 2)), np.maximum(tied, 0)),
        "each point twice": lambda: ((twice := np.repeat(x[: n // 2], 2, axis=0)), np.maximum(twice, 0)),
        "crossing": lambda: (x, -x),
        "folded": lambda: (x, -np.abs(x)),
        "unrelated": lambda: (x, cloud(rng, n, d)),
        "near 1": lambda: (x, 3 * x + 1e-4 * np.tanh(9 * x)),
        "affine": lambda: (x, 3 * x + 1),
        "near 0": lambda: (x * np.where(one, 1e3, 1), np.tanh(x * np.where(one, 1e3, 1)) * np.where(one, 1e-3, 1)),
        "heavy tails": lambda: ((heavy := rng.standard_cauchy(shape)), np.maximum(heavy, 0)),
        "an outlier": lambda: ((far := x * np.where(np.arange(n) == 0, 1e4, 1)[:, None]), np.tanh(far)),
        "isotropic": lambda: ((round_ := rng.normal(size=shape)), np.maximum(round_, 0)),
        "shifted float32": lambda: ((x + 100).astype(np.float32), np.maximum(x + 100, 100).astype(np.float32)),
    }
    return made[case]() if case in made else hard_pair(rng, x, case)


HARD = (
    "relu", "low rank", "low rank of outputs", "wide spectrum", "tied points", "each point twice", "crossing", "folded",
    "unrelated", "near 1", "affine", "near 0", "heavy tails", "an outlier", "isotropic", "shifted float32",
    "constant channels", "offset", "tiny", "huge", "mixed scales",
)  # fmt: skip


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_a_hard_score_is_the_processors_or_left_to_it(case, n, d):
    rng = np.random.default_rng(n)
    left_or_equal(*(pairs_of(case, rng, n, d) for _ in range(3)))


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_what_networks_have_is_not_left_to_the_processor(n, d):
    rng = np.random.default_rng(n)
    for case in ("relu", "low rank", "tied points", "crossing", "unrelated", "constant channels", "mixed scales"):
        assert all(left_or_equal(*(pairs_of(case, rng, n, d) for _ in range(3)))), case


@pytest.mark.parametrize("case", ["heavy tails", "an outlier", "near 1", "affine", "isotropic"])
def test_what_is_hard_is_left_to_the_processor_somewhere(case):
    """So the guards that the first test needs are asked."""
    rng = np.random.default_rng(0)
    assert not all(all(left_or_equal(pairs_of(case, rng, n, d))) for n, d in SHAPES for _ in range(3))


@pytest.mark.parametrize(("n", "d"), [(2, 5), (3, 1), (3, 2), (50, 1)])
def test_few_samples_and_single_channels_are_equal_or_left(n, d):
    x = np.random.default_rng(n).normal(size=(n, d))
    left_or_equal((x, np.maximum(x, 0)), (x, x**2))


def test_a_score_does_not_depend_on_its_neighbours_in_the_stack():
    rng = np.random.default_rng(0)
    x = cloud(rng, 40, 100)
    pair, broken = (x, np.maximum(x, 0)), x.copy()
    broken[3, 2] = np.nan
    found = scored(pair, (broken, x), (x, broken * np.inf), (x, 0 * x), (0 * x, x), pair, (x, -x))
    assert found.isnan().tolist() == [False, True, True, True, True, False, False]
    alone = scored(pair)
    assert found[[0, 5]].tolist() == pytest.approx(alone.tolist() * 2, abs=1e-13)


def test_a_channel_that_varies_by_rounding_alone_is_left_out():
    rng = np.random.default_rng(0)
    x = (0.02 * cloud(rng, 64, 12)).astype(np.float32)
    x[:, 0] = 1000 + 1.2e-4 * rng.integers(-2, 3, size=64)  # float32 knows it to 3e-5
    assert left_or_equal((x, np.maximum(x, 0))) == [True]


def test_score_near_rounding_is_left_to_the_processor():
    """A score that rounding may have moved is left to the processor."""
    x = cloud(np.random.default_rng(0), 64, 12)
    y = np.maximum(x, 0)
    near, far = ([v.astype(np.float32) for v in (x + shift, y + shift)] for shift in (10, 1e5))
    assert scored(near, far).isnan().tolist() == [False, True]


def test_score_by_wide_squares_is_left_to_the_processor(monkeypatch):
    """A score that the processor computes with wide squares is left to the processor.

    Two points far apart, with little around them, leave next to nothing to shrink.
    """
    rng = np.random.default_rng(0)
    pairs = []
    for size in (0.1, 0.01):
        x = size * rng.normal(size=(60, 10))
        x[:, 0] = np.where(np.arange(60) % 2, 1, -1)
        pairs.append((x, np.where(np.arange(10) == 0, x, np.maximum(x, 0))))
    assert left_or_equal(*pairs) == [True, False]
    monkeypatch.setattr(stacked, "_SQUARES", 0.0)
    assert left_or_equal(*pairs) == [True, True]


@pytest.mark.parametrize("lower", [1e-7, 1e-3, 0.2, 0.9])
def test_the_polynomials_take_the_whole_interval_to_1(lower):
    s = np.geomspace(lower, 1, 10_001)
    for a, b, c in quintics(lower):
        s = a * s + b * s**3 + c * s**5
    assert np.abs(s - 1).max() < 2e-15


@pytest.mark.parametrize("turn", ["none", "a third", "all"])
def test_gap_of_a_guess_bounds_its_excess_cost(turn):
    """The gap of a guessed assignment bounds its excess cost and is 0 only if the guess is optimal.

    Rows of the outputs are swapped, so that the identity is more or less wrong.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 30, 3, generator=generator, dtype=torch.float64)
    y = x + 0.3 * torch.randn(x.shape, generator=generator, dtype=torch.float64)
    many = {"none": 0, "a third": 10, "all": 30}[turn]
    y[:, :many] = y[:, :many].roll(1, dims=1)
    cost = torch.cdist(x, y).square()
    partners, gap = stacked._guess(cost)
    for costs, guess, bound in zip(cost.numpy(), partners.numpy(), gap.tolist(), strict=True):
        assert sorted(guess) == list(range(30))
        excess = costs[np.arange(30), guess].mean() - costs[linear_sum_assignment(costs)].mean()
        assert -1e-12 <= excess <= bound + 1e-12
    assert (gap > 1e-6).any() == (turn != "none") or turn == "none"


def test_a_planted_proof_that_always_holds_is_seen(monkeypatch):
    guess = stacked._guess
    monkeypatch.setattr(stacked, "_guess", lambda cost: (guess(cost)[0], 0 * cost[:, 0, 0]))
    with pytest.raises(AssertionError):
        for n, d in SHAPES:
            test_a_hard_score_is_the_processors_or_left_to_it("crossing", n, d)


@pytest.mark.parametrize("missing", [2, 5])
def test_diverging_polynomials_leave_all_to_the_processor(missing):
    """Planted polynomials that do not converge leave every score to the processor."""
    x = cloud(np.random.default_rng(0), 64, 12, orders=3)
    whole = quintics
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacked, "quintics", lambda lower: whole(lower)[:-missing])
        assert scored((x, np.maximum(x, 0))).isnan().all()
    assert not scored((x, np.maximum(x, 0))).isnan().any()


def both_ways(monkeypatch, model, batches, device="cpu", **settings):
    """A signature by the processor, the same by the device, and the stacks that the device was given."""
    monkeypatch.setattr(score_queue, "STACKED", set())
    plain = signature(model, batches, device=device, **settings)
    seen = []
    monkeypatch.setattr(
        score_queue, "stacked_scores", lambda *stack: (seen.append(stack[0].shape), stacked_scores(*stack))[1]
    )
    monkeypatch.setattr(score_queue, "STACKED", {device_name(torch.device(device))})
    return plain, signature(model, batches, device=device, **settings), seen


def same(plain, other):
    np.testing.assert_allclose(other.scores, plain.scores, rtol=0, atol=PROMISE)
    for name, values in plain.companions.items():
        np.testing.assert_allclose(other.companions[name], values, rtol=0, atol=PROMISE, err_msg=name)
    assert other.provenance["device"] == plain.provenance["device"]


def three_alike():
    """Three calls of one width, and one of another."""
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Linear(20, 20), nn.ReLU())]
    return nn.Sequential(nn.Linear(6, 20), *layers, nn.Linear(20, 5), nn.Tanh())


@pytest.mark.parametrize(("ahead", "threads"), [(0, 1), (2, 2)])
def test_a_signature_scored_on_the_device_is_the_same(ahead, threads):
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(affscore.measuring, "AHEAD", {"cpu": ahead})
        torch.set_num_threads(threads)
        try:
            plain, other, seen = both_ways(patch, three_alike(), [torch.randn(40, 6)] * 2, companions=True)
        finally:
            torch.set_num_threads(before)
    same(plain, other)
    assert sorted(seen) == [(2, 40, 5)] * 2 + [(6, 40, 20)] * 2  # each call with its twin, calls of one width together


def test_a_convolutional_signature_in_pieces_is_the_same(monkeypatch):
    plain, other, seen = both_ways(monkeypatch, network(), images(), micro_batch=10)
    same(plain, other)
    assert sorted(seen) == [(1, 32, 6)] * 2 + [(1, 32, 12)] * 2 + [(1, 32, 20)] * 2


def test_device_scores_only_if_named_and_shrunk(monkeypatch):
    """A device computes scores only if it is listed and the covariances are shrunk."""
    assert not score_queue.STACKED
    plain, other, seen = both_ways(monkeypatch, network(), images(), covariance="empirical")
    assert not seen and (plain.scores == other.scores).all()


def route(x):
    """A router gives all experts but the best minus infinity."""
    value, best = x.max(1, keepdim=True)
    return torch.full_like(x, -torch.inf).scatter(1, best, value).sigmoid() * torch.tanh(x)


@pytest.mark.parametrize(
    ("model", "told"), [(Made(route), [":sigmoid[0] is not scored: its input holds NaN or infinite"]), (Dead(), [])]
)
def test_calls_left_by_the_device_keep_scores_and_warnings(model, told):
    """The calls that the device leaves have the same scores and warnings as without a device."""
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)) - 1
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AffscoreWarning)
        plain, other, _ = both_ways(patch, model, x, companions=["twin", "cka"])
    same(plain, other)
    assert np.isnan(other.scores).any()
    assert [words in str(each.message) for each, words in zip(caught, told * 2, strict=True)] == [True] * 2 * len(told)


def test_signature_merges_scores_of_device_and_processor(monkeypatch):
    """A signature holds the scores that the device found and, for the others, those of the processor."""

    def halves(x, *rest):
        """The third and the fourth are left: of three calls and their twins, the second call and its twin."""
        return torch.tensor([0.25, 0.5, torch.nan, torch.nan, 0.25, 0.5][: len(x)], dtype=torch.float64)

    batch = torch.randn(40, 6)
    plain = signature(three_alike(), batch, companions=["twin"])
    monkeypatch.setattr(score_queue, "STACKED", {"cpu"})
    monkeypatch.setattr(score_queue, "stacked_scores", halves)
    found = signature(three_alike(), batch, companions=["twin"])
    assert found.scores[0].tolist() == [0.25, plain.scores[0, 1], 0.25, 0.25]
    assert found.companions["twin"][0].tolist() == [0.5, plain.companions["twin"][0, 1], 0.5, 0.5]


def test_without_memory_on_the_device_the_processor_scores(monkeypatch):
    def full(*stack):
        raise torch.OutOfMemoryError("no room")

    plain = signature(network(), images(), companions=["twin"])
    monkeypatch.setattr(score_queue, "STACKED", {"cpu"})
    monkeypatch.setattr(score_queue, "stacked_scores", full)
    other = signature(network(), images(), companions=["twin"])
    assert (plain.scores == other.scores).all() and (plain.companions["twin"] == other.companions["twin"]).all()


def test_stacks_are_as_large_as_memory_allows():
    assert most_calls(512, 4096) < most_calls(512, 64) < most_calls(64, 64) and most_calls(10**5, 64) == 1
    assert device_name(torch.device("cpu")) == "cpu"


@pytest.mark.gpu
@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize(("n", "d"), [*SHAPES, (512, 96), (512, 700), (512, 2048)])
def test_a_score_of_the_gpu_is_the_processors_or_left_to_it(case, n, d):
    rng = np.random.default_rng(n)
    left_or_equal(*(pairs_of(case, rng, n, d) for _ in range(3)), device="cuda")


@pytest.mark.gpu
def test_a_signature_scored_on_the_gpu_is_the_same(monkeypatch):
    batches = [batch.double() for batch in images()]  # in which the order of additions does not show
    same(*both_ways(monkeypatch, network().double(), batches, device="cuda", companions=True)[:2])
