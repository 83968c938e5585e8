"""The independent counter of activation calls."""

import inspect

import torch
from torch import nn
from torch.nn import functional as F

from affscore_study.verified_models import counting
from affscore_study.verified_models.counting import count_activations


class Network(nn.Module):
    """Runs ``forward`` of its own; its parts are modules."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x):
        return self.function(x, *self.parts)


def count(function, *parts, shape=(3, 4)):
    return count_activations(Network(function, *parts).eval(), torch.randn(shape))


def test_the_counter_imports_nothing_of_the_package():
    assert [line for line in inspect.getsource(counting).split("\n") if "import" in line and "affscore" in line] == []


def test_all_kinds_of_calls_count_once_each():
    """Calls by modules, functions, methods and in place count once each."""

    def function(x, *parts):
        for part in parts:
            x = part(x)
        x = F.silu(x).tanh().sigmoid_()
        return F.hardswish(F.relu6(torch.relu_(F.gelu(x))), inplace=True)

    parts = (nn.ReLU6(), nn.ReLU(inplace=True), nn.SELU(), nn.CELU(), nn.ELU(), nn.PReLU(), nn.LogSigmoid(),
             nn.Hardtanh())  # fmt: skip
    assert count(function, *parts) == [
        "relu6", "relu", "selu", "celu", "elu", "prelu", "logsigmoid", "hardtanh", "silu", "tanh", "sigmoid",
        "gelu", "relu", "relu6", "hardswish",
    ]  # fmt: skip


def test_calls_in_fused_kernels_count_and_others_do_not():
    """A call inside a fused kernel counts, and a function that is no activation does not."""
    assert count(lambda x: F.glu(x).softmax(1).exp().clamp(0, 1).abs()) == []
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
    assert count(lambda x, part: part(x), layer, shape=(3, 5, 8)) == ["gelu"]


def test_modules_that_spell_an_activation_out_count_once():
    from timm.layers import activations
    from transformers.activations import ACT2FN

    modules = [(ACT2FN[name], "gelu") for name in ("gelu", "gelu_new", "gelu_fast")]
    modules += [(ACT2FN["quick_gelu"], "quick_gelu"), (ACT2FN["relu2"], "relu_squared")]
    modules += [(activations.Swish(), "silu"), (activations.Mish(), "mish"), (activations.HardSwish(), "hardswish")]
    for module, wanted in modules:
        assert count(lambda x, part: part(part(x)), module) == [wanted, wanted]
        assert not module._forward_hooks and not module._forward_pre_hooks
