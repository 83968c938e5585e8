"""Tracing real networks: their output keeps its bits, no call is missed, and channels are where the papers put them.

The networks are those of the page on verified models: random but alive, and given images as small as can be. All
of them are counted every week (``book/data/verified_models/make.py --check``), a sample in tests/verified_models.
"""

import pytest
import torch

from affscore.tracing import trace
from affscore_study.verified_models.counting import count_activations
from affscore_study.verified_models.networks import network_and_batch, output_of

BATCH = 3  # a table of vit_relpos is as long

# By hand, from the papers and the libraries' definitions: channels of the call's input and the axis that holds them.
TORCHVISION = {
    "alexnet": {"features.1:relu[0]": (64, 1), "features.4:relu[0]": (192, 1), "classifier.5:relu[0]": (4096, 1)},
    "googlenet": {"conv1:relu[0]": (64, 1), "inception3a.branch3.0:relu[0]": (16, 1),
                  "inception5b.branch4.1:relu[0]": (128, 1)},
    "resnet18": {"relu:relu[0]": (64, 1), "layer2.0.relu:relu[0]": (128, 1), "layer4.1.relu:relu[1]": (512, 1)},
    "densenet121": {"features.relu0:relu[0]": (64, 1), "features.denseblock1.denselayer2.relu1:relu[0]": (64 + 32, 1),
                    "features.denseblock4.denselayer9.relu2:relu[0]": (4 * 32, 1), ":relu[0]": (1024, 1)},
    "mobilenet_v3_small": {"features.1.block.1.activation:relu[0]": (8, 1), "features.12.2:hardswish[0]": (576, 1),
                           "features.1.block.1.scale_activation:hardsigmoid[0]": (16, 1),
                           "classifier.1:hardswish[0]": (1024, 1)},
    "shufflenet_v2_x1_0": {"conv1.2:relu[0]": (24, 1), "stage3.2.branch2.7:relu[0]": (232 // 2, 1),
                           "conv5.2:relu[0]": (1024, 1)},
    "efficientnet_b0": {"features.0.2:silu[0]": (32, 1), "features.2.0.block.2.activation:silu[0]": (16 // 4, 1),
                        "features.2.0.block.2.scale_activation:sigmoid[0]": (6 * 16, 1),
                        "features.8.2:silu[0]": (1280, 1)},
    "vit_b_32": {f"encoder.layers.encoder_layer_{i}.mlp.1:gelu[0]": (3072, 2) for i in (0, 11)},
    "swin_v2_t": {"features.1.0.mlp.1:gelu[0]": (4 * 96, 3), "features.5.5.mlp.1:gelu[0]": (4 * 384, 3)},
    "maxvit_t": {"stem.0.2:gelu[0]": (64, 1), "blocks.3.layers.0.layers.MBconv.layers.conv_b.2:gelu[0]": (4 * 512, 1),
                 "blocks.2.layers.2.layers.grid_attention.mlp_layer.2:gelu[0]": (4 * 256, 3),
                 "classifier.4:tanh[0]": (512, 1)},
    "convnext_tiny": {"features.1.0.block.4:gelu[0]": (4 * 96, 3), "features.7.2.block.4:gelu[0]": (4 * 768, 3)},
}  # fmt: skip
OTHERS = {
    "timm/convnextv2_atto": {"stages.0.blocks.0.mlp.act:gelu[0]": (4 * 40, 1)},
    "timm/mixer_s32_224": {"blocks.0.mlp_tokens.act:gelu[0]": (256, 2), "blocks.7.mlp_channels.act:gelu[0]": (2048, 2)},
    "timm/vit_relpos_small_patch16_224": {f"blocks.{i}.mlp.act:gelu[0]": (4 * 384, 2) for i in (0, 11)},
    "transformers/BERT": {"encoder.layer.1.intermediate.intermediate_act_fn:gelu[0]": (48, 2),
                          "pooler.activation:tanh[0]": (32, 1)},
    "transformers/ConvNeXt": {f"encoder.stages.{i}.layers.0.act:gelu[0]": (4 * 8 * (i + 1), 3) for i in range(4)},
    "transformers/GPT-2": {f"h.{i}.mlp.act:gelu[0]": (4 * 32, 2) for i in (0, 1)},
    "transformers/T5": {"encoder.block.0.layer.1.DenseReluDense.act:relu[0]": (48, 2),
                        "decoder.block.1.layer.2.DenseReluDense.act:relu[0]": (48, 2)},
    "transformers/ViT": {"layers.0.mlp.activation_fn:gelu[0]": (48, 2), "pooler.activation:tanh[0]": (32, 1)},
}  # fmt: skip
CHANNELS = {f"torchvision/{name}": calls for name, calls in TORCHVISION.items()} | OTHERS
# Those that take longest are traced weekly.
SLOW = {"torchvision/" + n for n in ("convnext_tiny", "densenet121", "maxvit_t", "shufflenet_v2_x1_0", "vit_b_32")}
NAMES = [pytest.param(name, marks=pytest.mark.weekly) if name in SLOW else name for name in sorted(CHANNELS)]
#: Calls on tables of position biases alone: of the second Swin also on its scale.
EXCLUDED = {"torchvision/swin_v2_t": 2 * 12, "timm/vit_relpos_small_patch16_224": 12}


def network(name):
    """The network and its first samples; and the output, in which every sample says something else."""
    model, inputs = network_and_batch(name)
    if isinstance(inputs, torch.Tensor):
        inputs = inputs[:BATCH]
    else:
        inputs = {key: value[:BATCH] for key, value in inputs.items()}
    bare = values(output_of(model, inputs))
    assert torch.isfinite(bare).all() and bare.std(dim=0).max() > 1e-4 * bare.abs().max()
    return model, inputs, bare


def values(output):
    return output if isinstance(output, torch.Tensor) else output.last_hidden_state


@torch.no_grad()
def check(name):
    model, inputs, bare = network(name)
    with trace(model, BATCH) as found:
        assert torch.equal(values(output_of(model, inputs)), bare)
    calls = {o.call.name: o.call for o in found.observations}
    where = {key: (calls[key].shape[calls[key].channel_axis - 1], calls[key].channel_axis) for key in CHANNELS[name]}
    assert where == CHANNELS[name]
    assert all(o.before.shape == o.after.shape for o in found.observations)
    counted, seen = count_activations(model, inputs), [o.call.function for o in found.observations]
    assert len(found.excluded) == len(counted) - len(seen) == EXCLUDED.get(name, 0)
    assert found.excluded or seen == counted  # and in this order
    assert all("parameters and buffers alone" in item.reason for item in found.excluded)


@pytest.mark.parametrize("name", NAMES)
def test_channel_axes_are_those_listed_and_none_is_missed(name):
    """The channels are on the axis listed for the network, and no activation call is missed."""
    check(name)
