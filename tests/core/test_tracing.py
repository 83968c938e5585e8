"""Tracing changes nothing and misses nothing."""

import gc
import weakref
from contextlib import contextmanager, suppress

import pytest
import torch
from grids import each
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

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


def test_modules_functionals_methods_and_shared_calls_are_all_seen():
    model = Everything()
    x = torch.randn(5, 4)
    with torch.no_grad():
        bare = model(x)
        with trace(model, 5) as found:
            traced = model(x)
    assert torch.equal(traced, bare)
    assert [o.call.name for o in found.observations] == [
        "shared:relu[0]", ":gelu[0]", ":tanh[0]", "shared:relu[1]", "six:relu6[0]", "prelu:prelu[0]", ":selu[0]",
        ":celu[0]", ":elu[0]", ":leaky_relu[0]", ":softplus[0]", ":logsigmoid[0]", ":hardtanh[0]", ":mish[0]",
        ":hardswish[0]", ":silu[0]", ":hardsigmoid[0]", ":sigmoid[0]", ":relu[0]",
    ]  # fmt: skip
    assert [o.call.function for o in found.observations if o.call.gate] == ["hardsigmoid", "sigmoid"]
    assert [item.name for item in found.excluded] == [":relu[1]"] and "(1, 4)" in found.excluded[0].reason


@each("mode", [torch.no_grad, torch.inference_mode])
def test_inputs_are_pooled_before_an_in_place_call_overwrites_them(mode):
    x = torch.randn(7, 3, 5, 5)
    model = nn.ReLU(inplace=True)
    with mode(), trace(model, 7, channel_axis={":relu[0]": 1}) as found:
        model(x.clone())
    (seen,) = found.observations
    torch.testing.assert_close(seen.before, x.mean(dim=(2, 3)))
    torch.testing.assert_close(seen.after, x.relu().mean(dim=(2, 3)))


def test_vectors_are_copied_not_referred_to():
    x = torch.randn(7, 3)
    with torch.no_grad(), trace(nn.ReLU(), 7) as found:
        torch.relu(x).add_(100)
        torch.relu_(x)
    assert found.observations[0].after.max() < 50
    assert found.observations[0].before.min() < 0


def test_nothing_unpooled_is_kept_alive():
    """After the pass the trace holds a few numbers per sample, not the feature maps."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
    x = torch.randn(4, 3, 32, 32)
    with torch.no_grad(), trace(model, 4) as found:
        model(x)
    held = sum(t.untyped_storage().nbytes() for o in found.observations for t in (o.before, o.after))
    assert held == 2 * 2 * 4 * 16 * 4


def test_hooks_and_modes_are_gone_after_an_error():
    class Fails(nn.Module):
        def forward(self, x):
            raise RuntimeError("as planned")

    before = len(torch.nn.modules.module._global_forward_pre_hooks)
    with pytest.raises(RuntimeError, match="as planned"), trace(Fails(), 3):
        Fails()(torch.ones(3))
    assert len(torch.nn.modules.module._global_forward_pre_hooks) == before
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_compiled_and_scripted_models_are_refused_in_a_sentence():
    with pytest.raises(TypeError, match="model is a function; it should be a"):
        check_traceable(lambda x: x)
    compiled = nn.Sequential(nn.ReLU())
    compiled.compile()
    with pytest.raises(ValueError, match="model cannot be traced because it is compiled"):
        check_traceable(compiled)
    with pytest.raises(ValueError, match="its part '0' is compiled"):
        check_traceable(nn.Sequential(torch.compile(nn.ReLU())))


def test_exported_and_spread_models_are_refused_and_fx_graphs_are_not():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return F.gelu(self.act(x)) + 1

    x = torch.randn(4, 3)
    with torch.no_grad():
        exported = torch.export.export(Block().eval(), (x,))
    with pytest.raises(TypeError, match="model is a ExportedProgram"):
        check_traceable(exported)
    with pytest.raises(ValueError, match="it is exported and hides its operations"):
        check_traceable(exported.module())
    spread = nn.DataParallel(Block())
    check_traceable(spread)
    spread.device_ids = [0, 1]
    with pytest.raises(ValueError, match="because it is spread over devices"):
        check_traceable(nn.Sequential(spread)[0])
    graph = torch.fx.symbolic_trace(Block().eval())
    with torch.no_grad(), trace(graph, 4) as found:
        y = graph(x)
    assert torch.equal(y, F.gelu(x.relu()) + 1)
    assert [o.call.name for o in found.observations] == ["act:relu[0]", ":gelu[0]"]


@each("backend", ["eager", "aot_eager"])
@each("run_before", [False, True])
def test_compiled_functions_run_uncompiled(run_before, backend):
    compiled = torch.compile(lambda x: torch.relu(x) * 2, backend=backend)
    x = torch.randn(4, 3)
    if run_before:
        compiled(x)
    with torch.no_grad(), trace(nn.Identity(), 4) as found:
        y = compiled(x)
    assert torch.equal(y, x.relu() * 2)
    assert [o.call.name for o in found.observations] == [":relu[0]"]


@contextmanager
def fast_path(enabled):
    """PyTorch's own switch between the fused encoder layer and its parts."""
    torch.backends.mha.set_fastpath_enabled(enabled)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def padding(n, tokens):
    """The last token of every sentence but the first is padding."""
    mask = torch.zeros(n, tokens, dtype=torch.bool)
    mask[1:, -1] = True
    return mask


MASKS = {
    "no mask": {},
    "padding": {"src_key_padding_mask": padding(4, 5)},
    "causal": {"mask": nn.Transformer.generate_square_subsequent_mask(5)},
    "both": {"src_key_padding_mask": padding(4, 5), "mask": torch.ones(5, 5).triu(1).bool()},
}


@each("activation", ["relu", "gelu"])
@each("norm_first", [False, True])
@each("masks", MASKS)
def test_the_activation_of_a_fused_encoder_layer_is_recomputed(activation, norm_first, masks):
    """Oracle: the same layers with PyTorch's fused path switched off, whose activations are plain calls."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation=activation, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # the layers are copies of one another, with norms that do nothing
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(4, 5, 8)
    with torch.no_grad():
        bare = model(x, **MASKS[masks])
        with trace(model, 4, sparsity=True) as fused:
            assert torch.equal(model(x, **MASKS[masks]), bare)
        with Operators() as operators:
            model(x, **MASKS[masks])
        with fast_path(False), trace(model, 4, sparsity=True) as plain:
            model(x, **MASKS[masks])
    assert operators.names.count("_transformer_encoder_layer_fwd") == 2, "the fused path was not taken"
    assert [o.call for o in fused.observations] == [o.call for o in plain.observations]
    assert [o.call.name for o in fused.observations] == [f"layers.{i}:{activation}[0]" for i in range(2)]
    assert not fused.excluded and not plain.excluded
    for one, other in zip(fused.observations, plain.observations, strict=True):
        torch.testing.assert_close(one.before, other.before)
        torch.testing.assert_close(one.after, other.after)
        assert one.sparsity == other.sparsity
    assert not torch.allclose(fused.observations[0].after, fused.observations[1].after)


class Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_encoder_layers_on_nested_tensors_are_listed():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(4, 5, 8)
    with torch.no_grad():
        bare = model(x, src_key_padding_mask=padding(4, 5))
        with trace(model, 4) as found:
            assert torch.equal(model(x, src_key_padding_mask=padding(4, 5)), bare)
        with trace(nn.ReLU(), 4) as single:
            nn.ReLU()(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))
    assert not found.observations
    assert [item.name for item in found.excluded] == [f"layers.{i}:_transformer_encoder_layer_fwd[0]" for i in range(2)]
    assert "nested" in single.excluded[0].reason


@each("mode", [torch.no_grad, torch.inference_mode])
def test_lstms_and_fused_operators_of_other_libraries_are_listed(mode):
    library = torch.library.Library("affscore_test", "DEF")
    library.define("fused_bias_gelu(Tensor x) -> Tensor")
    library.impl("fused_bias_gelu", lambda x: F.gelu(x + 1), "CPU")

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 5, batch_first=True)

        def forward(self, x):
            return torch.ops.affscore_test.fused_bias_gelu(self.lstm(x)[0])

    with mode(), trace(Network(), 4) as found:
        Network()(torch.randn(4, 6, 3))
    assert not found.observations
    assert [item.reason for item in found.excluded] == ["a fused kernel hides its activations"] * 2
    assert found.excluded[1].name == ":fused_bias_gelu[0]"


def test_recurrent_networks_without_a_fused_kernel_are_seen_step_by_step():
    with torch.no_grad(), trace(model := nn.RNN(3, 5, batch_first=True), 4) as found:
        model(torch.randn(4, 6, 3))
    assert [o.call.name for o in found.observations] == [f":tanh[{i}]" for i in range(6)]
    assert all(o.before.shape == (4, 5) for o in found.observations)


class Table(nn.Module):
    """A table of biases computed from a buffer, whose first axis may be as long as the batch."""

    def __init__(self, length):
        super().__init__()
        self.register_buffer("places", torch.arange(length).float()[:, None])
        self.bias = nn.Sequential(nn.Linear(1, 4), nn.ReLU(inplace=True))
        self.order = nn.Parameter(torch.zeros(length), requires_grad=False)

    def forward(self, x):
        table = self.bias(self.places)[self.order.long()]
        scale = torch.sigmoid(table.view(-1, 4).t().contiguous().t())
        return torch.relu(x + scale.mean()) + torch.tanh(x.flip(1) * 2)


@each("length", [3, 7])
@each("mode", [torch.no_grad, torch.inference_mode])
def test_tables_are_excluded_also_when_they_are_as_long_as_the_batch(length, mode):
    model = Table(length)
    with mode(), trace(model, 7) as found:
        model(torch.randn(7, 4))
    assert [o.call.name for o in found.observations] == [":relu[0]", ":tanh[0]"]
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


@each("how", ["view", "whole", "cache"])
def test_a_buffer_that_data_was_written_into_is_no_table(how):
    model = Written(how)
    x = torch.randn(5, 3)
    with torch.no_grad(), trace(model, 5) as found:
        model(x)
    assert [o.call.name for o in found.observations] == [":relu[0]", ":tanh[1]"]
    assert [item.name for item in found.excluded] == [":tanh[0]"] and "no batch axis" in found.excluded[0].reason
    with torch.no_grad(), trace(nn.Identity(), 5) as made:  # what is made from nothing may hold data
        page = torch.zeros(5, 3)
        page[:, 0] = x[:, 0]
        torch.relu(page)
    assert len(made.observations) == 1


def test_several_inputs_by_name_and_outputs_in_a_mapping():
    class Two(nn.Module):
        def forward(self, image, *, text, flags=None):
            return {"joint": (torch.relu(image.mean((2, 3)) + text), flags), "text": [torch.tanh(text)]}

    model = Two()
    image, text = torch.randn(4, 3, 5, 5), torch.randn(4, 3)
    with torch.no_grad(), trace(model, 4) as found:
        result = model(image, text=text, flags="kept")
    assert result["joint"][1] == "kept" and torch.equal(result["text"][0], text.tanh())
    assert [o.call.name for o in found.observations] == [":relu[0]", ":tanh[0]"]
    torch.testing.assert_close(found.observations[1].after, text.tanh())


@each("fails", [False, True])
def test_nothing_waits_for_the_garbage_collector(fails):
    """What a pass kept goes with its result; a long run would fill the memory between two collections."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Square(), nn.Linear(8, 8), nn.GELU())
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
        with suppress(RuntimeError), torch.no_grad(), trace(model, batch=5) as found:
            model(torch.randn(5, 4))
        observed = [weakref.ref(each.before) for each in found.observations]
        assert len(kept) == 5 and bool(observed) is not fails
        del found
        assert [ref() for ref in kept + observed] == [None] * len(kept + observed)
    finally:
        gc.enable()


class Square(nn.Module):
    def forward(self, x):
        return x.relu() * x.relu()
