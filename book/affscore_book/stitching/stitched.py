"""Stitching: the first layers of one network, a small map, the last layers of another.

If the map lets the second network understand the first one's features, the features agree up to such a map. What the
map may be is the question asked: any matrix, one of rank r, a sparse one, or only a permutation of the channels with
positive scales, which are the symmetries of ReLU (:mod:`affscore_book.symmetries.groups`). The maps are those of
:mod:`affscore_book.stitching.maps`.

*   :class:`Stitched` joins two trained networks of ``affscore_book.kit.networks`` at an activation, through a stitch.
*   :func:`layer_moments` gives what the closed-form stitches need. :func:`learn` trains a stitch, and only the stitch,
    on the task. :func:`reestimate` measures the batch-norm statistics of the second network anew.
*   :func:`accuracy_of` and :func:`penalty` say what a stitch costs; averages over pairs of networks and their
    intervals are in :mod:`affscore_book.stitching.study`.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendices D.2 and E.9.2.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore_book.kit.features import evaluating, features
from affscore_book.kit.networks import BasicBlock, activation_layers
from affscore_book.stitching.maps import Stitch
from affscore_book.stitching.moments import Moments

__all__ = [
    "State",
    "Stitched",
    "accuracy_of",
    "inside_block",
    "layer_moments",
    "learn",
    "penalty",
    "reestimate",
    "split",
]


class State(NamedTuple):
    """What passes through the cut: the activation (n, C, H, W), and inside a residual block the shortcut, same shape.

    ``skip`` is None outside residual blocks and in blocks without a shortcut.
    """

    value: Tensor
    skip: Tensor | None = None

    def take(self, index: Tensor | slice) -> State:
        """The images of an index or a slice."""
        return State(self.value[index], None if self.skip is None else self.skip[index])


class _Bottom(nn.Module):
    """A network up to and including an activation: images to :class:`State`."""

    def __init__(self, before: nn.Sequential, block: BasicBlock | None):
        super().__init__()
        self.before, self.block = before, block

    def forward(self, images: Tensor) -> State:
        x = self.before(images)
        if self.block is None:
            return State(x)
        return State(self.block.relu1(self.block.a(x)), self.block.shortcut(x) if self.block.residual else None)


class _Top(nn.Module):
    """A network after an activation: :class:`State` to logits."""

    def __init__(self, block: BasicBlock | None, after: nn.Sequential):
        super().__init__()
        self.block, self.after = block, after

    def forward(self, state: State) -> Tensor:
        x = state.value
        if self.block is not None:
            x = self.block.b(x)
            x = self.block.relu2(x if state.skip is None else x + state.skip)
        return self.after(x)


def inside_block(layer: str) -> bool:
    """Whether an activation of :func:`affscore_book.kit.networks.resnet20` lies inside a residual block.

    >>> inside_block("block3.relu1"), inside_block("block3.relu2"), inside_block("relu3")
    (True, False, False)
    """
    return layer.startswith("block") and layer.endswith(".relu1")


def split(network: nn.Module, layer: str) -> tuple[nn.Module, nn.Module]:
    """A network cut after an activation, as two modules in evaluation mode whose parameters want no gradient.

    The first takes images (n, channels, 32, 32) to a :class:`State`, the second takes a State to logits (n, classes).
    Both are copies: the network stays as it is.

    Inside a residual block the state holds the block's shortcut beside the activation. In a stitched network the
    shortcut is therefore the *first* network's: equation E.54.

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
        Trained networks of :mod:`affscore_book.kit.networks`. They are copied and frozen: evaluation mode, whatever
        ``train()`` says, and no gradients, so neither weights nor batch-norm statistics ever change.
    layer
        The activation, one of ``activation_layers(network)``.
    stitch
        The map. None for the identity, which needs equal numbers of channels.
    skip_stitch
        Inside a residual block, a map for the shortcut as well. By default the shortcut of ``bottom`` arrives as it is
        (equation E.54).

    Raises
    ------
    ValueError
        If a network has no such layer, the stitch does not fit, or a ``skip_stitch`` is given where there is no
        shortcut.

    >>> from affscore_book.kit.networks import myrtle
    >>> from affscore_book.stitching.maps import Full
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
        # A black image shows the shapes at the cut.
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
        """Only the stitch can be in training mode."""
        super().train(mode)
        self.bottom.eval()
        self.top.eval()
        return self

    @torch.no_grad()
    def states(self, images: Tensor) -> State:
        """What arrives at the stitch, for standardised images (n, channels, 32, 32).

        Computed once and handed to :func:`learn` and :func:`accuracy_of`, it saves their running the first network
        again and again. It takes 4 n C H W bytes, twice that inside residual blocks.
        """
        parts = [self.bottom(some) for some in images.split(250)]
        skip = None if parts[0].skip is None else torch.cat([part.skip for part in parts])
        return State(torch.cat([part.value for part in parts]), skip)

    def after(self, state: State) -> Tensor:
        """From a :class:`State` to logits (n, classes): the stitch and the second network."""
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
        The network that gives x, and the one that gives y. Run in evaluation mode, and left as they were.
    images
        Standardised, float32 (n, channels, 32, 32).
    layers
        Names of activations, by default all.
    skips
        Also the moments of the shortcuts past the activations inside residual blocks, as ``"block1.shortcut"``.

    Raises
    ------
    ValueError
        If a network has no such module, or shapes differ.
    """
    names = activation_layers(bottom) if layers is None else list(layers)
    result: dict[str, Moments] = {}
    for some in images.split(250):
        x, y = (_layer_features(network, names, some, skips) for network in (bottom, top))
        for name in x:
            part = Moments.of(x[name], y[name])
            result[name] = result[name] + part if name in result else part
    return result


def _layer_features(network: nn.Module, names: list[str], images: Tensor, skips: bool) -> dict[str, Tensor]:
    """Name of an activation to what it gives, and of a shortcut beside one to that."""
    modules = dict(network.named_modules())
    blocks = {name.removesuffix(".relu1"): modules[name.removesuffix(".relu1")] for name in names if inside_block(name)}
    residual = {name: block for name, block in blocks.items() if skips and block.residual}
    with evaluating(network), features(network, [*names, *residual]) as seen:
        network(images)
    found = {name: seen[name].output for name in names}
    return found | {f"{name}.shortcut": block.shortcut(seen[name].input) for name, block in residual.items()}


def learn(
    stitched: Stitched,
    states: State,
    labels: Tensor,
    *,
    epochs: int,
    seed: int,
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    batch_size: int = 50,
) -> list[float]:
    """Train the stitch in place by gradient descent on the task's cross-entropy; all else is frozen.

    The paper takes 20 epochs of 50,000 images, batches of 32, learning rate 0.001, and states both momentum 0.9 and
    none; we take 0.9. Images are not augmented here, because the first network's features are computed only once.

    Parameters
    ----------
    stitched
        The network. Its ``stitch`` changes.
    states, labels
        From ``stitched.states(images)``, and int64 (n,).
    epochs, learning_rate, momentum, batch_size
        Of stochastic gradient descent.
    seed
        Of the order of the images.

    Returns
    -------
    The mean loss of each epoch, without the stitch's own term.

    Raises
    ------
    ValueError
        If there is nothing to learn, numbers of images differ, or the loss is not finite.
    """
    if stitched.stitch is None or not list(stitched.stitch.parameters()):
        raise ValueError(f"the stitch {stitched.stitch!r} has nothing to learn.")
    n = len(labels)
    if len(states.value) != n:
        raise ValueError(f"states holds {len(states.value)} images and labels {n}; they should be the same.")
    stitch = stitched.stitch.train()
    optimizer = torch.optim.SGD(stitch.parameters(), lr=learning_rate, momentum=momentum)
    generator = torch.Generator().manual_seed(seed)
    starts = range(0, n, batch_size)
    history = []
    for epoch in range(epochs):
        order, total = torch.randperm(n, generator=generator), 0.0
        for step, start in enumerate(starts):
            stitch.schedule((epoch + step / len(starts)) / epochs)
            index = order[start : start + batch_size].to(labels.device)
            loss = functional.cross_entropy(stitched.after(states.take(index)), labels[index])
            optimizer.zero_grad()
            (loss + stitch.penalty()).backward()
            optimizer.step()
            stitch.project(learning_rate / (1 - momentum))  # momentum makes steps longer
            total += loss.item() * len(index)
        if not math.isfinite(total):
            raise ValueError(f"the loss of epoch {epoch + 1} is not finite; try a smaller learning_rate.")
        history.append(total / n)
    return history


@torch.no_grad()
def reestimate(stitched: Stitched, states: State) -> Stitched:
    """A copy whose second part has its batch-norm statistics measured anew: one pass over training images.

    The statistics become the plain mean over batches of 100. Where the second part has no batch norm, the copy is the
    same. The paper does so after rounding a stitch to a permutation (appendix D.2.1).
    """
    result = copy.deepcopy(stitched)
    norms = [module for module in result.top.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative mean instead of an exponential one
        norm.train()
    if norms:
        for start in range(0, len(states.value), 100):
            result.after(states.take(slice(start, start + 100)))
    result.top.eval()
    return result


@torch.no_grad()
def accuracy_of(stitched: Stitched, states: State, labels: Tensor) -> float:
    """Share of the images, given as :meth:`Stitched.states`, whose largest output is at their label; 0 to 1."""
    if len(states.value) != len(labels) or not len(labels):
        raise ValueError(f"states holds {len(states.value)} images and labels {len(labels)}; they should be the same.")
    right = 0
    with evaluating(stitched):
        for start in range(0, len(labels), 250):
            part = slice(start, start + 250)
            right += int((stitched.after(states.take(part)).argmax(1) == labels[part]).sum())
    return right / len(labels)


def penalty(bottom: float, top: float, stitched: float) -> float:
    """The stitching penalty in accuracy points, equation 4.3: 100 times the networks' mean accuracy less the stitched.

    All between 0 and 1, on the same images.

    >>> round(penalty(0.91, 0.93, 0.87), 6)
    5.0
    """
    for name, value in (("bottom", bottom), ("top", top), ("stitched", stitched)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}; it should be an accuracy between 0 and 1.")
    return 100 * ((bottom + top) / 2 - stitched)
