"""What counts as an activation call, under which name."""

import torch
from grids import each
from small_network import Made, traced
from torch import nn
from torch.nn import functional as F

from affscore.calls import FUSED


def test_the_registry_covers_the_activation_functions_of_torch():
    """Every element-wise activation module of torch.nn is seen, also those that torch writes in arithmetic."""
    others = {"Softmax", "Softmax2d", "LogSoftmax", "Softmin", "GLU", "MultiheadAttention"}
    for name in set(torch.nn.modules.activation.__all__) - others:
        model = nn.Threshold(0.1, 20.0) if name == "Threshold" else getattr(nn, name)()
        assert len(traced(model.eval(), torch.randn(4, 3)).observations) == 1, name


@each(
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


def test_kernels_that_hide_an_activation_are_known_by_their_names():
    hide = ["_addmm_activation", "_thnn_fused_lstm_cell", "mkldnn_rnn_layer", "silu_and_mul", "conv2d_relu"]
    others = ["hardtanh_backward", "atanh", "convolution", "_log_softmax"]
    assert [kernel for kernel in hide + others if FUSED.fullmatch(kernel)] == hide
