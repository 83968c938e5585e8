"""Tracing changes nothing and misses nothing."""

import ast
import inspect
import textwrap

import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from affscore import tracing
from affscore.tracing import ACTIVATIONS, check_traceable, pool, trace

# One or more of each family; each runs a small batch at a size that keeps the test short.
FAMILIES = {
    "alexnet": 64,
    "vgg11": 32,
    "googlenet": 64,
    "inception_v3": 96,
    "resnet18": 64,
    "resnet50": 64,
    "densenet121": 64,
    "mnasnet0_5": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "efficientnet_b0": 64,
    "efficientnet_v2_s": 64,
    "vit_b_32": 64,
    "swin_t": 64,
    "convnext_tiny": 64,
    "squeezenet1_1": 64,
    "shufflenet_v2_x0_5": 64,
    "regnet_y_400mf": 64,
}


def network(name, size):
    """A randomly initialised network whose output depends on its input."""
    torch.manual_seed(0)
    options = {"image_size": size} if name.startswith("vit") else {}
    if name in ("googlenet", "inception_v3"):
        options = {"aux_logits": False, "init_weights": True}
    model = torchvision.models.get_model(name, weights=None, **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():  # torchvision sets ViT's head to zero, and biases
                parameter.normal_(std=0.02)
        for module in model.modules():  # statistics that keep deep random networks from fading out
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = None
                module.train()
        model(torch.randn(8, 3, size, size))
    return model.eval()


class CountFunctions(TorchFunctionMode):
    """An independent count: a torch-function mode sees every call of an activation function by its Python name.

    It works above dispatch, so it shares nothing with the tracer; it is fit for counting although it may change the
    output in the last bits, because it disables fused attention.
    """

    NAMES = (
        " relu relu_ relu6 hardtanh hardtanh_ gelu silu silu_ hardswish hardswish_ hardsigmoid hardsigmoid_ sigmoid "
        "sigmoid_ tanh tanh_ leaky_relu leaky_relu_ elu elu_ mish mish_ softplus selu selu_ "
    )

    def __init__(self):
        super().__init__()
        self.count = self.depth = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # F.relu6 calls hardtanh and so on: the outermost name counts, what it calls does not.
        hit = f" {getattr(func, '__name__', '?')} " in self.NAMES and not self.depth
        self.count += hit
        self.depth += hit
        try:
            with self if hit else torch._C.DisableTorchFunction():
                return func(*args, **(kwargs or {}))
        finally:
            self.depth -= hit


@pytest.mark.parametrize(("name", "size"), FAMILIES.items())
def test_outputs_are_bit_identical_and_every_call_is_seen(name, size):
    model = network(name, size)
    x = torch.randn(6, 3, size, size, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        bare, again = model(x), model(x)
        assert bare.std(dim=0).max() > 1e-6 * bare.abs().max(), "the output does not depend on the input"
        assert torch.equal(bare, again), "two bare passes differ: nothing can be said about tracing"
        with trace(model, 6) as found:
            traced = model(x)
        with CountFunctions() as counter:
            model(x)
    assert torch.equal(bare, traced)
    assert len(found.observations) + len(found.excluded) == counter.count > 0
    names = [o.call.name for o in found.observations]
    assert len(set(names)) == len(names)
    for o in found.observations:
        assert o.before.shape == o.after.shape == (6, o.call.shape[o.call.channel_axis - 1])


def test_the_bitwise_comparison_catches_a_tracer_that_runs_a_module_twice():
    """The defect of the public code: an in-place activation re-run in a pre-hook changes what follows."""
    model = network("efficientnet_b0", 64)
    x = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        bare = model(x)
        handles = [
            m.register_forward_pre_hook(lambda module, args: (module.forward(args[0]),))
            for m in model.modules()
            if isinstance(m, nn.SiLU)
        ]
        assert not torch.equal(bare, model(x))
        for handle in handles:
            handle.remove()
        assert torch.equal(bare, model(x))


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
        x = F.selu(x) + F.celu(x, alpha=0.5) + F.elu(x) + F.leaky_relu(x) + F.softplus(x) + F.logsigmoid(x)
        x = F.hardtanh(x) + F.mish(x) + F.hardswish(x) + F.silu(x, inplace=False) + F.hardsigmoid(x)
        x = x * torch.sigmoid(x) + torch.relu_(x.clone()) + torch.relu(self.table)
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


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_inputs_are_pooled_before_an_in_place_call_overwrites_them(mode):
    x = torch.randn(7, 3, 5, 5)
    model = nn.ReLU(inplace=True)
    with mode(), trace(model, 7) as found:
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


LAYOUTS = {
    "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (3, 9, 9), 1, 8),
    "conv1d": (nn.Sequential(nn.Conv1d(3, 8, 3), nn.ReLU()), (3, 9), 1, 8),
    "conv3d": (nn.Sequential(nn.Conv3d(2, 8, 2), nn.ReLU()), (2, 5, 5, 5), 1, 8),
    "vectors": (nn.Sequential(nn.Linear(3, 8), nn.ReLU()), (3,), 1, 8),
    "tokens": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (9, 3), 2, 8),
    "channels last": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (5, 6, 3), 3, 8),
    "square tokens": (nn.Sequential(nn.LayerNorm(8), nn.GELU()), (8, 8, 8), 3, 8),
    "group norm": (nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU()), (8, 4, 8), 1, 8),
    "flattened space": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(2), nn.ReLU()), (3, 9, 9), 1, 8),
    "padded": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ZeroPad2d(1), nn.MaxPool2d(2), nn.ReLU()), (3, 9, 9), 1, 8),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_channel_axis_is_found(layout):
    model, shape, axis, channels = LAYOUTS[layout]
    with torch.no_grad(), trace(model.eval(), 4) as found:
        model(torch.randn(4, *shape))
    (seen,) = found.observations
    assert seen.call.channel_axis == axis and seen.before.shape == (4, channels)


class Moves(nn.Module):
    """Permutations, transposes, splits and joins between the layer that makes channels and the activation."""

    def forward(self, x):
        x = F.conv2d(x, torch.ones(6, 3, 1, 1))
        a = torch.relu(x.permute(0, 2, 3, 1))
        b = torch.relu(x.flatten(2).transpose(1, 2))
        c = torch.relu(torch.cat(x.chunk(2, dim=1), dim=1).unsqueeze(1))
        d = torch.relu(x.mean(dim=(2, 3)))
        e = torch.relu(x.roll(1, dims=2)[:, :, 1:])
        return a.sum() + b.sum() + c.sum() + d.sum() + e.sum()


def test_the_channel_axis_is_followed_through_moves():
    model = Moves()
    with torch.no_grad(), trace(model, 5) as found:
        model(torch.randn(5, 3, 4, 4))
    assert [o.call.channel_axis for o in found.observations] == [3, 2, 2, 1, 1]
    assert all(o.before.shape == (5, 6) for o in found.observations)


def test_the_two_pools_differ_on_tokens_as_documented():
    tokens = torch.randn(4, 5, 6)
    torch.testing.assert_close(pool(tokens, "spatial", 2), tokens.mean(dim=1))
    torch.testing.assert_close(pool(tokens, "trailing", 2), tokens.mean(dim=2))
    images = torch.randn(4, 5, 6, 7)
    torch.testing.assert_close(pool(images, "spatial", 3), images.mean(dim=(1, 2)))
    torch.testing.assert_close(pool(images, "trailing", 3), images.mean(dim=(2, 3)))
    assert pool(images.half(), "spatial", 1).dtype == torch.float32


@pytest.mark.parametrize("seed", range(3))
def test_sparsity_counts_the_zeros_before_pooling(seed):
    x = torch.randn(6, 4, 5, 5, generator=torch.Generator().manual_seed(seed))
    x[:, 1] = 0
    x[0, 0, 0, :4] = torch.tensor([1e-3, -1e-3, 2e-3, -9e-4])
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Sigmoid())
    with torch.no_grad(), trace(model, 6, sparsity=True) as found:
        model(x.clone())
    relu, sigmoid = (o.sparsity for o in found.observations)
    assert all(value.dtype == torch.float64 and value.shape == () for value in relu + sigmoid)
    counted = [sum(abs(v) <= torch.tensor(1e-3).item() for v in t.flatten().tolist()) for t in (x, x.clamp(min=0))]
    assert [value.item() * x.numel() for value in relu] == pytest.approx(counted)
    assert [value.item() for value in sigmoid] == pytest.approx([counted[1] / x.numel(), 0])
    with torch.no_grad(), trace(model, 6) as found:
        model(x)
    assert found.observations[0].sparsity is None


def test_nothing_unpooled_is_kept_alive():
    """After the pass the trace holds a few numbers per sample, not the feature maps."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
    with torch.no_grad(), trace(model, 4) as found:
        model(torch.randn(4, 3, 32, 32))
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


def test_the_registry_covers_the_activation_functions_of_torch():
    """Every element-wise activation module of torch.nn is seen, or is one that torch writes in arithmetic."""
    written_out = {"Softsign", "Tanhshrink", "Softmax", "Softmax2d", "LogSoftmax", "Softmin", "GLU"}
    for name in torch.nn.modules.activation.__all__:
        if name in written_out or name == "MultiheadAttention":
            continue
        cls = getattr(nn, name)
        model = cls(0.1, 20.0) if name == "Threshold" else cls()
        with torch.no_grad(), trace(model.eval(), 4) as found:
            model(torch.randn(4, 3))
        assert len(found.observations) == 1, name


def test_compiled_and_scripted_models_are_refused_in_a_sentence():
    with pytest.raises(TypeError, match="model is a function; it should be a"):
        check_traceable(lambda x: x)
    compiled = nn.Sequential(nn.ReLU())
    compiled.compile()
    with pytest.raises(ValueError, match="model cannot be traced because it is compiled"):
        check_traceable(compiled)
    with pytest.raises(ValueError, match="its part '0' is compiled"):
        check_traceable(nn.Sequential(torch.compile(nn.ReLU())))


def test_the_fused_encoder_layer_is_listed_not_lost():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(3, 5, 8)
    with torch.no_grad():
        bare = layer(x)
        with trace(layer, 3) as found:
            traced = layer(x)
    assert torch.equal(traced, bare)
    assert not found.observations
    assert "hides its activation" in found.excluded[0].reason


def test_the_counter_of_these_tests_shares_no_code_with_the_package():
    tree = ast.parse(textwrap.dedent(inspect.getsource(CountFunctions)))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & (set(dir(tracing)) - {"torch"})
    assert len(ACTIVATIONS) > 30


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit_b_32", "swin_t", "convnext_tiny"])
def test_outputs_are_bit_identical_on_the_gpu(name):
    size = FAMILIES[name]
    model = network(name, size).cuda()
    x = torch.randn(6, 3, size, size, device="cuda")
    with torch.no_grad():
        bare = model(x)
        assert torch.equal(bare, model(x))
        with trace(model, 6) as found:
            traced = model(x)
    assert torch.equal(traced, bare)
    assert all(o.before.is_cuda for o in found.observations)
