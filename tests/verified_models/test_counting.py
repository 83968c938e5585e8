"""The independent counter of activation calls."""

import ast
import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from affscore_book.verified_models import counting
from affscore_book.verified_models.counting import count_activations


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
    tree = ast.parse(inspect.getsource(counting))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        )
    }  # fmt: skip
    assert imported == {"__future__", "collections", "contextlib", "os", "torch", "typing"}


def test_modules_functionals_methods_and_calls_in_place_count_once_each():
    def function(x, *parts):
        for part in parts:
            x = part(x)
        x = F.silu(x).tanh().sigmoid_()
        return F.hardswish(F.relu6(torch.relu_(F.gelu(x))), inplace=True)

    parts = (
        nn.ReLU6(),
        nn.ReLU(inplace=True),
        nn.SELU(),
        nn.CELU(),
        nn.ELU(),
        nn.PReLU(),
        nn.LogSigmoid(),
        nn.Hardtanh(),
    )
    assert count(function, *parts) == [
        "relu6", "relu", "selu", "celu", "elu", "prelu", "logsigmoid", "hardtanh", "silu", "tanh", "sigmoid",
        "gelu", "relu", "relu6", "hardswish",
    ]  # fmt: skip


def test_what_is_no_activation_does_not_count():
    assert count(lambda x: F.glu(x).softmax(1).exp().clamp(0, 1).abs()) == []


def test_calls_inside_a_fused_kernel_count():
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
    assert count(lambda x, part: part(x), layer, shape=(3, 5, 8)) == ["gelu"]


@pytest.mark.parametrize("name", ["gelu_new", "gelu_fast", "quick_gelu", "relu2", "gelu"])
def test_modules_of_hugging_face_count_once(name):
    from transformers.activations import ACT2FN

    wanted = {"quick_gelu": "quick_gelu", "relu2": "relu_squared"}.get(name, "gelu")
    act = ACT2FN[name]
    assert count(lambda x, part: part(part(x)), act) == [wanted, wanted]
    assert not act._forward_hooks and not act._forward_pre_hooks


@pytest.mark.parametrize(("name", "wanted"), [("Swish", "silu"), ("Mish", "mish"), ("HardSwish", "hardswish")])
def test_modules_of_timm_count_once(name, wanted):
    from timm.layers import activations

    assert count(lambda x, part: part(x), getattr(activations, name)()) == [wanted]
