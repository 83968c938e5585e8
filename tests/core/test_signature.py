"""Signatures: what they hold, how they are stored, and that bad input never gives a silent number."""

import json
import math
import weakref

import matplotlib
import numpy as np
import pytest
import torch
from torch import nn

import affscore
import affscore.engine
from affscore import Signature, SignatureError, signature
from affscore.companions import MEASURES, measure
from affscore.engine import Settings, batch_results
from affscore.signature import SCHEMA, Interrupted


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.ReLU(inplace=True), nn.Conv2d(12, 6, 3), nn.SiLU(),
        nn.Flatten(), nn.Linear(6 * 16, 20), nn.Sigmoid(), nn.Linear(20, 5),
    )  # fmt: skip


def images(count=2, n=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, 3, 8, 8, generator=generator) for _ in range(count)]


@pytest.mark.parametrize("covariance", ["ledoit_wolf", "empirical"])
@pytest.mark.parametrize("pool", ["spatial", "trailing"])
def test_scores_are_those_of_the_pooled_activations(pool, covariance):
    """Against a forward pass written out by hand."""
    model, batches = network().eval(), images()
    result = signature(model, batches, pool=pool, covariance=covariance)
    for row, x in zip(result.scores, batches, strict=True):
        with torch.no_grad():
            a = model[1](model[0](x))
            b = model[3](torch.relu(a))
            c = model[6](nn.functional.silu(b).flatten(1))
        expected = [
            affscore.affinity_score(a.mean((2, 3)), torch.relu(a).mean((2, 3)), covariance=covariance),
            affscore.affinity_score(b.mean((2, 3)), nn.functional.silu(b).mean((2, 3)), covariance=covariance),
            affscore.affinity_score(c, torch.sigmoid(c), covariance=covariance),
        ]
        np.testing.assert_allclose(row, [float(e) for e in expected], atol=1e-6)
    assert [call.name for call in result.calls] == ["2:relu[0]", "4:silu[0]", "7:sigmoid[0]"]
    assert [call.gate for call in result.calls] == [False, False, True]
    np.testing.assert_allclose(result.mean, result.scores.mean(axis=0))
    np.testing.assert_allclose(result.std, result.scores.std(axis=0))


@pytest.mark.parametrize("micro_batch", [1, 5, 31, 32, 100])
def test_micro_batches_give_the_score_of_the_whole_batch(micro_batch):
    model, batches = network(), images()
    whole, parts = signature(model, batches), signature(model, batches, micro_batch=micro_batch)
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-5)
    assert parts.calls == whole.calls and parts.batch_sizes == [32, 32]


class WithTable(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table, self.linear = nn.Parameter(torch.randn(rows, 4)), nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + torch.relu(self.table).sum(0)


@pytest.mark.parametrize("rows", [1, 3, 4, 7])
def test_tables_without_a_batch_axis_are_excluded_also_in_pieces(rows):
    """A table of 3 or 4 rows looks like a piece of that length; another piece gives it away."""
    result = signature(WithTable(rows), [torch.randn(11, 4)], micro_batch=4)
    assert [call.name for call in result.calls] == [":relu[0]"]
    assert [item.name for item in result.excluded] == [":relu[1]"]


@pytest.mark.parametrize("kind", ["pair", "mapping", "mapping in pieces"])
def test_batches_may_be_pairs_or_mappings(kind):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, a, b=0):
            return torch.tanh(self.linear(a) + b)

    a, b = torch.randn(20, 4), torch.zeros(20, 4)
    model = Named()
    plain = signature(model, [a])
    batch = (a, torch.arange(20)) if kind == "pair" else {"a": a, "b": b}
    other = signature(model, [batch], micro_batch=7 if "pieces" in kind else None)
    np.testing.assert_allclose(other.scores, plain.scores, atol=1e-6)


def test_the_network_is_left_as_it_was():
    model = network()
    model[1].eval()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    signature(model, images())
    assert model.training and model[0].training and not model[1].training
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.is_grad_enabled()


def test_scores_do_not_depend_on_threads():
    model, batches = network(), images()
    before, rows = torch.get_num_threads(), []
    # The forward pass may round differently with other threads; the scoring of equal activations must not.
    model = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Tanh())
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            rows.append(signature(model, batches).scores)
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(rows[0], rows[1]) and np.array_equal(rows[0], rows[2])


class Dead(nn.Module):
    """Its second activation is dead in batches whose mean is negative, its third always."""

    def forward(self, x):
        y = torch.tanh(x)
        y = torch.relu(y + 2 * torch.sign(x.mean()))
        return torch.relu(-y - 1)


def test_dead_calls_are_undefined_flagged_and_never_an_exception():
    x = torch.rand(20, 4) * 0.1 + 0.1
    result = signature(Dead(), [x, -x])
    assert result.dead.tolist() == [[False, False, True], [False, True, True]]
    assert np.isnan(result.scores[1, 1]) and np.isfinite(result.scores[0, 1])
    assert result.mean[1] == result.scores[0, 1] and math.isnan(result.mean[2]) and math.isnan(result.std[2])
    assert "2 dead in some batch" in repr(result)
    assert "dead" in result.table()


def test_constant_channels_are_normal():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
    with torch.no_grad():
        model[0].weight[0], model[0].bias[0] = 0.0, -1.0
    assert np.isfinite(signature(model, [torch.randn(30, 4)]).scores).all()


def test_saving_and_loading_keeps_everything(tmp_path):
    x = torch.rand(20, 4) * 0.1 + 0.1
    result = signature(Dead(), [x, -x], provenance={"data": "made for the test"})
    path = tmp_path / "result.json"
    result.save(path)
    again = Signature.load(path)
    np.testing.assert_array_equal(again.scores, result.scores)
    for name in ("calls", "excluded", "pool", "covariance", "batch_sizes", "provenance"):
        assert getattr(again, name) == getattr(result, name), name
    raw = json.loads(path.read_text())
    assert raw["schema"] == SCHEMA and raw["scores"][0][2] is None
    assert raw["provenance"]["data"] == "made for the test"
    assert {"device", "versions", "started", "seconds", "model"} <= set(raw["provenance"])
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_a_clear_error(tmp_path, fraction):
    path = tmp_path / "result.json"
    signature(network(), images()).save(path)
    text = path.read_text()
    path.write_text(text[: int(fraction * (len(text) - 2))])
    with pytest.raises(ValueError, match=r"result.json is not complete JSON .*was it cut off"):
        Signature.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: raw.update(schema="other/9"), "has schema 'other/9'; it should be"),
        (lambda raw: raw.pop("calls"), "not a valid signature: KeyError"),
        (lambda raw: raw["scores"][0].pop(), "scores has a row of 2 numbers for 3 calls"),
        (lambda raw: raw["scores"][0].__setitem__(0, "high"), "scores holds 'high', which is not a finite number"),
        (lambda raw: raw["scores"][0].__setitem__(0, True), "scores holds True"),
        (lambda raw: raw["scores"][0].__setitem__(0, math.nan), "holds NaN, which is not JSON"),
        (lambda raw: raw["scores"][0].__setitem__(0, math.inf), "holds Infinity, which is not JSON"),
        (lambda raw: raw["scores"][0].__setitem__(0, 1.01), "a score is above 1"),
        (lambda raw: raw["scores"].pop(), "scores has 1 rows for 2 batches"),
        (lambda raw: raw["calls"][0].pop("name"), "not a valid signature: TypeError"),
        (lambda raw: raw["calls"][0].update(ordinal="0"), r"the call '2:relu\[0\]' has a value of a wrong type"),
        (lambda raw: raw["calls"][0].update(name="4:silu[0]"), "two calls have the same name"),
        (lambda raw: raw.update(pool="max"), "pool is 'max'"),
        (lambda raw: raw.update(covariance=None), "covariance is None"),
        (lambda raw: raw.update(batch_sizes=[32, 1]), "batch_sizes should hold whole numbers from 2"),
        (lambda raw: raw.update(provenance=[]), "provenance should be an object"),
        (lambda raw: raw.update(companion={}), r"unknown keys \['companion'\]"),
        (lambda raw: raw["companions"].update(hsic=raw["scores"]), "companions has 'hsic'; the measures are 'cka'"),
        (lambda raw: raw["companions"]["cka"].pop(), "cka has 1 rows for 2 batches"),
        (lambda raw: raw["companions"]["cka"][1].pop(), "cka has a row of 2 numbers for 3 calls"),
        (lambda raw: raw.update(companions=[1]), "not a valid signature: AttributeError"),
    ],
)
def test_a_wrong_file_is_a_clear_error(tmp_path, change, words):
    path = tmp_path / "result.json"
    signature(network(), images(), companions=["cka"]).save(path)
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=words):
        Signature.load(path)


def test_a_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    result = signature(network(), images())
    result.save(path)
    before = path.read_text()
    result.provenance["bad"] = object()
    with pytest.raises(TypeError):
        result.save(path)
    assert path.read_text() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (torch.randn(1, 3, 8, 8), "batch 1 has 1 samples"),
        (torch.tensor(3.0), "batch 1 has 0 samples"),
        ("images", "batch 1 is a str"),
        (None, "batch 1 is a NoneType"),
        ({"input": torch.randn(4, 3, 8, 8), "other": torch.randn(5)}, "batch 1 has 4 and 5 samples"),
        (torch.full((8, 3, 8, 8), math.nan), r"In batch 1, the input of 2:relu\[0\] holds NaN"),
        (torch.full((8, 3, 8, 8), math.inf), r"In batch 1, the input of 2:relu\[0\] holds NaN"),
    ],
)
def test_a_bad_batch_is_named_and_loses_nothing(batch, words):
    good = images(1)[0]
    with pytest.raises(SignatureError, match=words) as caught:
        signature(network(), [good, batch, good])
    assert caught.value.finished.scores.shape == (1, 3)
    np.testing.assert_array_equal(caught.value.finished.scores, signature(network(), [good]).scores)


@pytest.mark.parametrize("error", [ValueError("batch 1: too few images"), OSError("disk gone")])
def test_a_batch_that_cannot_be_read_loses_nothing(error):
    def batches():
        yield images(1)[0]
        raise error

    with pytest.raises(SignatureError, match=r"atch 1.* (too few images|disk gone)") as caught:
        signature(network(), batches())
    assert caught.value.finished.scores.shape == (1, 3)


def test_overflow_inside_the_network_names_the_call():
    model = network()
    with torch.no_grad():
        model[3].weight.mul_(1e38)
    with pytest.raises(SignatureError, match=r"input of 4:silu\[0\] holds NaN or infinite"):
        signature(model, images(1))


def test_calls_that_change_from_batch_to_batch_are_an_error():
    class Changes(nn.Module):
        def forward(self, x):
            return torch.relu(x) if x.mean() > 0 else torch.tanh(x)

    x = torch.rand(10, 3)
    with pytest.raises(SignatureError, match="the activation calls of batch 1 differ from those of batch 0"):
        signature(Changes(), [x, -x])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pool": "max"}, "pool is 'max'; it should be one of 'spatial', 'trailing'"),
        ({"covariance": "oas"}, "covariance is 'oas'"),
        ({"scoring": "gpu"}, "scoring is 'gpu'"),
        ({"scoring": "device", "covariance": "empirical"}, "covariance is 'empirical' with scoring 'device'"),
        ({"micro_batch": 0}, "micro_batch is 0"),
        ({"micro_batch": 2.5}, r"micro_batch is 2.5"),
        ({"precision": "half"}, "precision is 'half'; it should be one of 'full', 'tf32', 'bf16'"),
        ({"companions": ["hsic"]}, "companions names 'hsic'"),
        ({"companions": "cka"}, "companions is 'cka'"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        signature(network(), images(), **options)


def test_no_batches_is_an_error():
    with pytest.raises(SignatureError, match="batches is empty"):
        signature(network(), [])


def test_a_network_without_activations_has_an_empty_signature():
    result = signature(nn.Linear(3, 2), [torch.randn(5, 3)])
    assert result.scores.shape == (1, 0) and "0 activation calls, 1 batch" in repr(result)


def test_repr_table_and_plot():
    matplotlib.use("Agg")
    result = signature(network(), images(), provenance={"model": "small"})
    assert repr(result).startswith("Signature of small: 3 activation calls, 2 batches, scores 0.")
    lines = result.table().splitlines()
    assert "std" in lines[0] and "std" not in signature(network(), images(1)).table()
    assert len(lines) == 4 and lines[3].endswith("gate") and "2:relu[0]" in lines[1]
    ax = result.plot()
    assert ax.get_ylabel() == "affinity score" and ax.get_xlabel()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), result.mean)
    matplotlib.pyplot.close("all")


# --------------------------------------------------------------------------------------------- companions


@pytest.mark.parametrize("pool", ["spatial", "trailing"])
def test_companions_are_those_of_the_activations(pool):
    """Against a forward pass written out by hand."""
    model, batches = network().eval(), images()
    result = signature(model, batches, pool=pool, companions=True)
    assert tuple(result.companions) == MEASURES
    for i, x in enumerate(batches):
        with torch.no_grad():
            a = model[1](model[0](x))
            b = model[3](torch.relu(a))
            c = model[6](nn.functional.silu(b).flatten(1))
        pairs = (a, torch.relu(a)), (b, nn.functional.silu(b)), (c, torch.sigmoid(c))
        for j, (before, after) in enumerate(pairs):
            expected = measure(before.flatten(2).mean(2) if before.ndim > 2 else before,
                               after.flatten(2).mean(2) if after.ndim > 2 else after)  # fmt: skip
            expected["sparsity_before"] = np.mean(np.abs(before.numpy()) <= 1e-3)
            expected["sparsity_after"] = np.mean(np.abs(after.numpy()) <= 1e-3)
            for name in MEASURES:
                tolerance = {"entropy": 0.1, "r2_held": 1e-3}.get(name[:7], 1e-5)  # counts jump at the edges of bins
                assert result.companions[name][i, j] == pytest.approx(expected[name], abs=tolerance), name
    assert result.companions["sparsity_after"][0, 0] > 0.3 > result.companions["sparsity_before"][0, 0]


@pytest.mark.parametrize("micro_batch", [1, 5, 31])
def test_companions_of_micro_batches_are_those_of_the_whole_batch(micro_batch):
    """Pieces of 31 samples have 16 each, those of 5 have 4 or 5: the sparsities must weigh them."""
    model, batches = network(), images(n=33)
    names = ["cka", "norm", "sparsity_before", "sparsity_after"]
    whole = signature(model, batches, companions=names)
    parts = signature(model, batches, companions=names, micro_batch=micro_batch)
    for name in names:
        np.testing.assert_allclose(parts.companions[name], whole.companions[name], atol=1e-5, err_msg=name)


@pytest.mark.parametrize("names", [False, [], ["r2"], ["sparsity_after", "cka"]])
def test_only_the_companions_asked_for_are_kept_and_the_scores_stay(names, tmp_path):
    result = signature(network(), images(), companions=names)
    assert tuple(result.companions) == tuple(name for name in MEASURES if names and name in names)
    assert np.array_equal(result.scores, signature(network(), images()).scores)
    result.save(tmp_path / "result.json")
    assert ("companions" in json.loads((tmp_path / "result.json").read_text())) == bool(names)
    assert tuple(Signature.load(tmp_path / "result.json").companions) == tuple(result.companions)


def test_undefined_companions_are_nan_and_survive_storage(tmp_path):
    x = torch.rand(20, 4) * 0.1 + 0.1
    result = signature(Dead(), [x, -x], companions=True)
    for name in ("cka", "r2", "r2_held_out"):
        assert np.array_equal(np.isnan(result.companions[name]), result.dead), name
    assert np.isfinite(result.companions["norm"]).all() and (result.companions["sparsity_after"][:, 2] == 1).all()
    result.save(tmp_path / "result.json")
    again = Signature.load(tmp_path / "result.json")
    for name in MEASURES:
        np.testing.assert_array_equal(again.companions[name], result.companions[name])


# ------------------------------------------------------------------------------------------------ running


class Free(nn.Module):
    """Activations without weights, so that no product of matrices rounds with the number of threads."""

    def forward(self, x):
        return torch.tanh(torch.relu(x.flatten(1)) - 0.3)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_no_bit_depends_on_workers_or_on_what_overlaps(monkeypatch, ahead):
    batches = images(5)
    expected = list(batch_results(Free(), batches, Settings(companions=True), workers=1))
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)
    before = torch.get_num_threads()
    try:
        for workers in (1, 4):
            torch.set_num_threads(workers)
            found = list(batch_results(Free(), batches, Settings(companions=True), workers=workers))
            assert torch.get_num_threads() == workers
            assert [result.index for result in found] == list(range(5))
            assert found == expected
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("companions", [False, ["cka"], ["sparsity_after"]])
def test_scores_from_the_device_are_those_from_the_host(monkeypatch, ahead, companions):
    """Here both are the CPU, and what differs is the way: decompositions call by call, or products for all at once."""
    batches = images(4, n=40)
    host = signature(network(), batches, companions=companions)
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)
    device = signature(network(), batches, companions=companions, scoring="device")
    np.testing.assert_allclose(device.scores, host.scores, atol=1e-10)
    assert device.companions.keys() == host.companions.keys()
    for name, value in host.companions.items():
        np.testing.assert_array_equal(device.companions[name], value)
    assert device.calls == host.calls and device.provenance["scoring"] == "device"
    assert not np.array_equal(device.scores, host.scores)  # it did go the other way


@pytest.mark.parametrize("ahead", [0, 2])
def test_only_a_few_batches_are_in_memory(monkeypatch, ahead):
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)
    alive, most = weakref.WeakSet(), 0

    class Watching(Free):
        def forward(self, x):
            nonlocal most
            alive.add(x)
            most = max(most, len(alive))
            return super().forward(x)

    def batches():
        yield from (torch.randn(20, 30) for _ in range(12))

    results, waiting = batch_results(Watching(), batches()), []
    for result in results:
        waiting.append(result.index)
    assert waiting == list(range(12)) and most <= 2


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


def test_a_signature_is_made_of_the_results_of_batches():
    results = list(batch_results(network(), images(), Settings(companions=["cka"])))
    made = Signature.from_results(results, pool="spatial", covariance="ledoit_wolf", provenance={"model": "small"})
    whole = signature(network(), images(), companions=["cka"])
    assert np.array_equal(made.scores, whole.scores) and made.batch_sizes == [32, 32] and made.calls == whole.calls
    assert np.array_equal(made.companions["cka"], whole.companions["cka"]) and "small" in repr(made)


def test_results_that_do_not_belong_together_are_an_error():
    a, b = (next(batch_results(model, images(1))) for model in (network(), Dead()))
    c = next(batch_results(network(), images(1), Settings(companions=["cka"])))
    for results, words in (([], "results is empty"), ([a, b], "differ from those of batch 0"), ([a, c], "'cka'")):
        with pytest.raises(ValueError, match=words):
            Signature.from_results(results, pool="spatial", covariance="ledoit_wolf")


class Probe(nn.Module):
    """Notes how it was called."""

    def __init__(self):
        super().__init__()
        self.layer, self.notes = nn.Conv2d(3, 8, 3), {}

    def forward(self, x):
        y = self.layer(x)
        self.notes = {
            "dtype": y.dtype,
            "last": x.is_contiguous(memory_format=torch.channels_last),
            "tf32": (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32),
        }
        return torch.relu(y)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("precision", ["full", "tf32", "bf16"])
def test_precision_and_memory_format_of_the_forward_pass(precision, channels_last):
    model, batches = Probe(), images(1)
    flags = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    exact = signature(model, batches)
    result = signature(model, batches, precision=precision, channels_last=channels_last)
    assert model.notes == {
        "dtype": torch.bfloat16 if precision == "bf16" else torch.float32,
        "last": channels_last,
        "tf32": (precision == "tf32",) * 2,
    }
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == flags
    assert result.provenance["precision"] == precision and result.provenance["channels_last"] is channels_last
    np.testing.assert_allclose(result.scores, exact.scores, atol=0.02 if precision == "bf16" else 1e-5)
    assert result.scores.dtype == np.float64 and batches[0].is_contiguous() and model.layer.weight.is_contiguous()


# ----------------------------------------------------------------------------------- finished batches survive


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (torch.OutOfMemoryError("no room for 9 GiB"), "In batch 3, the device is out of memory .no room.*micro_batch"),
        (RuntimeError("shapes cannot be multiplied"), "In batch 3, RuntimeError: shapes cannot"),
        (KeyError("mask"), "In batch 3, KeyError: 'mask'"),
        (KeyboardInterrupt(), None),
    ],
)
@pytest.mark.parametrize("where", ["network", "batches"])
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
    with pytest.raises(Interrupted if interrupted else SignatureError, match=words) as caught:
        signature(Fails(), batches(), companions=["cka"])
    kept, whole = caught.value.finished, signature(Free(), images(3), companions=["cka"])
    # An interruption does not wait for what is still being scored.
    rows = len(kept.scores) if interrupted and kept is not None else 3
    assert rows in ((1, 2, 3) if interrupted else (3,))
    if kept is not None:
        assert np.array_equal(kept.scores, whole.scores[:rows])
        assert np.array_equal(kept.companions["cka"], whole.companions["cka"][:rows])
        assert kept.batch_sizes == [32] * rows


def test_an_interruption_keeps_what_was_given_before_it():
    def batches():
        yield from images(3)
        raise KeyboardInterrupt

    caught = None
    try:
        signature(Free(), batches())
    except KeyboardInterrupt as error:
        caught = error
    assert isinstance(caught, Interrupted) and len(caught.finished.scores) >= 2


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("scoring", ["host", "device"])
def test_a_nan_found_while_later_batches_run_stops_at_its_batch(monkeypatch, ahead, scoring):
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)
    batches = images(5)
    batches[2][7] = math.nan
    with pytest.raises(SignatureError, match=r"In batch 2, the input of :relu\[0\] holds NaN") as caught:
        signature(Free(), batches, scoring=scoring)
    assert np.array_equal(caught.value.finished.scores, signature(Free(), batches[:2], scoring=scoring).scores)


@pytest.mark.parametrize("batches", [torch.randn(4, 3, 8, 8), {"x": torch.randn(4, 3)}, "images", 7])
def test_a_batch_in_place_of_batches_is_an_error(batches):
    """Going over a tensor would take every image for a batch, and its channels for samples."""
    with pytest.raises(TypeError, match=r"batches is a \w+; it should be an iterable of batches"):
        signature(network(), batches)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_cpu():
    model, batches = network(), images()
    cpu = signature(model, batches)
    for scoring in ("host", "device"):
        gpu = signature(model, batches, device="cuda", companions=True, scoring=scoring)
        np.testing.assert_allclose(gpu.scores, cpu.scores, atol=1e-4)
