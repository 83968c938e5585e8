"""Running a network over batches: the scores of each call, bad input by name, and what is finished is kept."""

import math

import numpy as np
import pytest
import torch
from grids import each
from small_network import Free, Made, images, network
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

import affscore
import affscore.engine
from affscore import SignatureError, signature
from affscore.companions import MEASURES, UNPOOLED, measure
from affscore.engine import batch_results


@torch.no_grad()
def by_hand(model, x):
    """Inputs and outputs of the three calls, by a forward pass written out."""
    a = model[1](model[0](x))
    b = model[3](torch.relu(a))
    c = model[6](nn.functional.silu(b).flatten(1))
    return (a, torch.relu(a)), (b, nn.functional.silu(b)), (c, torch.sigmoid(c))


def averaged(x):
    return x.flatten(2).mean(2) if x.ndim > 2 else x


@each(("pool", "covariance"), [("spatial", "ledoit_wolf"), ("trailing", "empirical")])
def test_scores_and_companions_are_those_of_the_pooled_activations(pool, covariance):
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


@each(
    ("batch", "words"),
    [
        (torch.randn(1, 3, 8, 8), "batch 1 has 1 samples"),
        (torch.tensor(3.0), "batch 1 has 0 samples"),
        ("images", "batch 1 is a str"),
        ({"input": torch.randn(4, 3, 8, 8), "other": torch.randn(5)}, "batch 1 has 4 and 5 samples"),
        (torch.full((8, 3, 8, 8), math.nan), r"In batch 1, the input of 2:relu\[0\] holds NaN"),
    ],
)
def test_a_bad_batch_is_named_and_loses_nothing(batch, words):
    good = images(1)[0]
    with pytest.raises(SignatureError, match=words) as caught:
        signature(network(), [good, batch, good])
    assert caught.value.finished.scores.shape == (1, 3)
    np.testing.assert_array_equal(caught.value.finished.scores, signature(network(), [good]).scores)


def test_calls_that_change_from_batch_to_batch_are_an_error():
    x = torch.rand(10, 3)
    with pytest.raises(SignatureError, match="the activation calls of batch 1 differ from those of batch 0"):
        signature(Made(lambda x: torch.relu(x) if x.mean() > 0 else torch.tanh(x)), [x, -x])


class Stream(IterableDataset):
    """Data without a length; or with one that cannot be asked for."""

    def __iter__(self):
        return iter(torch.cat(images()))


def test_loaders_without_a_length_are_read_to_their_end():
    known = signature(network(), images())
    found = signature(network(), DataLoader(Stream(), batch_size=32), progress=True)
    np.testing.assert_array_equal(found.scores, known.scores)


def test_no_batches_is_an_error():
    with pytest.raises(SignatureError, match="batches is empty"):
        signature(network(), [])


def test_results_come_one_by_one_and_the_network_rests_between_them():
    model, seen = network(), []

    def batches():
        for i, batch in enumerate(images(4)):
            seen.append(i)
            yield batch

    results = batch_results(model, batches())
    assert not seen
    first = next(results)
    assert first.index == 0 and len(seen) <= 2
    assert model.training and torch.is_grad_enabled()
    results.close()
    assert model.training and len(seen) <= 2


@each("ahead", [0, 2])
@each(
    ("error", "words"),
    [
        (RuntimeError("shapes cannot be multiplied"), "In batch 3, RuntimeError: shapes cannot"),
        (KeyboardInterrupt(), None),
    ],
)
@each("where", ["network", "batches"])
def test_whatever_fails_the_finished_batches_are_kept(monkeypatch, error, words, where, ahead):
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)

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


@each("batches", [torch.randn(4, 3, 8, 8), {"x": torch.randn(4, 3)}, 7])
def test_a_batch_in_place_of_batches_is_an_error(batches):
    """Going over a tensor would take every image for a batch, and its channels for samples."""
    with pytest.raises(TypeError, match=r"batches is a \w+; it should be an iterable of batches"):
        signature(network(), batches)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_cpu():
    model, batches = network(), images()
    cpu = signature(model, batches)
    gpu = signature(model, batches, device="cuda", companions=True)
    np.testing.assert_allclose(gpu.scores, cpu.scores, atol=1e-4)
