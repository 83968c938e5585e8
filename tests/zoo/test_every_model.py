"""Tracing every network there is: all classification models of torchvision, and some of timm and Hugging Face.

Most are those of the page on verified models: random but alive, and given images as small as can be.
"""

import ast
import inspect
import textwrap

import pytest
import torch
import torchvision
from torch import nn
from torch.overrides import TorchFunctionMode

from affscore import signature, tracing
from affscore.tracing import trace
from affscore.zoo.models import available_models
from affscore_book.verified_models.networks import network_and_batch

MODELS = [name for name in available_models() if not name.startswith("efficientnet_lite")]
BATCH = 3


def network(name):
    """A network of the page on verified models and three images for it."""
    model, x = network_and_batch(name)
    return model, x[:BATCH]


def images(size, seed=1):
    return torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(seed))


# -------------------------------------------------------------------------------------- independent counting


class CountFunctions(TorchFunctionMode):
    """An independent record: a torch-function mode sees every call of an activation function by its Python name.

    It works above dispatch, so it shares nothing with the tracer. It is fit for counting, although it may change the
    output in the last bits, because it switches the fused attention kernels off.
    """

    NAMES = " relu relu6 hardtanh gelu silu hardswish hardsigmoid sigmoid tanh leaky_relu elu mish softplus selu prelu "

    def __init__(self):
        super().__init__()
        self.names = []
        self.depth = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # F.relu6 calls hardtanh and so on: the outermost name counts, what it calls does not.
        name = getattr(func, "__name__", "?").removesuffix("_")
        hit = f" {name} " in self.NAMES and not self.depth
        if hit:
            self.names.append("relu6" if name == "hardtanh" else name)  # torchvision has no other hardtanh
        self.depth += hit
        try:
            with self if hit else torch._C.DisableTorchFunction():
                return func(*args, **(kwargs or {}))
        finally:
            self.depth -= hit


def in_order(found):
    """Names of the functions seen, and how many were excluded."""
    return [o.call.function for o in found.observations], [item.name for item in found.excluded]


def test_the_counter_shares_no_code_with_the_package():
    tree = ast.parse(textwrap.dedent(inspect.getsource(CountFunctions)))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & (set(dir(tracing)) - {"torch"})


def test_the_counter_counts_what_it_should():
    """Modules, functionals, methods and in-place calls, each once."""
    f = nn.functional
    x = torch.randn(3, 4)
    with CountFunctions() as counter:
        nn.ReLU6()(f.silu(nn.ReLU(inplace=True)(x)).tanh().sigmoid_())
        f.relu6(torch.relu_(f.gelu(x)))
        nn.SELU()(x), torch.softmax(x, 1), nn.PReLU()(x), f.hardswish(x, inplace=True)
    assert counter.names == [
        "relu", "silu", "tanh", "sigmoid", "relu6", "gelu", "relu", "relu6", "selu", "prelu", "hardswish",
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------------- the tests


def classifier(model):
    """The last layer with weights; its input is what transfer learning calls the features."""
    last = [module for module in model.modules() if isinstance(module, nn.Linear | nn.Conv2d)][-1]
    assert getattr(last, "out_features", None) == 1000 or last.out_channels == 1000
    return last


def features_and_output(model, x):
    kept = []
    handle = classifier(model).register_forward_pre_hook(lambda _, args: kept.append(args[0].clone()))
    try:
        output = model(x)
    finally:
        handle.remove()
    return kept[0], output


@torch.no_grad()
def check(name, device="cpu"):
    model, x = (each.to(device) for each in network(f"torchvision/{name}"))
    features, bare = features_and_output(model, x)
    for value in (features, bare):
        assert torch.isfinite(value).all()
        assert value.var(dim=0).max() > 0, "constants would pass"
        assert value.std(dim=0).max() > 1e-4 * value.abs().max(), "nearly constants would pass"
    with trace(model, BATCH) as found:
        traced_features, traced = features_and_output(model, x)
    assert torch.equal(features, traced_features) and torch.equal(bare, traced)
    with CountFunctions() as counter:
        model.to("meta")(x.to("meta"))  # counting needs no numbers
    seen, excluded = in_order(found)
    assert len(set(o.call.name for o in found.observations) | set(excluded)) == len(counter.names) > 0
    if not excluded:
        assert seen == counter.names
    # Only the second Swin makes calls on tables, two a block: the network of its position biases and its scale.
    blocks = {"swin_v2_t": 12, "swin_v2_s": 24, "swin_v2_b": 24}.get(name, 0)
    assert len(excluded) == 2 * blocks
    for o in found.observations:
        assert o.before.shape == o.after.shape == (BATCH, o.call.shape[o.call.channel_axis - 1])
        assert o.before.is_cuda == (device != "cpu")


class TestFirstHalf:
    """Two classes, so that two test processes share the models."""

    @pytest.mark.parametrize("name", MODELS[::2])
    def test_nothing_changes_and_nothing_is_missed(self, name):
        check(name)


class TestSecondHalf:
    @pytest.mark.parametrize("name", MODELS[1::2])
    def test_nothing_changes_and_nothing_is_missed(self, name):
        check(name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit_b_32", "swin_t", "swin_v2_t", "convnext_tiny"])
def test_nothing_changes_and_nothing_is_missed_on_the_gpu(name):
    check(name, "cuda")


def test_every_classification_model_is_here():
    """Counted against torchvision's list of builders, without the package's own."""
    builders = {
        name for name in vars(torchvision.models) if name.islower() and callable(vars(torchvision.models)[name])
    }
    assert set(MODELS) == builders - {
        "get_model",
        "get_model_builder",
        "get_model_weights",
        "get_weight",
        "list_models",
    }
    assert len(MODELS) == len(set(MODELS)) >= 80


# ----------------------------------------------------------------------------------------- where channels are

# By hand, from the papers and torchvision's definitions: channels of the call's input and the axis that holds them.
CHANNELS = {
    "alexnet": {"features.1:relu[0]": (64, 1), "features.4:relu[0]": (192, 1), "classifier.5:relu[0]": (4096, 1)},
    "vgg11": {"features.1:relu[0]": (64, 1), "features.19:relu[0]": (512, 1), "classifier.1:relu[0]": (4096, 1)},
    "googlenet": {"conv1:relu[0]": (64, 1), "inception3a.branch3.0:relu[0]": (16, 1),
                  "inception5b.branch4.1:relu[0]": (128, 1)},
    "inception_v3": {"Conv2d_1a_3x3:relu[0]": (32, 1), "Mixed_7b.branch3x3dbl_1:relu[0]": (448, 1)},
    "resnet18": {"relu:relu[0]": (64, 1), "layer2.0.relu:relu[0]": (128, 1), "layer4.1.relu:relu[1]": (512, 1)},
    "resnet50": {"layer1.0.relu:relu[1]": (64, 1), "layer4.2.relu:relu[2]": (2048, 1)},
    "resnext50_32x4d": {"layer1.0.relu:relu[1]": (128, 1), "layer4.2.relu:relu[2]": (2048, 1)},
    "wide_resnet50_2": {"layer3.4.relu:relu[1]": (512, 1), "layer4.2.relu:relu[2]": (2048, 1)},
    "densenet121": {"features.relu0:relu[0]": (64, 1), "features.denseblock1.denselayer2.relu1:relu[0]": (64 + 32, 1),
                    "features.denseblock4.denselayer9.relu2:relu[0]": (4 * 32, 1), ":relu[0]": (1024, 1)},
    "mnasnet1_0": {"layers.8.0.layers.2:relu[0]": (3 * 16, 1), "layers.16:relu[0]": (1280, 1)},
    "mobilenet_v2": {"features.0.2:relu6[0]": (32, 1), "features.2.conv.1.2:relu6[0]": (6 * 16, 1),
                     "features.18.2:relu6[0]": (1280, 1)},
    "mobilenet_v3_small": {"features.1.block.1.activation:relu[0]": (8, 1), "features.12.2:hardswish[0]": (576, 1),
                           "features.1.block.1.scale_activation:hardsigmoid[0]": (16, 1),
                           "classifier.1:hardswish[0]": (1024, 1)},
    "shufflenet_v2_x1_0": {"conv1.2:relu[0]": (24, 1), "stage3.2.branch2.7:relu[0]": (232 // 2, 1),
                           "conv5.2:relu[0]": (1024, 1)},
    "squeezenet1_0": {"features.1:relu[0]": (96, 1), "features.12.expand3x3_activation:relu[0]": (256, 1),
                      "classifier.2:relu[0]": (1000, 1)},
    "efficientnet_b0": {"features.0.2:silu[0]": (32, 1), "features.2.0.block.2.activation:silu[0]": (16 // 4, 1),
                        "features.2.0.block.2.scale_activation:sigmoid[0]": (6 * 16, 1),
                        "features.8.2:silu[0]": (1280, 1)},
    "efficientnet_v2_s": {"features.0.2:silu[0]": (24, 1), "features.6.0.block.0.2:silu[0]": (6 * 160, 1)},
    "regnet_x_400mf": {"stem.2:relu[0]": (32, 1), "trunk_output.block4.block4-1.f.b.2:relu[0]": (400, 1)},
    "regnet_y_400mf": {"trunk_output.block4.block4-2.f.se.activation:relu[0]": (440 // 4, 1),
                       "trunk_output.block2.block2-0.f.se.scale_activation:sigmoid[0]": (104, 1)},
    "vit_b_32": {f"encoder.layers.encoder_layer_{i}.mlp.1:gelu[0]": (3072, 2) for i in (0, 11)},
    "swin_t": {"features.1.0.mlp.1:gelu[0]": (4 * 96, 3), "features.7.1.mlp.1:gelu[0]": (4 * 768, 3)},
    "swin_v2_t": {"features.1.0.mlp.1:gelu[0]": (4 * 96, 3), "features.5.5.mlp.1:gelu[0]": (4 * 384, 3)},
    "maxvit_t": {"stem.0.2:gelu[0]": (64, 1), "blocks.3.layers.0.layers.MBconv.layers.conv_b.2:gelu[0]": (4 * 512, 1),
                 "blocks.2.layers.2.layers.grid_attention.mlp_layer.2:gelu[0]": (4 * 256, 3),
                 "classifier.4:tanh[0]": (512, 1)},
    "convnext_tiny": {"features.1.0.block.4:gelu[0]": (4 * 96, 3), "features.7.2.block.4:gelu[0]": (4 * 768, 3)},
}  # fmt: skip


@pytest.mark.parametrize("name", CHANNELS)
@torch.no_grad()
def test_channels_are_on_the_axis_written_here(name):
    model, x = network(f"torchvision/{name}")
    with trace(model, BATCH) as found:
        model(x)
    calls = {o.call.name: o.call for o in found.observations}
    assert {
        key: (calls[key].shape[calls[key].channel_axis - 1], calls[key].channel_axis) for key in CHANNELS[name]
    } == (CHANNELS[name])


# ------------------------------------------------------------------------------------- timm and Hugging Face

# Name, and calls on tables of parameters. With batches of 3, the table of vit_relpos is 3 long as well.
TIMM = [
    ("vit_tiny_patch16_224", 0), ("convnext_atto", 0), ("convnextv2_atto", 0), ("mixer_s32_224", 0),
    ("tf_efficientnet_lite0", 0), ("swinv2_tiny_window8_256", 24), ("vit_relpos_small_patch16_224", 12),
    ("eva02_tiny_patch14_224", 0), ("nf_resnet26", 0), ("xcit_nano_12_p16_224", 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tables"), TIMM)
@torch.no_grad()
def test_networks_of_timm(name, tables):
    model, x = network(f"timm/{name}")
    bare = model(x)
    assert bare.std(dim=0).max() > 1e-4 * bare.abs().max()
    with trace(model, BATCH) as found:
        assert torch.equal(model(x), bare)
    with CountFunctions() as counter:
        model(x)
    seen, excluded = in_order(found)
    assert len(excluded) == tables and len(seen) + tables == len(counter.names)
    assert tables or seen == counter.names
    assert all("parameters and buffers alone" in item.reason for item in found.excluded)


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def words():
    """Three sentences of up to seven words, the first with padding."""
    mask = torch.ones(BATCH, 7, dtype=torch.long)
    mask[0, 4:] = 0
    numbers = torch.randint(0, 50, (BATCH, 7), generator=torch.Generator().manual_seed(0))
    return {"input_ids": numbers, "attention_mask": mask}


def bert(transformers):
    return transformers.BertModel(transformers.BertConfig(vocab_size=50, **SMALL)), words()


def gpt2(transformers):
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1
    )
    return transformers.GPT2Model(config), words()


def t5(transformers):
    config = transformers.T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    return transformers.T5Model(config), words() | {"decoder_input_ids": words()["input_ids"].flip(1)}


def vit(transformers):
    return transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **SMALL)), {
        "pixel_values": images(32)
    }


def convnext(transformers):
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
    return transformers.ConvNextModel(config), {"pixel_values": images(32)}


# Activation calls and the shapes of their inputs. GPT-2 writes its GELU in arithmetic around a tanh, which is counted.
HUGGING_FACE = [
    (bert, ["gelu", "gelu", "tanh"], [(7, 48), (7, 48), (32,)]),
    (gpt2, ["gelu", "gelu"], [(7, 128), (7, 128)]),
    (t5, ["relu"] * 4, [(7, 48)] * 4),
    (vit, ["gelu", "gelu", "tanh"], [(17, 48), (17, 48), (32,)]),
    (convnext, ["gelu"] * 4, [(8, 8, 32), (4, 4, 64), (2, 2, 96), (1, 1, 128)]),
]


@pytest.mark.parametrize(("make", "functions", "shapes"), HUGGING_FACE)
@torch.no_grad()
def test_networks_of_hugging_face(make, functions, shapes):
    """Inputs by name, and an output that is an object with fields; features are always the last axis here."""
    import transformers

    torch.manual_seed(0)
    model, inputs = make(transformers)
    bare = model.eval()(**inputs).last_hidden_state
    assert bare.std(dim=0).max() > 1e-3
    with trace(model, BATCH) as found:
        assert torch.equal(model(**inputs).last_hidden_state, bare)
    with CountFunctions() as counter:
        model(**inputs)
    assert [o.call.function for o in found.observations] == functions
    assert counter.names == (["tanh"] * 2 if make is gpt2 else functions)
    assert [o.call.shape for o in found.observations] == shapes
    assert all(o.call.channel_axis == len(o.call.shape) for o in found.observations) and not found.excluded
    result = signature(model, [inputs])
    assert result.scores.shape == (1, len(functions))
