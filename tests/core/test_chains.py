"""Activations spelled out in arithmetic are one call, with the values and the name of what they are."""

import math
import re

import pytest
import torch
from small_network import Made, names, traced
from torch import nn
from torch.nn import functional as F

from affscore import affinity_score, signature
from affscore.calls import Operator, Undecided
from affscore.chains import Chains
from affscore.fixed import Fixed
from affscore.grid import GRID
from affscore.tracing import trace

N, D = 64, 5
aten = torch.ops.aten


class Spelled(nn.Module):
    """A linear layer, a function that may take a learned slope too, and a sum."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.slope, self.function = nn.Linear(D, D), nn.Parameter(torch.tensor(1.3)), function

    def spelled(self, y):
        return self.function(y, self.slope) if self.function.__code__.co_argcount > 1 else self.function(y)

    def forward(self, x):
        return self.spelled(self.layer(x)) @ torch.ones(D, 1)


def gelu_new(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def in_place_silu(x):
    return x.mul_(x.sigmoid())


def set_to_zero(x):
    y = x.clone()
    y[y < 0] = 0
    return y


SPELLED = {
    "silu": ("silu", lambda x: x * torch.sigmoid(x), F.silu),
    "silu in place": ("silu", in_place_silu, F.silu),
    "silu by division": ("silu", lambda x: x / (1 + torch.exp(-x)), F.silu),
    "silu through float64": ("silu", lambda x: x * torch.sigmoid(x.double()).to(x.dtype), F.silu),
    "quick gelu": ("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x), None),
    "gelu_new": ("gelu", gelu_new, lambda x: F.gelu(x, approximate="tanh")),
    "gelu": ("gelu", lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), F.gelu),
    "relu squared": ("relu_squared", lambda x: torch.relu(x) ** 2, None),
    "mish": ("mish", lambda x: x * torch.tanh(F.softplus(x)), F.mish),
    "hard swish": ("hardswish", lambda x: x * F.relu6(x + 3) / 6, F.hardswish),
    "relu by a comparison": ("relu", lambda x: x * (x > 0), F.relu),
    "softplus": ("softplus", lambda x: torch.log(1 + torch.exp(x)), F.softplus),
    "swish with a learned slope": ("elementwise[sigmoid, mul]", lambda x, slope: x * torch.sigmoid(slope * x), None),
    "tanh of exp": ("elementwise[exp, tanh]", lambda x: torch.tanh(torch.exp(x)), None),
    "through another axis": ("silu", lambda x: x * torch.sigmoid(x[:, None]).squeeze(1), F.silu),
    "with constants made here": ("elementwise[sigmoid, mul]", lambda x: x * torch.sigmoid(torch.ones(D) * x), F.silu),
    "into a blank": ("silu", lambda x: torch.mul(x, torch.sigmoid(x), out=torch.empty(N, D)), F.silu),
    "a gated tanh of one tensor": ("elementwise[tanh, sigmoid, mul]", lambda x: x.tanh() * x.sigmoid(), None),
    "relu by clamp": ("relu", lambda x: x.clamp(min=0), F.relu),
    "relu by maximum with zeros": ("relu", lambda x: torch.maximum(x, torch.zeros_like(x)), F.relu),
    "relu by a mask of its kind": ("relu", lambda x: x * (x > 0).type_as(x), F.relu),
    "relu by a fill in place": ("relu", lambda x: x.clone().masked_fill_(x < 0, 0), F.relu),
    "relu by an index": ("relu", set_to_zero, F.relu),
    "relu6 by clamp": ("relu6", lambda x: x.clamp(0, 6), F.relu6),
    "leaky relu by maximum": ("leaky_relu", lambda x: torch.maximum(x, 0.01 * x), F.leaky_relu),
    "softplus by logaddexp": ("softplus", lambda x: torch.logaddexp(x, torch.zeros_like(x)), F.softplus),
    "elu": ("elu", lambda x: torch.where(x > 0, x, torch.exp(x) - 1), F.elu),
    "selu": ("selu", lambda x: torch.where(x > 0, x, 1.6732632423543772 * (torch.exp(x) - 1)), F.selu),
    "softsign": ("softsign", lambda x: x / (1 + x.abs()), F.softsign),
    "tanhshrink": ("tanhshrink", lambda x: x - x.tanh(), F.tanhshrink),
    "tanh": ("tanh", lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()), torch.tanh),
    "sigmoid of a mirrored tensor": ("sigmoid", lambda x: 1 / (1 + torch.exp(-x)), torch.sigmoid),
    "hard sigmoid": ("hardsigmoid", lambda x: F.relu(x + 3) - F.relu(x - 3), F.hardsigmoid),
    "into another tensor": ("silu", lambda x: torch.mul(x, torch.sigmoid(x), out=x.flip(1)), F.silu),
    "a slope of the data": ("elementwise[sigmoid, mul]", lambda x: x * torch.sigmoid(x / x.std()), None),
    "mirrored silu": ("elementwise[sigmoid, mul]", lambda x: -x * x.sigmoid(), None),
    "logsigmoid squared": ("elementwise[logsigmoid, pow]", lambda x: F.logsigmoid(x) ** 2, None),
    "a quotient": ("elementwise[div, tanh]", lambda x: torch.tanh(torch.ones(D) / x), None),
    "compared inside": ("elementwise[relu, gt, mul]", lambda x: (lambda r: r * (r > 1))(F.relu(x)), None),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLED)
def test_a_chain_is_one_call_with_its_values_and_its_name(name):
    function, spelled, native = SPELLED[name]
    model, x = Spelled(spelled).eval(), torch.randn(N, D, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        before = model.layer(x)
        after, bare = model.spelled(before.clone()), model(x)
        with trace(model, N) as found:
            assert torch.equal(model(x), bare)
    (seen,) = found.observations
    assert (seen.call.name, seen.call.gate) == (f":{function}[0]", function.endswith("sigmoid"))
    assert not found.excluded
    torch.testing.assert_close(seen.before, before, check_dtype=False)
    for expected in (after, after if native is None else native(before)):
        torch.testing.assert_close(affinity_score(seen.before, seen.after), affinity_score(before, expected))


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (lambda x: x.flip(1) * torch.sigmoid(x), [":sigmoid[0]"]),  # a gate on another tensor
        (lambda x: x * torch.sigmoid(x.mean(dim=0)), []),  # of no batch
        (lambda x: (lambda a, b: a * torch.sigmoid(b))(*torch.cat([x, 2 * x], 1).chunk(2, 1)), [":sigmoid[0]"]),
        (lambda x: F.silu(x[:, :2]) * x[:, 2:4], [":silu[0]"]),  # SwiGLU
        (lambda x: F.relu(2 * x.tanh()), [":tanh[0]", ":relu[0]"]),
        (lambda x: F.relu(x + 3) / 6, [":relu[0]"]),
        (lambda x: (lambda s: x * s + s.flip(1))(torch.sigmoid(x)), [":sigmoid[0]", ":silu[0]"]),  # both are used
        (lambda x: (lambda e: e / e.sum(1, keepdim=True))(torch.exp(x - x.amax(1, keepdim=True))), []),  # softmax
        (lambda x: x.exp() / x.exp().sum(1, keepdim=True), []),  # its exponentials computed twice
        (lambda x: x.exp() / (2 * x).exp().sum(1, keepdim=True), [":exp[0]"]),  # a statistic of another function
        (lambda x: x + torch.relu(x), [":leaky_relu[0]"]),
        (lambda x: x + F.silu(x), [":silu[0]"]),
        (lambda x: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1e-5).sqrt(), []),  # a normalisation
        (lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), []),
        (lambda x: 0.5 * (x.tanh() * 3 + x) + 1, [":tanh[0]"]),
        (lambda x: x + x * torch.sigmoid(x), [":silu[0]"]),
        (lambda x: F.gelu(x - x.relu()), [":relu[0]", ":gelu[0]"]),
        (lambda x: F.relu(x.masked_fill(torch.eye(N, D) > 0, 7.0)).masked_fill(torch.eye(N, D) > 0, 0.0), [":relu[0]"]),
        (lambda x: F.normalize(x) + x.norm(dim=1, keepdim=True).clamp(min=0), []),  # of a statistic
        (lambda x: torch.sigmoid(x) > 0.5, [":sigmoid[0]"]),
        (lambda x: (x.tanh() > 0).float().sum(1), [":tanh[0]"]),
        (lambda x: torch.isfinite(F.relu(x)).all(), [":relu[0]"]),
        (lambda x: F.relu(x).long(), [":relu[0]"]),
        (lambda x: torch.sigmoid(torch.fft.rfft(x).abs()), [":sigmoid[0]"]),
        (lambda x: F.prelu(x, x.mean(0)), [":prelu[0]"]),  # slopes of the data
        (lambda x: torch.frexp(F.relu(x))[1], [":relu[0]"]),  # two outputs
        (lambda x: F.relu(x[:, :1]) ** torch.arange(1.0, D + 1), [":relu[0]"]),  # wider than it was
        (lambda x: (lambda h: h.mT * torch.sigmoid(h))(x[:, :, None] * torch.ones(D)), [":sigmoid[0]"]),
        (
            lambda x: torch.cat([F.relu(x - 3), F.relu(3 - x), F.relu(-x), F.relu(x + 2 * x)]),
            [":relu[0]", ":relu[1]", ":relu[2]", ":relu[3]"],
        ),
        (
            lambda x: (lambda t: t.flip(1) + (lambda h: h / (1 + torch.exp(-h)))(3 * t + 1))(x.tanh()),
            [":tanh[0]", ":silu[0]"],
        ),
    ],
)
def test_what_is_no_chain_stays_what_it_is(function, calls):
    layer, x = nn.Linear(D, D), torch.randn(N, D)
    with torch.no_grad():
        bare = function(layer(x))
        with trace(layer, N) as found:
            assert torch.equal(function(layer(x)), bare)
    assert names(found) == calls


def test_what_a_network_returns_is_an_end_too():
    for function, calls in (
        (lambda h: (lambda a: (a, torch.log(1 - a**2 + 1e-6).sum(-1)))(h.tanh()), [":tanh[0]"]),  # actor and critic
        (lambda h: (lambda p: (p, p > 0.5))(torch.sigmoid(h)), [":sigmoid[0]"]),
    ):
        model = Made(lambda x, layer, function=function: function(layer(x)), nn.Linear(D, D))
        assert names(traced(model, torch.randn(N, D))) == calls


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "write", [lambda h, x: h.copy_(x), lambda h, x: h[:, 0].fill_(7), lambda h, x: h.data.copy_(x)]
)
def test_what_was_overwritten_is_another_tensor(mode, write):
    def gate(x):
        h = x @ torch.eye(D)
        t = torch.sigmoid(h)
        write(h, x)
        return h * t

    assert names(traced(Made(gate), torch.randn(N, D), mode=mode)) == [":sigmoid[0]"]


def test_a_backward_pass_inside_the_forward_one_is_not_followed():
    def forces(x, layer):
        with torch.enable_grad():
            x = x.clone().requires_grad_()
            return torch.autograd.grad(F.silu(layer(x)).sum(), x, create_graph=True)[0]

    assert names(traced(Made(forces, nn.Linear(D, D)), torch.randn(N, D))) == [":silu[0]"]


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.randn(N, 0), "is empty"),
        (torch.randn(N, D, dtype=torch.complex64), "does not hold real numbers"),
        (torch.arange(N * D).view(N, D), "does not hold real numbers"),
    ],
)
def test_what_is_empty_or_not_real_is_listed(x, words):
    found = traced(Made(torch.tanh), x, sparsity=True)
    assert not found.observations
    assert [item.name for item in found.excluded] == [":tanh[0]"] and re.search(words, found.excluded[0].reason)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x.sin(), "sin"),
        (lambda x: x * x.sign(), "elementwise[sign, mul]"),
        (lambda x: x.clamp(-1, 2), "clamp"),
        (lambda x: torch.maximum(x, 0.1 * x), "leaky_relu"),
        (lambda x: torch.where(x > 0, x, 0.2 * x), "leaky_relu"),
        (lambda x: (x + torch.sqrt(x**2 + 4)) / 2, "elementwise[pow, sqrt, add]"),  # squareplus
        (lambda x: (x * (x + 2).clamp(0, 2)) / 2, "elementwise[clamp, mul]"),  # hard mish
        (lambda x: ((x**2 + 1).sqrt() - 1) / 2 + x, "elementwise[pow, sqrt, add]"),  # bent identity
        (lambda x: torch.where(x > 0, x, torch.linspace(0.1, 0.3, D) * x), "elementwise[gt, where]"),
        (lambda x: x**2 + x.exp() + x.sin(), "elementwise[pow, exp, add, sin, add]"),
    ],
)
def test_nonlinear_elementwise_function_is_an_activation(function, name):
    """A non-linear function that acts entry by entry is an activation, whatever its name."""
    model, x = Spelled(function), torch.randn(N, D)
    result = signature(model, [x])
    assert [call.name for call in result.calls] == [f":{name}[0]"] and not result.excluded
    with torch.no_grad():
        before = model.layer(x)
    assert result.scores[0, 0] == pytest.approx(affinity_score(before, function(before)).item(), abs=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sigmoid().clamp(min=1e-9).log(),
        lambda x: F.relu(x) ** 2,
        lambda x: torch.sin(x),  # a sinusoidal network multiplies by its frequency first
        lambda x: x * torch.sigmoid(x + 1),
    ],
)
def test_input_of_activation_is_kept_after_scaling(function):
    """The input of an activation is known even if the tensor that was scaled to it is freed.

    The output of a layer that is multiplied at once is freed.
    """
    layer, x = nn.Linear(D, D), torch.randn(N, D)
    found = signature(Made(lambda x, layer: function(layer(x) * 3), layer), [x])
    assert len(found.calls) == 1 and not found.excluded
    with torch.no_grad():
        before = 3 * layer(x)
    assert found.scores[0, 0] == pytest.approx(affinity_score(before, function(before)).item(), abs=1e-6)


@pytest.mark.parametrize(
    "view",
    [lambda x: x.squeeze(-1), lambda x: x.view(-1), lambda x: x.flatten()[None].reshape(-1), lambda x: x[..., None]],
)
@pytest.mark.parametrize("width", [1, 3])
def test_a_view_inside_a_chain_changes_no_score(view, width):
    model, x = nn.Linear(D, width), torch.randn(N, D)
    with torch.no_grad():
        before = model(x)
    expected = affinity_score(before, torch.sigmoid(before).clamp(0.4, 0.7)).item()
    found = signature(Made(lambda x, layer: view(torch.sigmoid(layer(x))).clamp(0.4, 0.7), model), [x])
    assert len(found.calls) == 1 and not found.excluded
    assert found.scores[0, 0] == pytest.approx(expected, abs=1e-6)


def test_a_number_for_each_sample_is_one_channel():
    x = torch.randn(N)
    found = signature(Made(torch.tanh), [x])
    assert found.calls[0].shape == (1,) and found.scores[0, 0] == pytest.approx(affinity_score(x, x.tanh()).item())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clamp(-1e6, 1e6),  # bends nowhere near
        lambda x: (x - x.mean(0)) / (x.var(0, keepdim=True) + 1e-6).sqrt().clamp(min=1e-3),
        lambda x: x.masked_fill(torch.eye(N, D) > 0, 0.0),
        lambda x: (x > 0) * x.flip(0),
    ],
)
def test_statistics_and_masks_are_not_listed(function):
    found = traced(Spelled(function), torch.randn(N, D))
    assert not found.observations and not found.excluded


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: torch.where(x > 0, x, torch.linspace(0.1, 0.3, D) * x), "elementwise[gt, where]"),  # by channel
        (lambda x: F.prelu(x, torch.linspace(0.1, 0.3, D)) ** 2, "elementwise[prelu, pow]"),
        (lambda x: x * torch.sigmoid(x * torch.arange(1.0, N + 1)[:, None]), "elementwise[sigmoid, mul]"),  # by sample
        (lambda x: x.clamp(min=-1e6) * torch.sigmoid(x), "silu"),  # a threshold beyond the grid
        (lambda x: F.rrelu(x, training=True) * x, "elementwise[rrelu, mul]"),  # random
    ],
)
def test_call_without_grid_is_named_by_its_operators(function, name):
    """A function that cannot be evaluated on the grid is named after its operators."""
    assert names(traced(Spelled(function), torch.randn(N, D))) == [f":{name}[0]"]


def test_trace_draws_no_random_numbers():
    """Tracing does not change the random numbers that the network's operators draw."""
    model, x = Spelled(lambda x: F.rrelu(x, training=True).exp()), torch.randn(N, D)
    torch.manual_seed(0)
    with torch.no_grad():
        bare = model(x)
    torch.manual_seed(0)
    with torch.no_grad(), trace(model, N):
        assert torch.equal(model(x), bare)


@pytest.mark.parametrize("length", [10, 200])
def test_a_long_chain_is_one_call(length):
    """Time and memory do not grow with the square of its length."""

    def long(x):
        x = 3 * x  # the tensor before is freed
        for _ in range(length):
            x = x + 0.001 * x.sin()
        return x

    found = traced(Spelled(long), torch.randn(N, D))
    assert names(found) == [f":elementwise[{', '.join(['sin, add'] * length)}][0]"]


def test_names_are_told_apart_from_their_neighbours():
    """A grid finds SiLU and not a swish that is nearly one."""
    for slope in (0.99, 1.01, 1.7, 1.71):
        found = traced(Spelled(lambda x, _, slope=slope: x * torch.sigmoid(slope * x)), torch.randn(N, D))
        assert names(found) == [":elementwise[sigmoid, mul][0]"]
    found = traced(Spelled(lambda x: x**2 * torch.sigmoid(20 * x)), torch.randn(N, D))
    assert names(found) == [":elementwise[pow, sigmoid, mul][0]"]


def test_a_start_that_is_gone_is_not_replaced_by_what_is_left():
    def vanishing(x):
        half, root = 0.5 * x, x / math.sqrt(2)
        x.zero_()
        return half * (1 + root.tanh())

    found = traced(Spelled(vanishing), torch.randn(N, D))
    assert not found.observations
    (excluded,) = found.excluded
    assert isinstance(excluded, Undecided) and excluded.name == ":elementwise[tanh, mul][0]"
    assert "overwritten or freed" in excluded.reason


def test_tensor_carries_its_function_of_each_ancestor():
    """A tensor carries its function of each earlier tensor, along all paths between the two."""
    chains, x = Chains(Fixed(nn.Identity()).constant, lambda tensor: tensor.shape), torch.randn(N, D)

    def run(func, *args):
        step = chains.before(Operator(func, args, {}), None)
        out = func(*args)
        chains.after(step, out, "here", 0)
        return out

    double = run(aten.mul.Tensor, x, 2.0)
    y = run(aten.mul.Tensor, run(aten.sin.default, double), run(aten.exp.default, double))
    root, start = chains.nodes[y][0].shadows.items()
    assert root[0] is chains.nodes[x][0] and start[0] is chains.nodes[double][0]
    for (_, shadow), grid in ((root, 2 * GRID), (start, GRID)):
        torch.testing.assert_close(shadow.values, grid.sin() * grid.exp())
        assert sorted(bend.name for bend in shadow.bends) == ["exp", "mul", "sin"]
