"""The hidden layers of a network as a symmetry sees them: an activation, the layer before it, those that read it.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, sections 3 and 4 and appendix E.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from affscore_book.kit.networks import BasicBlock
from affscore_book.symmetries.groups import Intertwiner
from affscore_book.symmetries.table import intertwiner

__all__ = ["NORMS", "HiddenLayer", "hidden_layers"]

#: The modules that count as batch norm.
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_MAX_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d)
_THROUGH = (
    nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.Flatten, nn.Dropout, nn.Dropout2d,
)  # fmt: skip


@dataclass
class HiddenLayer:
    """An activation of a network, with the layers around it.

    Attributes
    ----------
    name, module, channels
        Name and module of the activation, and the number of its channels.
    producer, norm
        The linear or convolutional layer before it, and the batch norm between the two or None.
    consumers
        The linear or convolutional layers that read it.
    pooled
        True if a max-pooling layer lies between: then phi(A) must not have negative entries.
    tied_to, new_channels
        In a residual network, the activation whose output is added before this one, or "". ``new_channels`` are
        added around it by padding with zeros.
    """

    name: str
    module: nn.Module
    channels: int
    producer: Any
    norm: Any
    consumers: list[Any] = field(default_factory=list)
    pooled: bool = False
    tied_to: str = ""
    new_channels: int = 0

    @property
    def group(self) -> Intertwiner:
        """The intertwiner group of the activation."""
        return intertwiner(self.module)

    def __repr__(self) -> str:
        tie = f", tied to {self.tied_to}" if self.tied_to else ""
        return f"HiddenLayer({self.name}: {self.channels} channels{tie})"


def hidden_layers(network: nn.Module) -> list[HiddenLayer]:
    """The hidden activations of a network in execution order, with what lies around them.

    Parameters
    ----------
    network
        An ``nn.Sequential``, nested or not, of linear and convolutional layers, batch norm, activations, pooling,
        flattening, dropout and :class:`affscore_book.kit.networks.BasicBlock`.

    Raises
    ------
    TypeError
        If it is something else, or holds another kind of module.
    ValueError
        If an activation does not follow a linear or convolutional layer, or a convolution has groups.

    >>> from affscore_book.kit.networks import resnet20
    >>> hidden_layers(resnet20(width=4))[1:3]
    [HiddenLayer(block1.relu1: 4 channels), HiddenLayer(block1.relu2: 4 channels, tied to relu)]
    """
    if not isinstance(network, nn.Sequential):
        raise TypeError(f"network is a {type(network).__name__}; it should be an nn.Sequential.")
    layers: list[HiddenLayer] = []
    producer: Any = None  # waits for its activation
    norm: Any = None
    current: HiddenLayer | None = None  # whose output flows

    def hidden(name: str, module: nn.Module, before: Any, norm: Any) -> HiddenLayer:
        layer = HiddenLayer(name, module, before.weight.shape[0], before, norm)
        layers.append(layer)
        return layer

    for name, module in _children(network):
        if isinstance(module, _AFFINE):
            if getattr(module, "groups", 1) != 1:
                raise ValueError(f"network.{name} is a convolution with groups; its channels cannot be mixed.")
            if current is not None:
                current.consumers.append(module)
            producer, norm, current = module, None, None
        elif isinstance(module, NORMS):
            if producer is None or norm is not None:
                raise ValueError(f"network.{name} should follow a linear or convolutional layer.")
            norm = module
        elif isinstance(module, BasicBlock):
            if current is None:
                raise ValueError(f"network.{name} should follow an activation.")
            current.consumers.append(module.a[0])
            norms = [next(iter(branch[1:]), None) for branch in (module.a, module.b)]  # None where it was folded
            inner = hidden(f"{name}.relu1", module.relu1, module.a[0], norms[0])
            inner.consumers.append(module.b[0])
            outer = hidden(f"{name}.relu2", module.relu2, module.b[0], norms[1])
            if module.residual:
                outer.tied_to, outer.new_channels = current.name, module.new_channels
            current = outer
        elif isinstance(module, _MAX_POOLS + _THROUGH) or (isinstance(module, nn.Identity) and producer is None):
            if producer is not None:
                raise ValueError(f"network.{name} lies between a layer and its activation, which cannot be handled.")
            if current is not None and isinstance(module, _MAX_POOLS):
                current.pooled = True
        else:
            try:
                intertwiner(module)
            except (TypeError, ValueError, RuntimeError, IndexError) as error:
                raise TypeError(f"network.{name} is a {type(module).__name__}, which act cannot handle.") from error
            if producer is None:
                raise ValueError(f"network.{name} should follow a linear or convolutional layer, or its batch norm.")
            current, producer = hidden(name, module, producer, norm), None
    return [layer for layer in layers if layer.consumers]


def _children(network: nn.Sequential, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    for name, module in network.named_children():
        if isinstance(module, nn.Sequential):
            yield from _children(module, f"{prefix}{name}.")
        else:
            yield prefix + name, module
