"""One pass over a batch: in pieces, from any kind of batch, and the network is afterwards as it was."""

import contextlib

import numpy as np
import pytest
import torch
from small_network import images, network
from torch import nn

from affscore import signature
from affscore.forward import evaluating, tf32


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


@pytest.mark.parametrize("micro_batch", [1, 5, 31])
def test_companions_of_micro_batches_are_those_of_the_whole_batch(micro_batch):
    """Pieces of 31 samples have 16 each, those of 5 have 4 or 5: the sparsities must weigh them."""
    model, batches = network(), images(n=33)
    names = ["cka", "norm", "sparsity_before", "sparsity_after"]
    whole = signature(model, batches, companions=names)
    parts = signature(model, batches, companions=names, micro_batch=micro_batch)
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


@pytest.mark.parametrize("error", [None, KeyError])
@pytest.mark.parametrize("allowed", [True, False])
def test_modes_and_tf32_come_back_also_after_an_error(error, allowed):
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()))
    model[1][0].eval()
    modes = [module.training for module in model.modules()]
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    with contextlib.suppress(KeyError), evaluating(model), tf32(allowed):
        assert not any(module.training for module in model.modules())
        assert torch.backends.cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32 == allowed
        if error:
            raise error
    assert [module.training for module in model.modules()] == modes
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == before
