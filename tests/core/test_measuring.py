"""Running a network over batches: the scores of each call, bad input by name, and what is finished is kept."""

import math
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from small_network import Free, Made, images, network
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

import affscore
import affscore.measuring
from affscore import SignatureError, signature
from affscore.companions import MEASURES, UNPOOLED, measure
from affscore.errors import AffscoreWarning
from affscore.measuring import batch_results
from affscore.score_queue import sentence
from affscore.settings import Settings


@torch.no_grad()
def by_hand(model, x):
    """Inputs and outputs of the three calls, by a forward pass written out."""
    a = model[1](model[0](x))
    b = model[3](torch.relu(a))
    c = model[6](nn.functional.silu(b).flatten(1))
    return (a, torch.relu(a)), (b, nn.functional.silu(b)), (c, torch.sigmoid(c))


def averaged(x):
    return x.flatten(2).mean(2) if x.ndim > 2 else x


@pytest.mark.parametrize(("pool", "covariance"), [("spatial", "ledoit_wolf"), ("trailing", "empirical")])
def test_scores_and_companions_are_of_pooled_activations(pool, covariance):
    """Scores and companions equal those computed by hand from the pooled activations."""
    model, batches = network().eval(), images()
    result = signature(model, batches, pool=pool, covariance=covariance, companions=True)
    assert [call.name for call in result.calls] == ["2:relu[0]", "4:silu[0]", "7:sigmoid[0]"]
    assert [call.gate for call in result.calls] == [False, False, True] and tuple(result.companions) == MEASURES
    for i, x in enumerate(batches):
        for j, pair in enumerate(by_hand(model, x)):
            pooled = [averaged(side) for side in pair]
            expected = measure(*pooled, covariance=covariance)
            expected |= zip(UNPOOLED, (np.mean(np.abs(side.numpy()) <= 1e-3) for side in pair), strict=True)
            score = affscore.affinity_score(*pooled, covariance=covariance).item()
            assert result.scores[i, j] == pytest.approx(score, abs=1e-6)
            for name in MEASURES:
                tolerance = {"entropy": 0.1, "r2_held": 1e-3}.get(name[:7], 1e-5)  # counts jump at the edges of bins
                assert result.companions[name][i, j] == pytest.approx(expected[name], abs=tolerance), name
    assert result.companions["sparsity_after"][0, 0] > 0.3 > result.companions["sparsity_before"][0, 0]
    np.testing.assert_allclose(result.mean, result.scores.mean(axis=0))
    np.testing.assert_allclose(result.std, result.scores.std(axis=0))


X, MASK = torch.randn(6, 7), torch.ones(6, 7)


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (torch.randn(1, 3, 8, 8), "batch 1 has 1 sample; a score needs at least 2"),
        (torch.tensor(3.0), "batch 1 has 0 samples"),
        ("images", "batch 1 is a str"),
        ((X, X, X), "batch 1 is a tuple of 3; it should be a tensor"),
        (list(X[:5]), "batch 1 is a list of 5"),
        ({0: X}, "batch 1 is a dict; .* a mapping from argument names"),
        (X.to_sparse(), "batch 1 holds a sparse, nested or meta tensor"),
        (X.to("meta"), "batch 1 holds a sparse, nested or meta tensor"),
        ({"input": X, "other": torch.randn(5)}, "batch 1 has 5 and 6 samples"),
        ({"input": X, "attention_mask": MASK[:, None]}, r"attention_mask of batch 1 has shape \(6, 1, 7\)"),
        ({"input": X, "attention_mask": -MASK}, "1 for each token and 0 for padding"),
        ({"input": X, "attention_mask": MASK.tril(-1)}, "attention_mask of batch 1 masks every token of sample 0"),
        ({"input": X, "decoder_attention_mask": MASK}, "batch 1 has a decoder_attention_mask"),
        (torch.full((8, 3, 8, 8), math.nan), r"In batch 1, the input of 2:relu\[0\] holds NaN"),
    ],
)
def test_a_bad_batch_is_named_and_loses_nothing(monkeypatch, batch, words, ahead):
    monkeypatch.setitem(affscore.measuring.AHEAD, "cpu", ahead)
    good = images(1)[0]
    with pytest.raises(SignatureError, match=words) as caught:
        signature(network(), [good, batch, good])
    np.testing.assert_array_equal(caught.value.finished.scores, signature(network(), [good]).scores)


@pytest.mark.parametrize("targets", [torch.zeros(8, dtype=torch.long), torch.zeros(8), torch.zeros(8, 1) > 0])
def test_inputs_with_targets_are_not_two_batches(targets):
    batch = [images(1)[0], targets]
    for pair in (batch, tuple(batch)):
        with pytest.raises(ValueError, match=r"two tensors that look like the inputs and targets of one batch"):
            signature(network(), pair)
    assert signature(network(), [batch]).scores.shape[0] == 1


def test_an_array_is_not_taken_for_its_rows():
    with pytest.raises(TypeError, match="batches is a ndarray; it should be an iterable of batches"):
        signature(network(), X.numpy())


def test_entries_set_to_infinity_cost_one_call():
    """Entries that a network sets to minus infinity cost the score of one call only.

    A router gives all experts but the best minus infinity before its sigmoid, whose outputs are finite.
    """
    x = torch.randn(32, 6)

    def route(x):
        value, best = x.max(1, keepdim=True)
        return torch.relu(torch.full_like(x, -math.inf).scatter(1, best, value).sigmoid() * torch.tanh(x))

    model = Made(route)
    with pytest.warns(AffscoreWarning, match=r"^:sigmoid\[0\] is not scored: its input holds NaN or infinite values"):
        found = signature(model, [x], companions=["twin", "sparsity_after"])
    assert [(call.function, bool(dead)) for call, dead in zip(found.calls, found.dead[0], strict=True)] == [
        ("sigmoid", True), ("tanh", False), ("relu", False),
    ]  # fmt: skip
    assert found.companions["sparsity_after"][0, 0] == pytest.approx(5 / 6)


def test_calls_that_change_from_batch_to_batch_are_an_error():
    x = torch.rand(10, 3)
    with pytest.raises(SignatureError, match="the activation calls of batch 1 differ from those of batch 0"):
        signature(Made(lambda x: torch.relu(x) if x.mean() > 0 else torch.tanh(x)), [x, -x])


class Stream(IterableDataset):
    """Data without a length; or with one that cannot be asked for."""

    def __iter__(self):
        return iter(torch.cat(images()))


def test_loaders_without_a_length_are_read_to_their_end():
    found = signature(network(), DataLoader(Stream(), batch_size=32), progress=True)
    np.testing.assert_array_equal(found.scores, signature(network(), images()).scores)


@pytest.mark.parametrize("ahead", [0, 2])
def test_results_come_one_by_one_and_network_is_restored(monkeypatch, ahead):
    """Results come one by one, and the network is back in its mode between them.

    Few batches are in memory at a time.
    """
    monkeypatch.setitem(affscore.measuring.AHEAD, "cpu", ahead)
    model, alive, most, seen = network(), weakref.WeakSet(), [], []
    model.register_forward_pre_hook(lambda _, inputs: alive.add(inputs[0]) or most.append(len(alive)))
    results = batch_results(model, (seen.append(i) or torch.randn(20, 3, 8, 8) for i in range(12)))
    assert not seen
    for index in range(10):
        assert next(results).index == index and len(seen) <= index + ahead + 2
        assert model.training and torch.is_grad_enabled()
    results.close()
    assert model.training and max(most) <= 2


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("shapes cannot be multiplied"), "In batch 3, RuntimeError: shapes cannot"),
        (KeyboardInterrupt(), None),
    ],
)
@pytest.mark.parametrize("where", ["network", "batches"])
def test_whatever_fails_the_finished_batches_are_kept(monkeypatch, error, words, where, ahead):
    monkeypatch.setitem(affscore.measuring.AHEAD, "cpu", ahead)

    class Fails(Free):
        def forward(self, x):
            if x.ndim == 5:
                raise error
            return super().forward(x)

    def batches():
        yield from images(3)
        if where == "batches":
            raise error
        yield torch.zeros(4, 1, 1, 1, 1)

    interrupted = isinstance(error, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt if interrupted else SignatureError, match=words) as caught:
        signature(Fails(), batches(), companions=["cka"])
    kept, whole = caught.value.finished, signature(Free(), images(3), companions=["cka"])
    # An interruption does not wait for what is still being scored.
    rows = len(kept.scores) if interrupted and kept is not None else 3
    assert rows in ((1, 2, 3) if interrupted else (3,))
    if kept is not None:
        assert np.array_equal(kept.scores, whole.scores[:rows])
        assert np.array_equal(kept.companions["cka"], whole.companions["cka"][:rows])
        assert kept.batch_sizes == [32] * rows


@pytest.mark.parametrize("ahead", [0, 3])
def test_no_bit_depends_on_threads_or_on_what_overlaps(monkeypatch, ahead):
    monkeypatch.setitem(affscore.measuring.AHEAD, "cpu", ahead)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 4):
            torch.set_num_threads(threads)
            results.append(list(batch_results(Free(), images(5), Settings(companions=True))))
            assert torch.get_num_threads() == threads
        assert results[0] == results[1] and [result.index for result in results[0]] == list(range(5))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("wrapped", [lambda x: x, lambda x: {"input": x}])
def test_a_tensor_or_a_mapping_is_one_batch(wrapped):
    """Going over a tensor would take every image for a batch, and its channels for samples."""
    x = torch.randn(20, 7)
    one, listed = (signature(nn.Tanh(), each) for each in (wrapped(x), [wrapped(x)]))
    assert one.batch_sizes == [20] and np.array_equal(one.scores, listed.scores)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"provenance": {"x": x}}, "provenance cannot be stored as JSON") for x in (Path("x"), float("nan"))),
        *(({"device": x}, f"device is {x!r}; it should be") for x in ("gpu", "meta", "cuda:99", 3.5)),
        ({"provenance": "abc"}, "provenance is 'abc'; it should be a mapping"),
        *(({"provenance": {x: 1}}, f"provenance names {x!r}, which the run records")
          for x in ("device", "versions", "calls", "seconds", "precision")),
        ({"pool": "max"}, "pool is 'max'; it should be one of 'spatial', 'trailing'"),
        ({"model": nn.Linear(3, 3, device="meta")}, "on the meta device and has no weights"),
        *(({"batches": x}, r"batches is a \w+; it should be an iterable of batches") for x in ("images", 7)),
        ({"batches": []}, "batches is empty"),
    ],
)  # fmt: skip
def test_arguments_are_checked_before_the_work(options, words):
    def batches():
        raise AssertionError("the work began")
        yield

    with pytest.raises((TypeError, ValueError), match=words):
        signature(**{"model": network(), "batches": batches(), **options})


def test_what_failed_is_a_sentence_with_its_batch():
    asked = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 20146061312 bytes")
    for error, words in (
        (
            torch.OutOfMemoryError("no room\nmore"),
            "In batch 3, the device is out of memory (no room); choose",
        ),
        (ValueError("batch 3 is a str."), "batch 3 is a str."),
        (ValueError("expected batch 38."), "In batch 3, expected batch 38."),
        (OSError("disk gone"), "In batch 3, disk gone"),
        (asked, "In batch 3, there is too little memory for 20.1 GB more. A smaller micro_batch needs less"),
        (MemoryError(), "In batch 3, there is too little memory. A smaller"),
        (NotImplementedError("HigherOrderOperator x"), "In batch 3, the network runs a higher-order operator, such as"),
        (KeyError("k"), "In batch 3, KeyError: 'k'"),
    ):
        assert sentence(error, 3).startswith(words)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_cpu():
    model, batches = network(), images()
    cpu = signature(model, batches)
    gpu = signature(model, batches, device="cuda", companions=True)
    np.testing.assert_allclose(gpu.scores, cpu.scores, atol=1e-4)


def mixed(x, linear):
    """Two calls that are not scored, for different reasons, beside one that is."""
    torch.tanh(linear(x[:9]))
    torch.sigmoid(linear(x)[None].expand(3, -1, -1))
    torch.nn.functional.gelu(linear.weight)
    return torch.relu(linear(x))


def test_one_warning_lists_what_is_left_out():
    """One warning counts the calls that are left out and does not name those that depend on parameters alone."""
    with pytest.warns(AffscoreWarning) as caught:
        result = signature(Made(mixed, nn.Linear(3, 4)), [torch.randn(20, 3)] * 2)
    assert [call.name for call in result] == [":relu[0]"] and len(result.excluded) == 3
    (told,) = (str(each.message) for each in caught)
    assert told.startswith("2 activation calls are not scored (1 tanh, 1 sigmoid); the signature lists them as")
    assert ":gelu" not in told and "has no batch axis of length 20 in front" in told


def test_a_network_whose_parameters_have_no_shape_yet_is_named():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    x = torch.randn(6, 3, 8, 8)
    with pytest.raises(ValueError, match=r"parameters without a shape, such as '0.weight'.*run it on one batch first"):
        signature(model, [x])
    model(x)
    assert [call.name for call in signature(model, [x])] == ["1:relu[0]"]


class Prepared(nn.Linear):
    """Scales its weights in its first pass, as RWKV does."""

    ready = False

    def forward(self, x):
        if not self.ready:
            self.weight.data.mul_(0.5)
            self.ready = True
        return torch.relu(super().forward(x))


def test_advice_on_prepared_weights_helps():
    """The error on weights prepared at the first call gives advice, and the advice works."""
    model, x = Prepared(3, 4), torch.randn(6, 3)
    with pytest.raises(SignatureError, match="run it on one batch in evaluation mode first"):
        signature(model, [x])
    model.eval()(x)
    assert len(signature(model, [x])) == 1
