"""What counts as an activation call, under which name."""

import torch
from grids import each
from torch import nn
from torch.nn import functional as F

from affscore.calls import ACTIVATIONS, FUSED
from affscore.tracing import trace


def test_the_registry_covers_the_activation_functions_of_torch():
    """Every element-wise activation module of torch.nn is seen, also those that torch writes in arithmetic."""
    for name in torch.nn.modules.activation.__all__:
        if name in {"Softmax", "Softmax2d", "LogSoftmax", "Softmin", "GLU", "MultiheadAttention"}:
            continue
        cls = getattr(nn, name)
        model = cls(0.1, 20.0) if name == "Threshold" else cls()
        with torch.no_grad(), trace(model.eval(), 4) as found:
            model(torch.randn(4, 3))
        assert len(found.observations) == 1, name


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
    with torch.no_grad(), trace(nn.Identity(), 4) as found:
        call(torch.randn(4, 3))
    assert [(o.call.function, o.call.gate) for o in found.observations] == [(name, gate)]


@each(
    ("kernel", "hides"),
    [
        ("_addmm_activation", True),
        ("_thnn_fused_lstm_cell", True),
        ("mkldnn_rnn_layer", True),
        ("silu_and_mul", True),
        ("conv2d_relu", True),
        ("hardtanh_backward", False),
        ("atanh", False),
        ("convolution", False),
        ("_log_softmax", False),
    ],
)
def test_kernels_that_hide_an_activation_are_known_by_their_names(kernel, hides):
    assert bool(FUSED.fullmatch(kernel)) == hides
    assert not any(FUSED.fullmatch(packet.__name__) and packet not in ACTIVATIONS for packet in ACTIVATIONS)
