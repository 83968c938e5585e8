"""One pass over a batch: in pieces, from any kind of batch, and the network is afterwards as it was."""

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from small_network import images, network
from torch import nn

from affscore import signature
from affscore.forward import evaluating, tf32
from affscore.signatures import SignatureError


class WithTable(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table, self.linear = nn.Parameter(torch.randn(rows, 4)), nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + torch.relu(self.table).sum(0)


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_tables_without_a_batch_axis_are_excluded_also_in_pieces(rows):
    """A table of 3 or 4 rows looks like a piece of that length; another piece gives it away."""
    result = signature(WithTable(rows), [torch.randn(11, 4)], micro_batch=4)
    assert [call.name for call in result.calls] == [":relu[0]"]
    assert [item.name for item in result.excluded] == [":relu[1]"]


class Named(nn.Linear):
    """Takes its inputs by their names."""

    def __init__(self):
        super().__init__(4, 4)

    def forward(self, a, b=0):
        return torch.tanh(super().forward(a) + b)


@pytest.mark.parametrize("kind", ["pair", "mapping", "mapping in pieces"])
def test_batches_may_be_pairs_or_mappings(kind):
    a, model = torch.randn(20, 4), Named()
    batch = (a, torch.arange(20)) if kind == "pair" else {"a": a, "b": torch.zeros(20, 4)}
    other = signature(model, [batch], micro_batch=7 if "pieces" in kind else None)
    np.testing.assert_allclose(other.scores, signature(model, [a]).scores, atol=1e-6)


def test_the_network_is_left_as_it_was_also_after_an_error():
    model = network()
    model[1].eval()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    signature(model, images())
    with contextlib.suppress(KeyError), evaluating(model):
        assert not any(module.training for module in model.modules())
        raise KeyError
    assert model.training and model[0].training and not model[1].training
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("micro_batch", [1, 5, 31, 100])
def test_micro_batches_give_what_the_whole_batch_gives(micro_batch):
    """Pieces of 31 samples have 16 each, those of 5 have 4 or 5: the sparsities must weigh them."""
    model, batches = network(), images(n=33)
    names = ["cka", "norm", "sparsity_before", "sparsity_after"]
    whole = signature(model, batches, companions=names)
    parts = signature(model, batches, companions=names, micro_batch=micro_batch)
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-5)
    assert parts.calls == whole.calls and parts.batch_sizes == [33, 33]
    for name in names:
        np.testing.assert_allclose(parts.companions[name], whole.companions[name], atol=1e-5, err_msg=name)


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


NEW = [("", "tf32"), ("cuda.matmul", "tf32"), ("cudnn", "tf32"), ("cudnn.rnn", "ieee"), ("mkldnn.matmul", "bf16")]
PLACES = ("", "cudnn", "mkldnn", "cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")


def backend(path):
    return functools.reduce(getattr, path.split(".") if path else [], torch.backends)


def shown():
    """What every setting shows, with those that stand for others and without."""
    with contextlib.ExitStack() as stack:
        found = [backend(path).fp32_precision for path in PLACES]
        for path in PLACES[:3]:
            stack.callback(setattr, backend(path), "fp32_precision", backend(path).fp32_precision)
            backend(path).fp32_precision = "none"
        return found + [backend(path).fp32_precision for path in PLACES]


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="torch before 2.9 has other settings")
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize(("path", "value"), NEW)  # goes slowest: some settings stand for others that are set after them
def test_precision_is_set_in_the_block_and_restored(path, value, allowed):
    """The settings of precision hold inside the block and are restored after it, also after an error."""
    before = backend(path).fp32_precision
    backend(path).fp32_precision = value
    try:
        was = shown()
        with contextlib.suppress(KeyError), tf32(allowed):
            inside = {place: backend(place).fp32_precision for place in PLACES}
            assert {inside[place] == "tf32" for place in PLACES[3:6]} == {allowed}
            assert {inside[place] for place in PLACES[7:]} <= {"ieee", "none"} and "bf16" not in inside.values()
            assert torch.backends.cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32 == allowed
            raise KeyError
        assert shown() == was
    finally:
        backend(path).fp32_precision = before


def test_the_autocast_of_the_caller_does_not_count():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = signature(network(), images(1))
        assert torch.is_autocast_enabled("cpu")
    np.testing.assert_array_equal(inside.scores, signature(network(), images(1)).scores)


def together(*functions):
    """Run functions in threads that start at the same time; their results, or the errors they raised."""
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(run, function) for function in functions]]


@pytest.mark.parametrize("shared", [False, True])
def test_signatures_in_several_threads_are_those_of_one(shared):
    models, batches = [network()] * 3 if shared else [network() for _ in range(3)], images(6)
    alone = signature(network(), batches)
    for found in together(*(lambda model=model: signature(model, batches) for model in models)):
        assert found.calls == alone.calls
        np.testing.assert_array_equal(found.scores, alone.scores)
    assert all(model.training for model in models)


def test_beside_a_thread_that_trains_another_network_names_stay():
    done, batches = threading.Event(), images(4)

    def train():
        model, steps = nn.Sequential(*[nn.Sequential(nn.Linear(9, 9), nn.ReLU()) for _ in range(5)]), 0
        while not done.is_set():
            model(torch.randn(8, 9)).sum().backward()
            steps += 1
        return steps

    def measure():
        try:
            return [signature(network(), batches).calls for _ in range(9)]
        finally:
            done.set()

    steps, found = together(train, measure)
    assert steps > 0 and found == [signature(network(), batches).calls] * 9


class Trained(nn.Sequential):
    """Something changes it while it runs, as a thread that trains would."""

    change = None

    def forward(self, x):
        self.change()
        return super().forward(x)


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net[0].weight.mul_(2),
        lambda net: setattr(net[0].weight, "data", net[0].weight.data.clone()),
        lambda net: net.train(),
        lambda net: net[1].train(),
        lambda net: net[0].weight.data.mul_(2),  # which leaves no other sign
        lambda net: net[0].weight.data.view(-1)[:3].zero_(),
    ],
)
def test_network_that_changes_while_it_runs_is_refused(change):
    """A network that changes while it runs is refused, and its weights are left as they were."""
    model = Trained(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    model.change, before = functools.partial(change, model), model[0].weight.clone()
    with pytest.raises(SignatureError, match="the network's weights or training modes changed while it ran"):
        signature(model, [torch.randn(9, 4)])
    assert torch.equal(model[0].weight, before)


class Merging(nn.Linear):
    """A low-rank change that evaluation merges into the weights and training takes out again, as in LoRA."""

    def __init__(self):
        super().__init__(6, 9)
        self.down, self.up, self.merged = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(9, 2)), False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.merged:
            self.weight.data += (-1 if mode else 1) * self.up.data @ self.down.data
            self.merged = not mode
        return self


@pytest.mark.parametrize("training", [True, False])
def test_what_evaluation_does_to_a_module_is_undone(training):
    model = nn.Sequential(Merging(), nn.ReLU(), nn.Sequential(Merging())).train(training)
    model[2].eval()
    before = [
        (m.training, getattr(m, "merged", None), *(p.clone() for p in m.parameters(False))) for m in model.modules()
    ]
    signature(nn.Sequential(model[0], model[1]), [torch.randn(20, 6)])
    for module, (mode, merged, *weights) in zip(model.modules(), before, strict=True):
        assert module.training == mode and getattr(module, "merged", None) == merged
        assert all(map(torch.equal, module.parameters(False), weights))  # to the bit, as the rest of the book


def test_the_batch_of_the_caller_stays():
    model, x = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 3)), torch.randn(20, 6)
    before = x.clone()
    one, other = (signature(model, [x], micro_batch=size).scores for size in (None, 20))
    assert torch.equal(x, before) and np.array_equal(one, other)
