"""What counts as an activation call, under which name."""

import inspect

import pytest
import torch
from small_network import Made, traced
from torch import nn
from torch.nn import functional as F

from affscore.calls import ACTIVATIONS, FUSED


def test_the_registry_covers_the_activation_functions_of_torch():
    """Every element-wise activation module of torch.nn is seen, also those that torch writes in arithmetic."""
    others = {"Softmax", "Softmax2d", "LogSoftmax", "Softmin", "GLU", "MultiheadAttention"}
    for name in set(torch.nn.modules.activation.__all__) - others:
        model = nn.Threshold(0.1, 20.0) if name == "Threshold" else getattr(nn, name)()
        assert len(traced(model.eval(), torch.randn(4, 3)).observations) == 1, name


def where(condition, x, y):
    return torch.where(condition, x, y)


#: The modules of torch by their formulas, written from PyTorch's documentation in float64.
FORMULAS = {
    "ReLU": lambda x: x.clamp(min=0), "ReLU6": lambda x: x.clamp(0, 6), "Hardtanh": lambda x: x.clamp(-1, 1),
    "LeakyReLU": lambda x: where(x > 0, x, 0.01 * x), "PReLU": lambda x: where(x > 0, x, 0.25 * x),
    "RReLU": lambda x: where(x > 0, x, (1 / 8 + 1 / 3) / 2 * x), "ELU": lambda x: where(x > 0, x, x.exp() - 1),
    "SELU": lambda x: 1.0507009873554805 * where(x > 0, x, 1.6732632423543772 * (x.exp() - 1)),
    "CELU": lambda x: where(x > 0, x, x.exp() - 1), "GELU": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    "SiLU": lambda x: x / (1 + (-x).exp()), "Mish": lambda x: x * (1 + x.exp()).log().tanh(),
    "Hardswish": lambda x: x * (x + 3).clamp(0, 6) / 6, "Softplus": lambda x: (1 + x.exp()).log(),
    "LogSigmoid": lambda x: -(1 + (-x).exp()).log(), "Tanh": lambda x: x.sinh() / x.cosh(),
    "Tanhshrink": lambda x: x - x.sinh() / x.cosh(), "Softsign": lambda x: x / (1 + x.abs()),
    "Hardshrink": lambda x: where(x.abs() > 0.5, x, 0 * x),
    "Softshrink": lambda x: where(x.abs() > 0.5, x - 0.5 * x.sign(), 0 * x),
    "Sigmoid": lambda x: 1 / (1 + (-x).exp()), "Hardsigmoid": lambda x: (x + 3).clamp(0, 6) / 6,
    "Threshold": lambda x: where(x > 0.1, x, 0 * x + 20),
}  # fmt: skip
LAYOUTS = {
    "(n, c)": (lambda: nn.Linear(3, 5), (3,), ()),
    "(n, c, l)": (lambda: nn.Conv1d(3, 5, 2), (3, 7), (2,)),
    "(n, c, h, w)": (lambda: nn.Conv2d(3, 5, 2), (3, 7, 6), (2, 3)),
    "(n, tokens, c)": (lambda: nn.Linear(3, 5), (4, 3), (1,)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FORMULAS)
def test_every_activation_is_exact_in_every_layout(name, layout):
    """Inputs and outputs of each activation match its formula, in every layout, in place and out of place."""
    layer, shape, positions = LAYOUTS[layout]
    torch.manual_seed(0)
    kind, before, x = getattr(nn, name), layer(), torch.randn(9, *shape)
    options = {"threshold": 0.1, "value": 20.0} if name == "Threshold" else {}
    for inplace in [{}, {"inplace": True}] if "inplace" in inspect.signature(kind).parameters else [{}]:
        found = traced(nn.Sequential(before, kind(**options, **inplace), nn.Flatten()).eval(), x)
        (seen,) = found.observations
        with torch.no_grad():
            exact = before(x).double()
        for side, value in ((seen.before, exact), (seen.after, FORMULAS[name](exact))):
            expected = value.mean(positions) if positions else value
            torch.testing.assert_close(side.double(), expected, atol=1e-5, rtol=1e-5)
        assert not found.excluded and seen.call.channel_axis == (2 if layout == "(n, tokens, c)" else 1)


def test_the_formulas_are_those_of_the_whole_registry():
    tried = {traced(getattr(nn, name)(*(0.1, 20.0) * (name == "Threshold")).eval(), torch.randn(4, 3)).observations[0]
             .call.function for name in FORMULAS}  # fmt: skip
    registry = {activation.name for activation in ACTIVATIONS.values() if isinstance(activation.name, str)}
    assert registry | {"hardtanh", "elu"} <= tried


@pytest.mark.parametrize(
    ("call", "name", "gate"),
    [
        (F.relu6, "relu6", False),
        (lambda x: F.hardtanh(x, 0.0, 6.0), "relu6", False),
        (lambda x: F.hardtanh(x, -6.0, 6.0), "hardtanh", False),
        (F.elu, "elu", False),
        (F.selu, "selu", False),
        (lambda x: F.celu(x, 0.5), "celu", False),
        (torch.sigmoid_, "sigmoid", True),
        (F.hardsigmoid, "hardsigmoid", True),
    ],
)
def test_names_tell_apart_what_shares_a_kernel(call, name, gate):
    found = traced(Made(call), torch.randn(4, 3))
    assert [(o.call.function, o.call.gate) for o in found.observations] == [(name, gate)]


def test_fused_kernels_are_known_by_name():
    """The pattern of names matches all kernels that contain an activation and no others."""
    hide = ["_addmm_activation", "_thnn_fused_lstm_cell", "mkldnn_rnn_layer", "silu_and_mul", "conv2d_relu"]
    others = ["hardtanh_backward", "atanh", "convolution", "_log_softmax"]
    assert [kernel for kernel in hide + others if FUSED.fullmatch(kernel)] == hide
