"""Tracing changes nothing and misses nothing."""

import gc
import weakref
from contextlib import suppress

import pytest
import torch
from small_network import Made, names, traced
from torch import nn
from torch.nn import functional as F

from affscore.calls import Undecided
from affscore.tracing import check_traceable, trace


class Everything(nn.Module):
    """Each way in which a network may call an activation."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.shared = nn.ReLU(inplace=True)
        self.six = nn.ReLU6()
        self.prelu = nn.PReLU(4)
        self.table = nn.Parameter(torch.randn(1, 4))

    def forward(self, x):
        x = self.shared(self.linear(x) + 0.1)
        x = F.gelu(self.linear(x))
        x = self.linear(x).tanh()
        x = self.shared(self.linear(x))
        x = self.prelu(self.six(self.linear(x)))
        a, b, c, d, e, f = self.linear(x)[..., None].expand(-1, -1, 6).unbind(-1)
        x = F.selu(a) + F.celu(b, alpha=0.5) + F.elu(c) + F.leaky_relu(d) + F.softplus(e) + F.logsigmoid(f)
        a, b, c, d, e, _ = self.linear(x)[..., None].expand(-1, -1, 6).unbind(-1)
        x = F.hardtanh(a) + F.mish(b) + F.hardswish(c) + F.silu(d, inplace=False) + F.hardsigmoid(e)
        x = self.linear(x) * torch.sigmoid(x) + torch.relu_(x.clone()) + torch.relu(self.table)
        return torch.softmax(x, dim=-1)


def test_all_kinds_of_calls_are_seen():
    """Calls by modules, functions, methods and shared modules are all seen."""
    model = Everything()
    x = torch.randn(5, 4)
    with torch.no_grad():
        bare = model(x)
        with trace(model, 5) as found:
            traced = model(x)
    assert torch.equal(traced, bare)
    assert names(found) == [
        "shared:relu[0]", ":gelu[0]", ":tanh[0]", "shared:relu[1]", "six:relu6[0]", "prelu:prelu[0]", ":selu[0]",
        ":celu[0]", ":elu[0]", ":leaky_relu[0]", ":softplus[0]", ":logsigmoid[0]", ":hardtanh[0]", ":mish[0]",
        ":hardswish[0]", ":silu[0]", ":hardsigmoid[0]", ":sigmoid[0]", ":relu[0]",
    ]  # fmt: skip
    assert [o.call.function for o in found.observations if o.call.gate] == ["hardsigmoid", "sigmoid"]
    assert [item.name for item in found.excluded] == [":relu[1]"] and "(1, 4)" in found.excluded[0].reason


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(("shape", "dims"), [((7, 3, 5, 5), (2, 3)), ((7, 3), ())])
def test_inputs_are_pooled_before_in_place_calls(shape, dims, mode):
    """The input of an in-place call is pooled before the call overwrites it."""
    x = torch.randn(shape)
    model = Made(lambda x: torch.relu_(x).add_(100))
    (seen,) = traced(model, x.clone(), mode=mode, channel_axis={":relu[0]": 1}).observations
    torch.testing.assert_close(seen.before, x.double().mean(dims) if dims else x)
    torch.testing.assert_close(seen.after, x.relu().double().mean(dims) if dims else x.relu())


def test_hooks_and_modes_are_gone_after_an_error():
    before = len(torch.nn.modules.module._global_forward_pre_hooks)
    with pytest.raises(ZeroDivisionError), trace(model := Made(lambda x: x / (1 // 0)), 3):
        model(torch.ones(3))
    assert len(torch.nn.modules.module._global_forward_pre_hooks) == before
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_models_that_hide_operations_are_refused():
    """Models that hide their operations are refused in a sentence that says why."""
    compiled, spread, x = nn.Sequential(nn.ReLU()), nn.DataParallel(nn.ReLU()), torch.randn(4, 3)
    compiled.compile()
    check_traceable(spread)
    spread.device_ids = [0, 1]
    exported = torch.export.export(nn.ReLU().eval(), (x,))
    for model, words in (
        (lambda x: x, "model is a function; it should be a"),
        (exported, "model is a ExportedProgram"),
        (exported.module(), "it is exported and hides its operations"),
        (compiled, "model cannot be traced because it is compiled"),
        (nn.Sequential(torch.compile(nn.ReLU())), "its part '0' is compiled"),
        (spread, "because it is spread over devices"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            check_traceable(model)
    assert names(traced(torch.fx.symbolic_trace(nn.Sequential(nn.ReLU())), x)) == ["0:relu[0]"]


@pytest.mark.parametrize("run_before", [False, True])
def test_compiled_functions_run_uncompiled(run_before):
    compiled = torch.compile(lambda x: torch.relu(x) * 2, backend="aot_eager")
    x = torch.randn(4, 3)
    if run_before:
        compiled(x)
    with torch.no_grad(), trace(nn.Identity(), 4) as found:
        y = compiled(x)
    assert torch.equal(y, x.relu() * 2)
    assert names(found) == [":relu[0]"]


PADDING = torch.arange(5) >= torch.tensor([5, 4, 4, 3])[:, None]  # (n, tokens)
CAUSAL = nn.Transformer.generate_square_subsequent_mask(5)


@pytest.mark.parametrize(
    ("activation", "norm_first", "masks"),
    [("relu", False, {}), ("gelu", True, {}), ("gelu", False, {"src_key_padding_mask": PADDING}),
     ("relu", True, {"mask": CAUSAL})],
)  # fmt: skip
def test_fused_encoder_layers_are_taken_apart(activation, norm_first, masks):
    """Oracle: a hook on the layer before the activation, which switches the fused kernel off."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation=activation, batch_first=True, norm_first=norm_first)
    model, x, kept = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.randn(4, 5, 8), []
    with torch.no_grad():
        bare = model(x, **masks)
        with trace(model, 4) as found:
            watched = model(x, **masks)
        torch.testing.assert_close(watched, bare)
        assert torch.backends.mha.get_fastpath_enabled()
        for part in model.layers:
            part.linear1.register_forward_hook(lambda *args: kept.append(args[-1]))
        model(x, **masks)
    assert names(found) == [f"layers.{i}:{activation}[0]" for i in range(2)]
    for seen, full in zip(found.observations, kept, strict=True):
        torch.testing.assert_close(seen.before, full.double().mean(1))
        torch.testing.assert_close(seen.after, getattr(F, activation)(full).double().mean(1))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_activations_of_nested_tensors_are_listed():
    with torch.no_grad(), trace(nn.ReLU(), 4) as found:
        nn.ReLU()(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))
    assert "nested" in found.excluded[0].reason and not found.observations


def test_lstms_and_fused_operators_of_other_libraries_are_listed():
    library = torch.library.Library("affscore_test", "DEF")
    library.define("fused_bias_gelu(Tensor x) -> Tensor")
    library.impl("fused_bias_gelu", lambda x: F.gelu(x + 1), "CPU")

    lstm = nn.LSTM(3, 5, batch_first=True)
    model = Made(lambda x, layer: torch.ops.affscore_test.fused_bias_gelu(layer(x)[0]), lstm)
    found = traced(model, torch.randn(4, 6, 3))
    assert not found.observations
    assert [item.reason for item in found.excluded] == ["a fused kernel hides its activations"] * 2
    assert found.excluded[1].name == ":fused_bias_gelu[0]"


def test_unfused_recurrent_network_is_seen_step_by_step():
    """A recurrent network without a fused kernel is seen step by step."""
    found = traced(nn.RNN(3, 5, batch_first=True), torch.randn(4, 6, 3))
    assert names(found) == [f":tanh[{i}]" for i in range(6)]
    assert all(o.before.shape == (4, 5) for o in found.observations)


class Table(nn.Module):
    """A table of biases computed from a buffer, whose first axis may be as long as the batch."""

    def __init__(self, length):
        super().__init__()
        self.register_buffer("places", torch.arange(length).float()[:, None])
        self.bias = nn.Sequential(nn.Linear(1, 4), nn.ReLU(inplace=True))
        self.order = torch.zeros(length)  # an attribute that is no buffer

    def forward(self, x):
        table = self.bias(self.places)[self.order.long()]
        scale = torch.sigmoid(table.view(-1, 4).t().contiguous().t())
        return torch.relu(x + scale.mean()) + torch.tanh(x.flip(1) * 2)


@pytest.mark.parametrize("length", [3, 7])
def test_tables_of_batch_length_are_excluded(length):
    """A table of parameters is excluded, even if it is as long as the batch."""
    found = traced(Table(length), torch.randn(7, 4))
    assert names(found) == [":relu[0]", ":tanh[0]"]
    assert [item.name for item in found.excluded] == ["bias.1:relu[0]", ":sigmoid[0]"]
    assert all(f"({length}, 4) comes from parameters" in item.reason for item in found.excluded)


class Written(nn.Module):
    """Data written into a copy of a buffer, through a view of it or whole; and a cache."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.register_buffer("blank", torch.zeros(5, 3))

    def forward(self, x):
        page = self.blank if self.how == "cache" else self.blank.clone()
        view = page.view(15)
        if self.how == "whole":
            page.copy_(x)
        else:
            page[:, 1:][:, :2].copy_(x[:, 1:])
        return torch.relu(page) + torch.tanh(view).view(5, 3) + torch.tanh(view.view(5, 3))


@pytest.mark.parametrize("how", ["view", "whole", "cache"])
def test_a_buffer_that_data_was_written_into_is_no_table(how):
    found = traced(Written(how), torch.randn(5, 3))
    assert names(found) == [":relu[0]", ":tanh[1]"]
    assert [item.name for item in found.excluded] == [":tanh[0]"] and "no batch axis" in found.excluded[0].reason


def test_what_is_made_from_nothing_may_hold_data():
    def scattered(x):
        page = torch.zeros(5, 3)
        page[:, 0] = x[:, 0]
        return torch.relu(page)

    assert names(traced(Made(scattered), torch.randn(5, 3))) == [":relu[0]"]


def test_what_is_written_past_the_dispatcher_is_data():
    """As kernels write that are no operators of PyTorch."""

    def scattered(x):
        page = torch.zeros(5, 3)
        page.numpy()[:] = x.numpy()
        return torch.relu(page)

    assert names(traced(Made(scattered), torch.randn(5, 3))) == [":relu[0]"]


def test_what_vmap_runs_is_not_scored_and_what_comes_after_it_is():
    def mapped(x, layer):
        return torch.tanh(layer(torch.vmap(lambda row: torch.relu(row) * row.clamp(min=0))(x)))

    found = traced(Made(mapped, nn.Linear(3, 3)), torch.randn(5, 3))
    assert names(found) == [":tanh[0]"] and [type(item) for item in found.excluded] == [Undecided]
    assert found.excluded[0].name == ":relu[0]" and "torch.vmap runs it" in found.excluded[0].reason


def test_several_inputs_by_name_and_outputs_in_a_mapping():
    def both(image, *, text, flags=None):
        return {"joint": (torch.relu(image.mean((2, 3)) + text), flags), "text": [torch.tanh(text)]}

    image, text = torch.randn(4, 3, 5, 5), torch.randn(4, 3)
    with torch.no_grad(), trace(model := Made(both), 4) as found:
        result = model(image, text=text, flags="kept")
    assert result["joint"][1] == "kept" and torch.equal(result["text"][0], text.tanh())
    assert names(found) == [":relu[0]", ":tanh[0]"]
    torch.testing.assert_close(found.observations[1].after, text.tanh())


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_waits_for_the_garbage_collector(fails):
    """What a pass kept goes with its result; a long run would fill the memory between two collections."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Made(lambda x: x.relu() * x.relu()), nn.Linear(8, 8), nn.GELU())
    kept = []

    def keep(module, inputs, output):
        kept.append(weakref.ref(output))
        if fails and module is model[4]:
            raise RuntimeError("stopped")

    for module in model:
        module.register_forward_hook(keep)
    gc.collect()
    gc.disable()
    try:
        x = torch.randn(5, 4)
        with suppress(RuntimeError), torch.no_grad(), trace(model, batch=5) as found:
            model(x)
        observed = [weakref.ref(each.before) for each in found.observations]
        # Nothing unpooled is kept alive beside them.
        assert all(x.untyped_storage().nbytes() == x.nbytes for each in found.observations for x in each[1:3])
        assert len(kept) == 5 and bool(observed) is not fails
        del found
        assert [ref() for ref in kept + observed] == [None] * len(kept + observed)
    finally:
        gc.enable()
