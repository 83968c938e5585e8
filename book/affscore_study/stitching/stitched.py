"""Stitched networks: the first layers of one network, a small map, and the last layers of another.

If the second network is accurate on the mapped features of the first one, the features agree up to such a map. The
study compares sets of maps: any matrix, one of rank r, a sparse one, or only a permutation of the channels with
positive scales, which are the symmetries of ReLU (:mod:`affscore_book.symmetries.groups`). The maps are those of
:mod:`affscore_study.stitching.maps`.

*   :class:`Stitched` joins two trained networks of ``affscore_book.kit.networks`` at an activation, through a stitch.
*   :func:`layer_states` returns the features at every cut, and :func:`layer_moments` the moments for closed-form
    stitches.

:mod:`affscore_study.stitching.learning` trains stitches and measures their accuracy.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendices D.2 and E.9.2.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from affscore.forward import evaluating
from affscore_book.kit.features import features
from affscore_book.kit.networks import BasicBlock, activation_layers
from affscore_book.stitching.moments import Moments
from affscore_book.stitching.study import inside_block
from affscore_study.stitching.maps import Stitch

__all__ = ["State", "Stitched", "layer_moments", "layer_states", "split"]


class State(NamedTuple):
    """The features at a cut: the activation (n, C, H, W), and inside a residual block the shortcut, of the same shape.

    ``skip`` is None outside residual blocks and in blocks without a shortcut.
    """

    value: Tensor
    skip: Tensor | None = None

    def take(self, index: Tensor | slice) -> State:
        """The state of the images of an index or a slice."""
        return State(self.value[index], None if self.skip is None else self.skip[index])


class _Bottom(nn.Module):
    """A network up to and including an activation, which maps images to a :class:`State`."""

    def __init__(self, before: nn.Sequential, block: BasicBlock | None):
        super().__init__()
        self.before, self.block = before, block

    def forward(self, images: Tensor) -> State:
        x = self.before(images)
        if self.block is None:
            return State(x)
        return State(self.block.relu1(self.block.a(x)), self.block.shortcut(x) if self.block.residual else None)


class _Top(nn.Module):
    """A network after an activation, which maps a :class:`State` to logits."""

    def __init__(self, block: BasicBlock | None, after: nn.Sequential):
        super().__init__()
        self.block, self.after = block, after

    def forward(self, state: State) -> Tensor:
        x = state.value
        if self.block is not None:
            x = self.block.b(x)
            x = self.block.relu2(x if state.skip is None else x + state.skip)
        return self.after(x)


def split(network: nn.Module, layer: str) -> tuple[nn.Module, nn.Module]:
    """The two parts of a network cut after an activation, in evaluation mode and without gradients of the parameters.

    The first part maps images (n, channels, 32, 32) to a :class:`State`, and the second maps a State to logits (n,
    classes). Both are copies, and the network is unchanged.

    Inside a residual block, the state holds the block's shortcut in addition to the activation. In a stitched network
    the shortcut is therefore that of the *first* network (equation E.54).

    Raises
    ------
    ValueError
        If the network has no activation of that name (the error lists those it has).

    >>> from affscore_book.kit.networks import myrtle
    >>> network = myrtle(width=4, channels=1).eval()
    >>> bottom, top = split(network, "relu3")
    >>> images = torch.randn(2, 1, 32, 32)
    >>> bottom(images).value.shape
    torch.Size([2, 16, 16, 16])
    >>> bool((top(bottom(images)) == network(images)).all())
    True
    """
    names = activation_layers(network)
    if layer not in names:
        raise ValueError(f"layer is {layer!r}; the activations of this network are {', '.join(names)}.")
    children = list(copy.deepcopy(network).named_children())
    at = [name for name, _ in children].index(layer.split(".")[0])
    block: BasicBlock | None = None
    if inside_block(layer):
        block = children[at][1]  # type: ignore[assignment]
        before = children[:at]
    else:
        before = children[: at + 1]
    bottom = _Bottom(nn.Sequential(OrderedDict(before)), block)
    top = _Top(block, nn.Sequential(OrderedDict(children[at + 1 :])))
    return bottom.eval().requires_grad_(False), top.eval().requires_grad_(False)


class Stitched(nn.Module):
    """The first network up to an activation, a stitch, then the second network: S(A, B, l, phi) of section 4.

    Parameters
    ----------
    bottom, top
        Trained networks of :mod:`affscore_book.kit.networks`. They are copied and frozen: they stay in evaluation mode
        even after ``train()`` and have no gradients, so neither weights nor batch-norm statistics ever change.
    layer
        The activation, one of ``activation_layers(network)``.
    stitch
        The map; None for the identity, which needs equal numbers of channels.
    skip_stitch
        Inside a residual block, a map for the shortcut as well. By default the shortcut of ``bottom`` is not mapped
        (equation E.54).

    Raises
    ------
    ValueError
        If a network has no such layer, the stitch does not fit, or a ``skip_stitch`` is given but there is no shortcut.

    >>> from affscore_book.kit.networks import myrtle
    >>> from affscore_study.stitching.maps import Full
    >>> one, other = myrtle(width=4, channels=1), myrtle(width=4, channels=1)
    >>> Stitched(one, other, "relu1", Full(torch.eye(4)))(torch.zeros(2, 1, 32, 32)).shape
    torch.Size([2, 10])
    """

    @torch.no_grad()
    def __init__(
        self,
        bottom: nn.Module,
        top: nn.Module,
        layer: str,
        stitch: Stitch | None = None,
        skip_stitch: Stitch | None = None,
    ):
        super().__init__()
        self.bottom, _ = split(bottom, layer)
        kept, self.top = split(top, layer)
        # A black image gives the shapes at the cut.
        first = next(module for module in self.bottom.modules() if isinstance(module, nn.Conv2d))
        black = first.weight.new_zeros(1, first.in_channels, 32, 32)
        ours, theirs = self.bottom(black), kept(black)
        channels = ours.value.shape[1], theirs.value.shape[1]
        for name, map_ in (("stitch", stitch), ("skip_stitch", skip_stitch)):
            fits = channels if map_ is None else (map_.inputs, map_.outputs)
            if fits != channels or (name == "stitch" and map_ is None and channels[0] != channels[1]):
                raise ValueError(
                    f"{name} takes {fits[0]} channels to {fits[1]}; at layer {layer} the networks have {channels[0]} "
                    f"and {channels[1]}."
                )
        if (ours.skip is None) != (theirs.skip is None):
            raise ValueError(f"layer {layer} lies inside a block with a shortcut in one network and not in the other.")
        if skip_stitch is not None and ours.skip is None:
            raise ValueError(f"skip_stitch is given, but no shortcut runs past layer {layer}.")
        self.stitch, self.skip_stitch = stitch, skip_stitch

    def train(self, mode: bool = True) -> Stitched:
        """Set the mode of the stitch; everything else stays in evaluation mode."""
        super().train(mode)
        self.bottom.eval()
        self.top.eval()
        return self

    @torch.no_grad()
    def states(self, images: Tensor) -> State:
        """The features at the stitch, for standardised images of shape (n, channels, 32, 32).

        They are computed once, so that :mod:`affscore_study.stitching.learning` need not run the first network in each
        epoch. They take 4 n C H W bytes, and twice as many inside residual blocks.
        """
        parts = [self.bottom(some) for some in images.split(250)]
        skip = None if parts[0].skip is None else torch.cat([part.skip for part in parts])
        return State(torch.cat([part.value for part in parts]), skip)

    def after(self, state: State) -> Tensor:
        """The logits (n, classes) of the stitch and the second network, for a :class:`State`."""
        value = state.value if self.stitch is None else self.stitch(state.value)
        skip = state.skip if self.skip_stitch is None or state.skip is None else self.skip_stitch(state.skip)
        return self.top(State(value, skip))

    def forward(self, images: Tensor) -> Tensor:
        return self.after(self.bottom(images))


@torch.no_grad()
def layer_moments(
    bottom: nn.Module, top: nn.Module, images: Tensor, layers: Iterable[str] | None = None, *, skips: bool = False
) -> dict[str, Moments]:
    """The :class:`Moments` of two networks at many activations in one pass over the images.

    Parameters
    ----------
    bottom, top
        The networks whose features are x and y. They run in evaluation mode and are unchanged afterwards.
    images
        Standardised images, float32 of shape (n, channels, 32, 32).
    layers
        The names of activations, by default all.
    skips
        Whether to add the moments of the shortcuts past the activations inside residual blocks, as
        ``"block1.shortcut"``.

    Raises
    ------
    ValueError
        If a network has no such module, or shapes differ.
    """
    names = activation_layers(bottom) if layers is None else list(layers)
    result: dict[str, Moments] = {}
    for some in images.split(250):
        x, y = (layer_states(network, names, some) for network in (bottom, top))
        for name in names:
            parts = {name: Moments.of(x[name].value, y[name].value)}
            one, other = x[name].skip, y[name].skip
            if skips and one is not None and other is not None:
                parts[name.removesuffix("relu1") + "shortcut"] = Moments.of(one, other)
            result |= {key: result[key] + part if key in result else part for key, part in parts.items()}
    return result


@torch.no_grad()
def layer_states(network: nn.Module, layers: Iterable[str], images: Tensor) -> dict[str, State]:
    """The features at a cut after each of the layers, from one pass over standardised images (n, channels, 32, 32).

    They are those of :meth:`Stitched.states`, layer by layer. The network runs in evaluation mode and is unchanged
    afterwards. Raises ValueError if it has no such module.

    >>> from affscore_book.kit.networks import resnet20
    >>> states = layer_states(resnet20(width=4, channels=1), ["relu", "block1.relu1"], torch.zeros(2, 1, 32, 32))
    >>> states["relu"].skip is None, states["block1.relu1"].skip.shape
    (True, torch.Size([2, 4, 32, 32]))
    """
    names, modules = list(layers), dict(network.named_modules())
    blocks = {name: name.removesuffix(".relu1") for name in names if inside_block(name)}
    with evaluating(network), features(network, [*names, *blocks.values()]) as seen:
        network(images)
    result = {}
    for name in names:
        block: BasicBlock | None = modules[blocks[name]] if name in blocks else None  # type: ignore[assignment]
        residual = block is not None and block.residual
        skip = block.shortcut(seen[blocks[name]].input) if block is not None and residual else None
        result[name] = State(seen[name].output, skip)
    return result
