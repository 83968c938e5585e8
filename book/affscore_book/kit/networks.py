"""Small convolutional networks: the Myrtle CNN and ResNet20, with and without skips, for images of 32 x 32 pixels.

The chapters ``symmetries``, ``stitching``, ``similarity`` and ``linearized`` train and take apart these networks. Every
activation is a separate module with a name, which :func:`activation_layers` lists, so that features can be read and
replaced there.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, appendix D.1 and figures 26 and 27.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from affscore_book.kit.training import load_weights, read_about

__all__ = ["BasicBlock", "activation_layers", "load_network", "mlp", "myrtle", "resnet", "resnet20"]


def _activation(slope: float) -> nn.Module:
    if slope == 1:
        return nn.Identity()
    return nn.LeakyReLU(slope) if slope else nn.ReLU()


def _convolution(inputs: int, outputs: int, stride: int, norm: bool) -> list[nn.Module]:
    layer = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=not norm)
    return [layer, nn.BatchNorm2d(outputs)] if norm else [layer]


def myrtle(
    width: int = 64, *, channels: int = 3, slope: float = 0.0, norm: bool = True, constant: bool = False
) -> nn.Sequential:
    """The Myrtle CNN: four 3 x 3 convolutions with 1, 2, 4 and 8 times ``width`` channels, then one linear layer.

    Parameters
    ----------
    width
        Output channels of the first convolution; 64 in the paper.
    channels
        Channels of the input image.
    slope
        Negative slope of the activations: 0 is ReLU, 1 is the identity.
    norm
        Whether batch norm follows every convolution; without batch norm the convolutions have biases.
    constant
        Whether all four convolutions have ``width`` output channels, as in the paper's appendix D.8.

    Returns
    -------
    Sequential of (n, channels, 32, 32) float32 to (n, 10) logits; activations ``relu1`` to ``relu4`` have
    sides of 32, 32, 16 and 8 pixels.

    Examples
    --------
    >>> import torch
    >>> myrtle(width=16, channels=1)(torch.zeros(2, 1, 32, 32)).shape
    torch.Size([2, 10])
    >>> sum(parameter.numel() for parameter in myrtle().parameters())  # figure 26 minus the biases before batch norm
    1557066
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    inputs = channels
    for i in range(1, 5):
        outputs = width if constant else width * 2 ** (i - 1)
        for name, module in zip(("conv", "norm"), _convolution(inputs, outputs, 1, norm), strict=False):
            layers[f"{name}{i}"] = module
        layers[f"relu{i}"] = _activation(slope)
        if i > 1:
            layers[f"pool{i}"] = nn.MaxPool2d(2)
        inputs = outputs
    return nn.Sequential(layers | _head(nn.MaxPool2d(4), inputs))


def _head(pool: nn.Module, inputs: int) -> OrderedDict[str, nn.Module]:
    return OrderedDict(pool=pool, flatten=nn.Flatten(), linear=nn.Linear(inputs, 10))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, added to the block's input: relu2(b(relu1(a(x))) + shortcut(x)).

    If the block halves the image and doubles the channels, the shortcut takes every second pixel and pads the new
    channels with zeros, so it has no weights. ``residual=False`` drops the shortcut, and ``last_relu=False`` drops
    relu2.
    """

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, slope: float = 0, residual: bool = True, last_relu: bool = True
    ):
        super().__init__()
        self.a = nn.Sequential(*_convolution(inputs, outputs, stride, norm=True))
        self.relu1 = _activation(slope)
        self.b = nn.Sequential(*_convolution(outputs, outputs, 1, norm=True))
        self.relu2 = _activation(slope) if last_relu else nn.Identity()
        self.stride, self.new_channels, self.residual = stride, outputs - inputs, residual

    def shortcut(self, x: Tensor) -> Tensor:
        """Maps (n, inputs, H, W) to (n, outputs, H / stride, W / stride)."""
        before = self.new_channels // 2
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.new_channels - before))

    def forward(self, x: Tensor) -> Tensor:
        out = self.b(self.relu1(self.a(x)))
        return self.relu2(out + self.shortcut(x) if self.residual else out)


def resnet20(width: int = 16, **options: Any) -> nn.Sequential:
    """ResNet20: a convolution, then three stages of three blocks; ``options`` are those of :func:`resnet`.

    >>> sum(parameter.numel() for parameter in resnet20().parameters())          # as in the paper's figure 27
    269722
    """
    return resnet(width, (3, 3, 3), **options)


def resnet(
    width: int,
    blocks: Sequence[int],
    *,
    stem_stride: int = 1,
    channels: int = 3,
    slope: float = 0.0,
    residual: bool = True,
    last_relu: bool = True,
) -> nn.Sequential:
    """A convolution, then stages of :class:`BasicBlock`: stage i has ``blocks[i]`` blocks of ``width * 2**i`` channels.

    Parameters
    ----------
    width
        Channels of the first stage; 16 in the paper.
    stem_stride
        With 2 the first convolution halves the image, which makes everything after it four times cheaper.
    channels
        Channels of the input image.
    slope
        Negative slope of the activations: 0 is ReLU, 1 is the identity.
    residual
        False makes the plain network of the same depth, without shortcuts.
    last_relu
        False removes the activation after each addition.

    Returns
    -------
    Sequential of (n, channels, 32, 32) float32 to (n, 10) logits. Blocks are called ``block1``, ``block2``, ...

    Examples
    --------
    >>> len(activation_layers(resnet(8, (2, 2, 2), stem_stride=2)))               # ResNet14
    13
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["conv"], layers["norm"] = _convolution(channels, width, stem_stride, norm=True)
    layers["relu"] = _activation(slope)
    inputs, number = width, 0
    for stage, count in enumerate(blocks):
        outputs = width * 2**stage
        for i in range(count):
            number += 1
            layers[f"block{number}"] = BasicBlock(
                inputs, outputs, 2 if stage and not i else 1, slope=slope, residual=residual, last_relu=last_relu
            )
            inputs = outputs
    return nn.Sequential(layers | _head(nn.AdaptiveAvgPool2d(1), inputs))


def mlp(
    width: int = 64, depth: int = 4, *, classes: int = 10, side: int = 32, slope: float = 0.0
) -> nn.Sequential:  # fmt: skip
    """A multilayer perceptron: ``depth`` hidden layers of ``width`` units with batch norm, and a linear layer.

    Its input is (n, 1, side, side) float32. The activations are called ``relu1``, ``relu2``, ... and have the given
    negative slope.

    >>> activation_layers(mlp(depth=3))
    ['relu1', 'relu2', 'relu3']
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    inputs = side**2
    for i in range(1, depth + 1):
        layers[f"linear{i}"], layers[f"norm{i}"] = nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width)
        layers[f"relu{i}"] = _activation(slope)
        inputs = width
    layers["linear"] = nn.Linear(inputs, classes)
    return nn.Sequential(layers)


def activation_layers(network: nn.Module) -> list[str]:
    """The names of the activation modules in execution order: ``relu`` and a number, including identities.

    >>> activation_layers(myrtle())
    ['relu1', 'relu2', 'relu3', 'relu4']
    >>> activation_layers(resnet20())[:4]
    ['relu', 'block1.relu1', 'block1.relu2', 'block2.relu1']
    """
    return [name for name, _ in network.named_modules() if name.rsplit(".", 1)[-1].rstrip("0123456789") == "relu"]


def load_network(path: str | os.PathLike[str]) -> tuple[nn.Sequential, dict[str, Any]]:
    """A trained network of the book in evaluation mode, float32, and the description of it in its file.

    Raises
    ------
    ValueError
        If the file is damaged or was not written by ``book/data/networks/make.py``.
    """
    about = read_about(path)
    builders: dict[str, Callable[..., nn.Sequential]] = {"myrtle": myrtle, "resnet20": resnet20}
    build = builders.get(about.get("architecture", ""))
    if build is None:
        raise ValueError(f"path: {path} does not say which network it holds, as the files of book/data/networks do.")
    network = build(**about["options"])
    load_weights(network, path)
    return network, about
