"""Torchvision's architectures of 2012 to 2022 with .1 to .9 million parameters, for images of 3 x 32 x 32.

A network here is torchvision's own class. Where the class's arguments allow a small network, they make it; elsewhere
:func:`narrow` divides the channels of an instance. Of what was made for 224 x 224 pixels only the first layers change:
smaller strides, no first pool. Dropout and stochastic depth are off and every batch norm has the same momentum, so that
networks that are trained alike differ in their architecture alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torchvision import models
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.efficientnet import MBConvConfig
from torchvision.models.resnet import BasicBlock
from torchvision.ops import StochasticDepth

__all__ = ["SETTINGS", "NoSkip", "Setting", "build", "narrow", "wide_vgg16"]

CLASSES = 10
#: In mobile networks it is smaller by default, which leaves running statistics near their start in short trainings.
MOMENTUM = 0.1


class Setting(NamedTuple):
    """One architecture of the decade.

    Attributes
    ----------
    year
        When the architecture was published.
    family
        ``"convolutional"`` or ``"transformer"``.
    make
        Builds the network with weights drawn by its class's initialisation.
    """

    year: int
    family: str
    make: Callable[[], nn.Module]


def narrow(network: nn.Module, by: int, initialise: Callable[[nn.Module], None]) -> nn.Module:
    """Build each Conv2d, BatchNorm2d and Linear of a network again with its channels divided by ``by``, in place.

    The three channels of the image and the classes stay; class and forward do too.

    Parameters
    ----------
    network
        May be on the meta device. All its weights are in modules of those three kinds; convolutions have no groups.
    by
        Divides all channels.
    initialise
        Called for each new module as the network's class initialises it. It starts with PyTorch's default.

    Returns
    -------
    The network, with parameters on the CPU.

    >>> by4 = narrow(nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64)), 4, lambda module: None)
    >>> [tuple(parameter.shape) for parameter in by4.parameters()]
    [(16, 3, 3, 3), (16,), (16,), (16,)]
    """

    def part(channels: int) -> int:
        return channels if channels in (3, CLASSES) else channels // by

    for parent in list(network.modules()):
        for name, old in parent.named_children():
            new: nn.Module
            if isinstance(old, nn.Conv2d):
                shape: dict[str, Any] = {"stride": old.stride, "padding": old.padding, "bias": old.bias is not None}
                new = nn.Conv2d(part(old.in_channels), part(old.out_channels), old.kernel_size, **shape)  # type: ignore[arg-type]
            elif isinstance(old, nn.BatchNorm2d):
                new = nn.BatchNorm2d(part(old.num_features), old.eps)
            elif isinstance(old, nn.Linear):
                new = nn.Linear(part(old.in_features), part(old.out_features), bias=old.bias is not None)
            else:
                continue
            initialise(new)
            setattr(parent, name, new)
    return network


class NoSkip(nn.Module):
    """Gives 0 for every input: in place of a residual block's shortcut it leaves the block without one.

    >>> NoSkip()(torch.ones(2, 3))
    tensor(0.)
    """

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(())


# ------------------------------------------------------------------------------- how torchvision initialises


def _kaiming(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def _vgg_kaiming(module: nn.Module) -> None:
    _kaiming(module)
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0, 0.01)
    if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def _truncated(std: float) -> Callable[[nn.Module], None]:
    def initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.trunc_normal_(module.weight, std=std)

    return initialise


# ------------------------------------------------------------------------------------------- the networks


def _set_stride(network: nn.Module, stride: int, *convolutions: str) -> nn.Module:
    for name in convolutions:
        network.get_submodule(name).stride = (stride, stride)  # type: ignore[assignment]
    return network


def _alexnet() -> nn.Module:
    network = models.AlexNet(CLASSES)
    network.features[0] = nn.Conv2d(3, 64, 5, 1, 2)
    network.avgpool = nn.AdaptiveAvgPool2d(3)
    for name, sizes in zip("146", pairwise((256 * 9, 2048, 2048, CLASSES)), strict=True):
        network.classifier.add_module(name, nn.Linear(*sizes))
    return narrow(network, 8, lambda module: None)  # it keeps PyTorch's default


def _vgg(original: Callable[..., nn.Module], by: int = 8) -> nn.Module:
    with torch.device("meta"):  # its classifier has 120 million parameters
        network = original(num_classes=CLASSES)
        network.avgpool = nn.AdaptiveAvgPool2d(1)
        for name, sizes in zip("036", pairwise((512, 1024, 1024, CLASSES)), strict=True):
            network.get_submodule("classifier").add_module(name, nn.Linear(*sizes))
    return narrow(network, by, _vgg_kaiming)


def _googlenet() -> nn.Module:
    network = models.GoogLeNet(CLASSES, aux_logits=False, init_weights=False)
    _set_stride(network, 1, "conv1.conv")
    return narrow(network, 4, _truncated(0.01))


def _inception() -> nn.Module:
    network = models.Inception3(CLASSES, aux_logits=False, init_weights=False)
    _set_stride(network, 1, "Conv2d_1a_3x3.conv")
    network.maxpool1 = nn.Identity()
    return narrow(network, 8, _truncated(0.1))


def _resnet(blocks: list[int], by: int, skips: bool = True) -> nn.Module:
    network = models.ResNet(BasicBlock, blocks, CLASSES)
    network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    network.maxpool = nn.Identity()
    narrow(network, by, _kaiming)
    for block in network.modules():
        if isinstance(block, BasicBlock) and not skips:
            block.downsample = NoSkip()
    return network


def _densenet(blocks: tuple[int, ...]) -> nn.Module:
    network = models.DenseNet(12, blocks, 24, num_classes=CLASSES)
    network.features.conv0 = nn.Conv2d(3, 24, 3, 2, 1, bias=False)
    nn.init.kaiming_normal_(network.features.conv0.weight)
    network.features.pool0 = nn.Identity()
    return network


def _mobilenet_v2() -> nn.Module:
    rows = [(1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 1), (6, 320, 1, 1)]
    return models.MobileNetV2(CLASSES, 0.25, [list(row) for row in rows])


class _MNASNet(models.MNASNet):
    """It loads weights that do not say the version of their layout, as safetensors: they have the second."""

    def _load_from_state_dict(self, state: Any, prefix: str, metadata: dict[str, Any], *rest: Any) -> None:
        super()._load_from_state_dict(state, prefix, {"version": 2} | metadata, *rest)


def _mnasnet() -> nn.Module:
    return _set_stride(_MNASNet(0.35, CLASSES), 1, "layers.0", "layers.12.0.layers.3")


def _mobilenet_v3() -> nn.Module:
    network = models.mobilenet_v3_small(num_classes=CLASSES, width_mult=0.4)
    return _set_stride(network, 1, "features.1.block.0.0", "features.9.block.1.0")


def _efficientnet() -> nn.Module:
    # Expansion, kernel, stride, channels in and out, blocks.
    rows = [
        (1, 3, 1, 32, 16, 1), (6, 3, 1, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3),
        (6, 5, 1, 112, 192, 4), (6, 3, 1, 192, 320, 1),
    ]  # fmt: skip
    blocks = [MBConvConfig(*row, width_mult=0.25, depth_mult=1) for row in rows]
    return models.EfficientNet(blocks, dropout=0, num_classes=CLASSES)


def _convnext() -> nn.Module:
    widths, depths = (12, 24, 48, 96, None), (3, 3, 9, 3)
    blocks = [CNBlockConfig(widths[i] or 0, widths[i + 1], depth) for i, depth in enumerate(depths)]
    network = models.ConvNeXt(blocks, layer_scale=1, num_classes=CLASSES)  # 1e-6 is meant for large networks
    network.get_submodule("features.0").add_module("0", nn.Conv2d(3, 12, 2, 2))
    return network


def _vit(patch: int, layers: int, heads: int, width: int) -> nn.Module:
    return models.VisionTransformer(32, patch, layers, heads, width, 4 * width, num_classes=CLASSES)


def _swin() -> nn.Module:
    return models.SwinTransformer([4, 4], 12, [2, 2, 6, 2], [1, 2, 4, 8], [4, 4], num_classes=CLASSES)


_C, _T = "convolutional", "transformer"
_VGGS = ("vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn")
#: The decade, in order of the years: small copies of the torchvision networks of these names.
SETTINGS = {
    "alexnet": Setting(2012, _C, _alexnet),
    **{name: Setting(2014, _C, partial(_vgg, getattr(models, name))) for name in _VGGS},
    "googlenet": Setting(2014, _C, _googlenet),
    "inception_v3": Setting(2015, _C, _inception),
    "resnet10": Setting(2015, _C, lambda: _resnet([1, 1, 1, 1], 4)),
    "resnet18": Setting(2015, _C, lambda: _resnet([2, 2, 2, 2], 8)),
    "resnet34": Setting(2015, _C, lambda: _resnet([3, 4, 6, 3], 8)),
    "resnet18_no_skips": Setting(2015, _C, lambda: _resnet([2, 2, 2, 2], 8, skips=False)),
    "densenet28": Setting(2016, _C, lambda: _densenet((4, 4, 4))),
    "densenet40": Setting(2016, _C, lambda: _densenet((6, 6, 6))),
    "mobilenet_v2": Setting(2018, _C, _mobilenet_v2),
    "mnasnet": Setting(2018, _C, _mnasnet),
    "mobilenet_v3": Setting(2019, _C, _mobilenet_v3),
    "efficientnet": Setting(2019, _C, _efficientnet),
    "vit_8": Setting(2020, _T, lambda: _vit(8, 12, 3, 48)),
    "vit_4": Setting(2020, _T, lambda: _vit(4, 4, 4, 64)),
    "swin": Setting(2021, _T, _swin),
    "convnext": Setting(2022, _C, _convnext),
}


def build(name: str, seed: int = 0) -> nn.Module:
    """The network of a setting with its start weights, in the memory format in which it runs faster.

    Takes float32 (n, 3, 32, 32), gives logits (n, 10).

    Parameters
    ----------
    name
        One of :data:`SETTINGS`.
    seed
        Of the weights. The global generator is left as it was.

    Raises
    ------
    ValueError
        If there is no such setting.

    >>> build("vit_8")(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if name not in SETTINGS:
        raise ValueError(f"name is {name!r}; it should be one of {', '.join(SETTINGS)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SETTINGS[name].make()
    for module in network.modules():
        if isinstance(module, nn.Dropout | StochasticDepth):
            module.p = 0.0
        elif isinstance(module, nn.BatchNorm2d):
            module.momentum = MOMENTUM
    layout = torch.channels_last if SETTINGS[name].family == "convolutional" else torch.contiguous_format
    return network.to(memory_format=layout)  # type: ignore[call-overload, no-any-return]


def wide_vgg16(seed: int = 0) -> nn.Module:
    """The start of the VGG16 of :data:`SETTINGS` with all channels of the original, eight times as many."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _vgg(models.vgg16, by=1).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
