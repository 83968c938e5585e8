"""Stitching: the first layers of one network, a small map, the last layers of another.

If the map lets the second network understand the first one's features, the features agree up to such a map. What the
map may be is the question asked: any matrix, one of rank r, a sparse one, or only a permutation of the channels with
positive scales, which are the symmetries of ReLU (:mod:`affscore.symmetries`).

*   :class:`Stitched` joins two trained networks of :mod:`affscore.networks` at an activation, through a
    :class:`Stitch`, a matrix on the channels without bias.
*   :class:`Moments` of both networks' features give the best maps in closed form: :func:`least_squares` (any rank) and
    :func:`assignment` (permutation and scales). :func:`stitch_layer` makes a stitch from them, or from random numbers.
*   :func:`learn` trains a stitch, and only the stitch, on the task. :func:`reestimate` measures the batch-norm
    statistics of the second network anew. :func:`penalty` is what the stitch costs, :func:`interval` its uncertainty.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendices D.2, D.5, D.6 and E.9.2.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from affscore.networks import BasicBlock, activation_layers

__all__ = [
    "KINDS",
    "Birkhoff",
    "Full",
    "Interval",
    "Lasso",
    "LowRank",
    "Moments",
    "Monomial",
    "SoftSort",
    "State",
    "Stitch",
    "Stitched",
    "Study",
    "accuracy_of",
    "assignment",
    "hungarian",
    "inside_block",
    "interval",
    "layer_moments",
    "learn",
    "least_squares",
    "load_study",
    "penalty",
    "reestimate",
    "sinkhorn",
    "soft_sort",
    "split",
    "stitch_layer",
]

#: The stitches of :func:`stitch_layer`; any other rank is understood, too.
KINDS = ("full", "rank 1", "rank 2", "rank 4", "lasso", "g_relu", "soft_sort")

#: A scale of 0 would leave the group, so a channel that should vanish is scaled by this.
SMALLEST_SCALE = 1e-6


# ------------------------------------------------------------------------------------- cutting networks


class State(NamedTuple):
    """What passes through the cut: the activation (n, C, H, W), and inside a residual block the shortcut, same shape.

    ``skip`` is None outside residual blocks and in blocks without a shortcut.
    """

    value: Tensor
    skip: Tensor | None = None


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
    """Whether an activation of :func:`affscore.networks.resnet20` lies inside a residual block.

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
    TypeError
        If the network is not one of :mod:`affscore.networks`.

    >>> from affscore.networks import myrtle
    >>> network = myrtle(width=4, channels=1).eval()
    >>> bottom, top = split(network, "relu3")
    >>> images = torch.randn(2, 1, 32, 32)
    >>> bottom(images).value.shape
    torch.Size([2, 16, 16, 16])
    >>> bool((top(bottom(images)) == network(images)).all())
    True
    """
    if not isinstance(network, nn.Sequential):
        raise TypeError(f"network is a {type(network).__name__}; it should be a Sequential of affscore.networks.")
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


# --------------------------------------------------------------------------------------------- stitches


class Stitch(nn.Module):
    """A linear map on channels, (n, inputs, H, W) to (n, outputs, H, W), the same at every pixel and without bias.

    The base of all stitches. A kind gives :meth:`matrix`; some also have a term for the training loss
    (:meth:`penalty`), a step after each update (:meth:`project`) and a final form (:meth:`rounded`).
    """

    #: What the paper calls it.
    kind = "stitch"

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs

    def matrix(self) -> Tensor:
        """The map as a matrix (outputs, inputs)."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """A term that :func:`learn` adds to the loss."""
        return torch.zeros(())

    def schedule(self, done: float) -> None:
        """Called before each step with the finished part of the training, from 0 to 1."""

    def project(self) -> None:
        """Called after each step, to return to the set of allowed maps."""

    def rounded(self) -> Stitch:
        """The stitch to evaluate, an element of the allowed set."""
        return self

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.inputs:
            raise ValueError(f"x has shape {tuple(x.shape)}; it should be (n, {self.inputs}, H, W).")
        return functional.conv2d(x, self.matrix()[:, :, None, None].to(x.dtype))

    def sparsity(self, threshold: float = 1e-3) -> float:
        """Share of the matrix's entries of size at most ``threshold``: equation D.1."""
        return float((self.matrix().detach().abs() <= threshold).double().mean())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inputs} -> {self.outputs})"


class Full(Stitch):
    """Any matrix. ``weight`` has shape (outputs, inputs).

    >>> Full(torch.eye(3)[:2])(torch.ones(1, 3, 5, 5)).shape
    torch.Size([1, 2, 5, 5])
    """

    kind = "full"

    def __init__(self, weight: Tensor):
        _matrix("weight", weight)
        super().__init__(weight.shape[1], weight.shape[0])
        self.weight = nn.Parameter(weight.float().clone())

    def matrix(self) -> Tensor:
        return self.weight


class Lasso(Full):
    """Any matrix, with ``strength`` times the sum of its absolute entries added to the training loss (D.6)."""

    kind = "lasso"

    def __init__(self, weight: Tensor, strength: float = 0.01):
        super().__init__(weight)
        if not 0 <= strength < math.inf:
            raise ValueError(f"strength is {strength}; it should be a number of at least 0.")
        self.strength = strength

    def penalty(self) -> Tensor:
        return self.strength * self.weight.abs().sum()


class LowRank(Stitch):
    """A product of two matrices, ``left`` (outputs, rank) and ``right`` (rank, inputs)."""

    kind = "rank"

    def __init__(self, left: Tensor, right: Tensor):
        _matrix("left", left)
        _matrix("right", right)
        if left.shape[1] != right.shape[0]:
            raise ValueError(
                f"left has shape {tuple(left.shape)} and right {tuple(right.shape)}; they should be (outputs, rank) "
                "and (rank, inputs)."
            )
        super().__init__(right.shape[1], left.shape[0])
        self.left, self.right = nn.Parameter(left.float().clone()), nn.Parameter(right.float().clone())

    def matrix(self) -> Tensor:
        return self.left @ self.right


class Monomial(Stitch):
    """An element P D of G_ReLU: output channel i is ``scale[i]`` times input channel ``permutation[i]``.

    Nothing in it is learned. ``scale`` is positive; both have shape (channels,).

    >>> Monomial(torch.tensor([1, 0]), torch.tensor([2.0, 3.0])).matrix()
    tensor([[0., 2.],
            [3., 0.]])
    """

    kind = "g_relu"
    permutation: Tensor
    scale: Tensor

    def __init__(self, permutation: Tensor, scale: Tensor):
        super().__init__(len(permutation), len(permutation))
        if sorted(permutation.tolist()) != list(range(len(permutation))):
            raise ValueError(f"permutation is {permutation.tolist()}; it should hold 0 to n - 1 once each.")
        if scale.shape != permutation.shape or not bool((scale > 0).all() and scale.isfinite().all()):
            raise ValueError(
                f"scale has shape {tuple(scale.shape)} and smallest value {scale.min():g}; it should hold "
                f"{len(permutation)} positive numbers."
            )
        self.register_buffer("permutation", permutation.clone())
        self.register_buffer("scale", scale.float().clone())

    def matrix(self) -> Tensor:
        matrix = torch.zeros(self.outputs, self.inputs, device=self.scale.device)
        matrix[torch.arange(self.outputs, device=self.scale.device), self.permutation] = self.scale
        return matrix


class Birkhoff(Stitch):
    """G_ReLU in a form that gradient descent can move in: a doubly stochastic matrix times non-negative scales.

    The matrix is ``transport`` (n, n) times the diagonal matrix of ``scale`` (n,), which scales the inputs. The
    training loss gets ``-alpha`` times the Frobenius norm of ``transport``, which is largest at permutations. After
    each step negative entries become 0 and 16 Sinkhorn iterations follow. ``scale`` keeps still in the first half of
    the training. :meth:`rounded` takes the nearest permutation. Appendix D.2.1.
    """

    kind = "g_relu"

    def __init__(self, transport: Tensor, scale: Tensor, alpha: float = 0.1, head_start: float = 0.5):
        _square("transport", transport)
        super().__init__(len(transport), len(transport))
        if scale.shape != (len(transport),):
            raise ValueError(f"scale has shape {tuple(scale.shape)}; it should be ({len(transport)},).")
        if not (math.isfinite(alpha) and 0 <= head_start <= 1):
            raise ValueError(
                f"alpha is {alpha} and head_start {head_start}; they should be finite, and between 0 and 1."
            )
        self.transport = nn.Parameter(sinkhorn(transport.float(), 100))
        self.scale = nn.Parameter(scale.float().clone())
        self.alpha, self.head_start = alpha, head_start

    def matrix(self) -> Tensor:
        return self.transport * self.scale

    def penalty(self) -> Tensor:
        return -self.alpha * self.transport.norm()

    def schedule(self, done: float) -> None:
        self.scale.requires_grad_(done >= self.head_start)

    @torch.no_grad()
    def project(self) -> None:
        self.transport.copy_(sinkhorn(self.transport, 16))
        self.scale.clamp_(min=0)

    def rounded(self) -> Monomial:
        permutation = hungarian(self.transport.detach())
        return Monomial(permutation, self.scale.detach()[permutation].clamp(min=SMALLEST_SCALE))


class SoftSort(Stitch):
    """G_ReLU through soft sorting: see :func:`soft_sort`; the scales of the inputs are exp(``log_scale``), D.2.2.

    ``scores`` and ``log_scale`` have shape (n,); ``temperature`` is 1/n by default.
    """

    kind = "soft_sort"

    def __init__(self, scores: Tensor, log_scale: Tensor, temperature: float | None = None):
        super().__init__(len(scores), len(scores))
        if log_scale.shape != scores.shape:
            raise ValueError(f"log_scale has shape {tuple(log_scale.shape)}; it should be {tuple(scores.shape)}.")
        self.temperature = 1 / len(scores) if temperature is None else temperature
        if not self.temperature > 0:
            raise ValueError(f"temperature is {temperature}; it should be positive.")
        self.scores, self.log_scale = nn.Parameter(scores.float().clone()), nn.Parameter(log_scale.float().clone())

    def matrix(self) -> Tensor:
        return soft_sort(self.scores, self.temperature) * self.log_scale.exp()

    def rounded(self) -> Monomial:
        permutation = self.scores.detach().argsort(descending=True, stable=True)
        return Monomial(permutation, self.log_scale.detach().exp()[permutation])


def _matrix(name: str, value: Tensor) -> None:
    if value.ndim != 2 or 0 in value.shape or not bool(value.isfinite().all()):
        raise ValueError(f"{name} has shape {tuple(value.shape)}; it should be a matrix of finite numbers.")


def _square(name: str, value: Tensor) -> None:
    _matrix(name, value)
    if value.shape[0] != value.shape[1]:
        raise ValueError(
            f"{name} has shape {tuple(value.shape)}; a permutation of channels is square, so both networks need the "
            "same number of channels there."
        )


def sinkhorn(matrix: Tensor, iterations: int) -> Tensor:
    """Towards a doubly stochastic matrix: negative entries to 0, then columns and rows divided by their sums in turn.

    ``matrix`` is (n, n). The rows of the result sum to 1, the columns the more nearly so the more iterations.

    >>> sinkhorn(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 10)
    tensor([[0.6667, 0.3333],
            [0.3333, 0.6667]])
    """
    _square("matrix", matrix)
    # An empty row or column would divide 0 by 0.
    matrix = matrix.clamp(min=torch.finfo(matrix.dtype).tiny ** 0.5)
    for _ in range(iterations):
        matrix = matrix / matrix.sum(0, keepdim=True)
        matrix = matrix / matrix.sum(1, keepdim=True)
    return matrix


def hungarian(matrix: Tensor) -> Tensor:
    """The permutation pi with the largest sum of ``matrix[i, pi[i]]``, int64 (n,), for a matrix (n, n).

    >>> hungarian(torch.tensor([[0.6, 0.4], [0.5, 0.1]]))
    tensor([1, 0])
    """
    _square("matrix", matrix)
    return torch.from_numpy(linear_sum_assignment(matrix.double().cpu().numpy(), maximize=True)[1]).to(matrix.device)


def soft_sort(scores: Tensor, temperature: float) -> Tensor:
    """SoftSort: softmax over each row i of ``-|sorted(scores)[i] - scores[j]| / temperature``, (n,) to (n, n).

    Tends to the permutation that sorts ``scores`` in descending order as the temperature falls. The paper prints it
    without the absolute value; then all rows would be the same.

    >>> soft_sort(torch.tensor([0.0, 2.0]), temperature=0.01).round()
    tensor([[0., 1.],
            [1., 0.]])
    """
    return torch.softmax(-(scores.sort(descending=True).values[:, None] - scores).abs() / temperature, dim=1)


# ---------------------------------------------------------------------------------- closed-form stitches


@dataclass(frozen=True)
class Moments:
    """Sums over images and pixels of the products of two networks' channels, float64.

    ``xx`` (inputs, inputs), ``yx`` (outputs, inputs), ``yy`` (outputs,) squares only, ``x`` (inputs,), ``y``
    (outputs,), and the number of pixels ``count``. The closed-form stitches need nothing else of the features.
    """

    count: int
    x: Tensor
    y: Tensor
    xx: Tensor
    yx: Tensor
    yy: Tensor

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Moments:
        """Of the first network's features (n, inputs, H, W) and the second's (n, outputs, H, W).

        Raises ValueError if the shapes do not fit or a value is not finite.

        >>> Moments.of(torch.ones(4, 3, 2, 2), torch.ones(4, 5, 2, 2)).yx.shape
        torch.Size([5, 3])
        """
        if x.ndim != 4 or y.ndim != 4 or x.shape[0] != y.shape[0] or x.shape[2:] != y.shape[2:]:
            raise ValueError(
                f"x has shape {tuple(x.shape)} and y {tuple(y.shape)}; they should be (n, inputs, H, W) and "
                "(n, outputs, H, W) with the same n, H and W."
            )
        rows = [value.detach().permute(1, 0, 2, 3).flatten(1).double() for value in (x, y)]
        for name, value in zip("xy", rows, strict=True):
            if not bool(value.isfinite().all()):
                raise ValueError(f"{name} holds values that are NaN or infinite; all should be finite.")
        one, other = rows
        return cls(one.shape[1], one.sum(1), other.sum(1), one @ one.T, other @ one.T, other.square().sum(1))

    def __add__(self, other: Moments) -> Moments:
        if self.yx.shape != other.yx.shape:
            raise ValueError(f"moments of {tuple(self.yx.shape)} and {tuple(other.yx.shape)} channels cannot be added.")
        return Moments(*(getattr(self, name) + getattr(other, name) for name in ("count", "x", "y", "xx", "yx", "yy")))

    def correlation(self) -> Tensor:
        """Pearson correlations of the second network's channels with the first's, (outputs, inputs).

        0 for a dead channel, one whose standard deviation is below 1e-6 of its root mean square, or 0.
        """
        n = self.count
        covariance = self.yx / n - torch.outer(self.y / n, self.x / n)
        squares = [self.xx.diagonal() / n, self.yy / n]
        variance = [square - (mean / n) ** 2 for square, mean in zip(squares, (self.x, self.y), strict=True)]
        inverse = [
            torch.where(v > 1e-12 * s, v.clamp(min=torch.finfo(v.dtype).tiny).rsqrt(), 0.0)
            for v, s in zip(variance, squares, strict=True)
        ]
        return inverse[1][:, None] * covariance * inverse[0]


def least_squares(moments: Moments, rank: int | None = None) -> Tensor:
    """The matrix M (outputs, inputs), of at most the given rank, with the smallest sum of |y - M x|^2. Float64.

    Without a bound it is ``yx xx^+``. With one it is projected on the leading eigenvectors of ``M xx M^T``, which is
    reduced-rank regression (Izenman 1975). Directions in which x hardly varies (1e-10 of the largest) are left out.

    Raises ValueError if the rank is not between 1 and the number of channels.

    >>> x = torch.randn(50, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> bool((least_squares(Moments.of(x, 2 * x)) - 2 * torch.eye(3)).abs().max() < 1e-12)
    True
    """
    matrix = moments.yx @ torch.linalg.pinv(moments.xx, rtol=1e-10, hermitian=True)
    if rank is None:
        return matrix
    if not 1 <= rank <= min(matrix.shape):
        raise ValueError(f"rank is {rank}; it should be between 1 and {min(matrix.shape)}, the number of channels.")
    vectors = torch.linalg.eigh(matrix @ moments.xx @ matrix.T).eigenvectors[:, -rank:]
    return vectors @ (vectors.T @ matrix)


def assignment(moments: Moments) -> tuple[Tensor, Tensor]:
    """The permutation of channels with the largest sum of correlations, int64, and the best positive scales, float64.

    Both of shape (channels,): output i is ``scale[i]`` times input ``permutation[i]``. A scale is that of the
    regression without intercept, at least 1e-6.

    Raises ValueError if the numbers of channels differ.
    """
    permutation = hungarian(moments.correlation())
    chosen = moments.xx.diagonal()[permutation]
    along = moments.yx.gather(1, permutation[:, None]).squeeze(1)
    alive = chosen > 0
    scale = torch.where(alive, along / torch.where(alive, chosen, 1.0), 1.0)
    return permutation, scale.clamp(min=SMALLEST_SCALE)


def stitch_layer(
    kind: str,
    start: Moments | tuple[int, int],
    *,
    seed: int = 0,
    alpha: float = 0.1,
    head_start: float = 0.5,
    strength: float = 0.01,
    temperature: float | None = None,
) -> Stitch:
    """A stitch of some kind, from the closed form or from random numbers.

    Parameters
    ----------
    kind
        ``"full"``, ``"rank r"`` for a whole number r, ``"lasso"``, ``"g_relu"`` or ``"soft_sort"``.
    start
        :class:`Moments`: the closed form (for ``"lasso"`` least squares). Or (inputs, outputs), the numbers of
        channels: random numbers, as the paper starts.
    seed
        Of the random numbers.
    alpha, head_start
        Of :class:`Birkhoff`.
    strength
        Of :class:`Lasso`.
    temperature
        Of :class:`SoftSort`.

    Raises
    ------
    ValueError
        If the kind is unknown, a rank is out of range, or a permutation is asked for between unequal numbers of
        channels.

    >>> stitch_layer("rank 2", (8, 8))
    LowRank(8 -> 8)
    >>> stitch_layer("g_relu", (8, 4))
    Traceback (most recent call last):
        ...
    ValueError: kind is 'g_relu', which is square; the networks have 8 and 4 channels at this layer.
    """
    moments = start if isinstance(start, Moments) else None
    inputs, outputs = start if not isinstance(start, Moments) else (start.yx.shape[1], start.yx.shape[0])
    generator = torch.Generator().manual_seed(seed)
    name, _, number = kind.partition(" ")
    if name in ("g_relu", "soft_sort") and inputs != outputs:
        raise ValueError(
            f"kind is {kind!r}, which is square; the networks have {inputs} and {outputs} channels at this layer."
        )
    if name == "rank" and number.isdecimal():
        rank = int(number)
        if not 1 <= rank <= min(inputs, outputs):
            raise ValueError(f"kind is {kind!r}; the rank should be between 1 and {min(inputs, outputs)}.")
        if moments is None:
            right = torch.randn(rank, inputs, generator=generator) / inputs**0.5
            return LowRank(torch.randn(outputs, rank, generator=generator) / rank**0.5, right)
        u, s, v = torch.linalg.svd(least_squares(moments, rank))
        root = s[:rank].sqrt()
        return LowRank(u[:, :rank] * root, root[:, None] * v[:rank])
    if kind in ("full", "lasso"):
        weight = torch.randn(outputs, inputs, generator=generator) / inputs**0.5
        if moments is not None:
            weight = least_squares(moments)
        return Full(weight) if kind == "full" else Lasso(weight, strength)
    if kind == "g_relu":
        transport = torch.rand(outputs, inputs, generator=generator)
        scale = torch.ones(inputs)
        if moments is not None:
            permutation, scales = assignment(moments)
            transport = torch.eye(inputs)[permutation]
            scale = torch.ones(inputs).index_copy(0, permutation, scales.float())
        return Birkhoff(transport, scale, alpha, head_start)
    if kind == "soft_sort":
        scores, log_scale = torch.randn(inputs, generator=generator), torch.zeros(inputs)
        step = 3 * (1 / inputs if temperature is None else temperature)
        if moments is not None:
            permutation, scales = assignment(moments)
            scores = torch.empty(inputs).index_copy(0, permutation, -step * torch.arange(inputs))
            log_scale = torch.zeros(inputs).index_copy(0, permutation, scales.log().float())
        return SoftSort(scores, log_scale, temperature)
    raise ValueError(f"kind is {kind!r}; it should be one of {', '.join(map(repr, KINDS))}, or 'rank' and a number.")


# ----------------------------------------------------------------------------------- stitched networks


class Stitched(nn.Module):
    """The first network up to an activation, a stitch, then the second network: S(A, B, l, phi) of section 4.

    Parameters
    ----------
    bottom, top
        Trained networks of :mod:`affscore.networks`. They are copied and frozen: evaluation mode, whatever
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
        If a network has no such layer, the sides of the images differ there, the stitch does not fit, or a
        ``skip_stitch`` is given where there is no shortcut.

    >>> from affscore.networks import myrtle
    >>> one, other = myrtle(width=4, channels=1), myrtle(width=4, channels=1)
    >>> Stitched(one, other, "relu1", Full(torch.eye(4)))(torch.zeros(2, 1, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        bottom: nn.Module,
        top: nn.Module,
        layer: str,
        stitch: Stitch | None = None,
        skip_stitch: Stitch | None = None,
    ):
        super().__init__()
        self.layer = layer
        self.bottom, lost = split(bottom, layer)
        kept, self.top = split(top, layer)
        shapes = []
        for part in (self.bottom, kept):
            first = next(module for module in part.modules() if isinstance(module, nn.Conv2d))
            weight = first.weight
            with torch.no_grad():
                probe = torch.zeros(1, first.in_channels, 32, 32, dtype=weight.dtype, device=weight.device)
                shapes.append(tuple(part(probe).value.shape[1:]))
        if shapes[0][1:] != shapes[1][1:]:
            raise ValueError(
                f"at layer {layer} the networks have images of {shapes[0][1:]} and {shapes[1][1:]} pixels."
            )
        channels = shapes[0][0], shapes[1][0]
        for name, map_ in (("stitch", stitch), ("skip_stitch", skip_stitch)):
            fits = channels if map_ is None else (map_.inputs, map_.outputs)
            if fits != channels or (name == "stitch" and map_ is None and channels[0] != channels[1]):
                raise ValueError(
                    f"{name} takes {fits[0]} channels to {fits[1]}; at layer {layer} the networks have {channels[0]} "
                    f"and {channels[1]}."
                )
        blocks = [part.block for part in (lost, self.top)]
        residual = [block is not None and block.residual for block in blocks]
        if residual[0] != residual[1]:
            raise ValueError(f"layer {layer} lies inside a block with a shortcut in one network and not in the other.")
        if skip_stitch is not None and not residual[0]:
            raise ValueError(f"skip_stitch is given, but no shortcut runs past layer {layer}.")
        self.stitch, self.skip_stitch = stitch, skip_stitch

    def train(self, mode: bool = True) -> Stitched:
        """Only the stitch can be in training mode."""
        super().train(mode)
        self.bottom.eval()
        self.top.eval()
        return self

    @torch.no_grad()
    def states(self, images: Tensor, batch_size: int = 500) -> State:
        """What arrives at the stitch, for standardised images (n, channels, 32, 32).

        Computed once and handed to :func:`learn` and :func:`accuracy_of`, it saves their running the first network
        again and again. It takes 4 n C H W bytes, twice that inside residual blocks.
        """
        parts = [self.bottom(some) for some in images.split(batch_size)]
        skip = None if parts[0].skip is None else torch.cat([part.skip for part in parts])
        return State(torch.cat([part.value for part in parts]), skip)

    def after(self, state: State) -> Tensor:
        """From a :class:`State` to logits (n, classes): the stitch and the second network."""
        value = state.value if self.stitch is None else self.stitch(state.value)
        skip = state.skip if self.skip_stitch is None or state.skip is None else self.skip_stitch(state.skip)
        return self.top(State(value, skip))

    def forward(self, images: Tensor) -> Tensor:
        return self.after(self.bottom(images))

    def rounded(self) -> Stitched:
        """A copy with the final form of the stitch: for G_ReLU a permutation with scales."""
        result = copy.deepcopy(self)
        result.stitch = None if self.stitch is None else self.stitch.rounded()
        return result


@torch.no_grad()
def layer_moments(
    bottom: nn.Module,
    top: nn.Module,
    images: Tensor,
    layers: Iterable[str] | None = None,
    *,
    skips: bool = False,
    batch_size: int = 250,
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
        If a network has no such layer, or shapes differ.
    """
    names = activation_layers(bottom) if layers is None else list(layers)
    found: list[dict[str, Tensor]] = [{}, {}]
    handles, training = [], []
    networks = (bottom, top)
    for network, store in zip(networks, found, strict=True):
        modules, known = dict(network.named_modules()), activation_layers(network)
        for name in names:
            if name not in known:
                raise ValueError(f"layers has {name!r}; the activations of this network are {', '.join(known)}.")
            handles.append(modules[name].register_forward_hook(_keep(store, name)))
            block = modules[name.rpartition(".")[0]]
            if skips and inside_block(name) and isinstance(block, BasicBlock) and block.residual:
                handles.append(block.register_forward_pre_hook(_keep_shortcut(store, f"{name[:-6]}.shortcut")))
        training.append([module for module in network.modules() if module.training])
    result: dict[str, Moments] = {}
    try:
        for network in networks:
            network.eval()
        for some in images.split(batch_size):
            for network in networks:
                network(some)
            for name, x in found[0].items():
                part = Moments.of(x, found[1][name])
                result[name] = result[name] + part if name in result else part
    finally:
        for handle in handles:
            handle.remove()
        for modules_in_training in training:
            for module in modules_in_training:
                module.training = True
    return result


def _keep(store: dict[str, Tensor], name: str) -> Any:
    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        store[name] = output

    return hook


def _keep_shortcut(store: dict[str, Tensor], name: str) -> Any:
    def hook(module: BasicBlock, inputs: tuple[Tensor]) -> None:
        store[name] = module.shortcut(inputs[0])

    return hook


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
            some = State(states.value[index], None if states.skip is None else states.skip[index])
            loss = functional.cross_entropy(stitched.after(some), labels[index])
            optimizer.zero_grad()
            (loss + stitch.penalty()).backward()
            optimizer.step()
            stitch.project()
            total += loss.item() * len(index)
        if not math.isfinite(total):
            raise ValueError(f"the loss of epoch {epoch + 1} is not finite; try a smaller learning_rate.")
        history.append(total / n)
    return history


@torch.no_grad()
def reestimate(stitched: Stitched, states: State, batch_size: int = 100) -> Stitched:
    """A copy whose second part has its batch-norm statistics measured anew: one pass over training images.

    The statistics become the plain mean over batches. Where the second part has no batch norm, the copy is the same.
    The paper does so after rounding a stitch to a permutation (appendix D.2.1).
    """
    result = copy.deepcopy(stitched)
    norms = [module for module in result.top.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative mean instead of an exponential one
        norm.train()
    if norms:
        for start in range(0, len(states.value), batch_size):
            part = slice(start, start + batch_size)
            result.after(State(states.value[part], None if states.skip is None else states.skip[part]))
    result.top.eval()
    return result


@torch.no_grad()
def accuracy_of(stitched: Stitched, states: State, labels: Tensor, batch_size: int = 250) -> float:
    """Share of the images, given as :meth:`Stitched.states`, whose largest output is at their label; 0 to 1."""
    if len(states.value) != len(labels) or not len(labels):
        raise ValueError(f"states holds {len(states.value)} images and labels {len(labels)}; they should be the same.")
    stitched.eval()
    right = 0
    for start in range(0, len(labels), batch_size):
        part = slice(start, start + batch_size)
        some = State(states.value[part], None if states.skip is None else states.skip[part])
        right += int((stitched.after(some).argmax(1) == labels[part]).sum())
    return right / len(labels)


# -------------------------------------------------------------------------------------------- results


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


class Interval(NamedTuple):
    """A mean with the ends of its confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} [{self.low:.1f}, {self.high:.1f}]"


def interval(values: Any, *, level: float = 0.95, draws: int = 2000, seed: int = 0) -> Interval:
    """Mean over pairs of networks, with a bootstrap interval that draws *networks*.

    Pairs that share a network are not independent: twelve ordered pairs of four networks hold less than twelve
    independent results. So each draw takes networks with replacement, and weighs each pair by how often both were
    drawn. With few networks such an interval is still too narrow; with two it has no width, because there is only one
    way to draw both.

    Parameters
    ----------
    values
        (networks, networks); entry [i, j] for bottom i and top j. NaN where there is none, as on the diagonal.
    level, draws, seed
        Of the bootstrap.

    Raises
    ------
    ValueError
        If the shape is not square or no pair has a value.

    >>> interval([[float("nan"), 1.0], [3.0, float("nan")]])
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"values has shape {table.shape}; it should be (networks, networks).")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it should be between 0 and 1.")
    known = np.isfinite(table) & ~np.eye(len(table), dtype=bool)
    if not known.any():
        raise ValueError("values has no finite entry off its diagonal; at least one pair of networks is needed.")
    filled = np.where(known, table, 0.0)
    counts = np.random.default_rng(seed).multinomial(len(table), np.full(len(table), 1 / len(table)), size=draws)
    weights = np.einsum("di,dj,ij->d", counts, counts, known)
    usable = weights > 0
    means = np.einsum("di,dj,ij->d", counts, counts, filled)[usable] / weights[usable]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(table[known].mean()), float(low), float(high))


@dataclass(frozen=True, eq=False)
class Study:
    """The stored results of ``book/data/stitching.py``.

    Attributes
    ----------
    settings, made_with
        Of the run.
    accuracies
        Of each network, on the same test images as its stitches.
    records
        One mapping for each stitched network: ``task``, ``bottom``, ``top``, ``layer``, ``stitch``, ``fit``, and the
        accuracies ``kept`` and ``reestimated`` with either batch-norm statistics; some have more.
    scores
        Name of a network to {activation: affinity score, mean over batches}.
    """

    settings: dict[str, Any]
    made_with: dict[str, Any]
    accuracies: dict[str, float]
    records: list[dict[str, Any]]
    scores: dict[str, dict[str, float]]

    def __repr__(self) -> str:
        pairs = {(record["bottom"], record["top"]) for record in self.records}
        images = self.settings["images"]["test"]
        return (
            f"Study: {len(self.records)} stitched networks of {len(pairs)} pairs, {self.settings['dataset']}, "
            f"{images} test images"
        )

    def layers(self, kind: str) -> list[str]:
        """The activations of a kind of network (``"myrtle"``, ``"resnet20"``, ...) that have records, in order."""
        found = (record["layer"] for record in self.records if _kind(record["bottom"]) == kind)
        return list(dict.fromkeys(found))

    def table(
        self, kind: str, layer: str, stitch: str, fit: str = "closed form", *, norm: str = "reestimated", **more: Any
    ) -> np.ndarray:
        """Penalties in accuracy points, (networks, networks) with bottoms as rows; NaN for pairs without a record.

        ``norm`` is ``"kept"`` or ``"reestimated"``, ``more`` further conditions, such as ``alpha=0.1``.

        Raises ValueError if there is no such record.
        """
        if norm not in ("kept", "reestimated"):
            raise ValueError(f"norm is {norm!r}; it should be 'kept' or 'reestimated'.")
        wanted = {"layer": layer, "stitch": stitch, "fit": fit} | more
        values = {}
        for record in self.records:
            one, other = record["bottom"], record["top"]
            if _kind(one) != kind or _kind(other) != kind or any(record.get(k) != v for k, v in wanted.items()):
                continue
            if not more and ("alpha" in record or "strength" in record):
                continue
            value = penalty(self.accuracies[one], self.accuracies[other], record[norm])
            values[_seed(one), _seed(other)] = value
        if not values:
            raise ValueError(f"there is no record of {kind} networks with {wanted}.")
        size = 1 + max(max(pair) for pair in values)
        table = np.full((size, size), np.nan)
        for pair, value in values.items():
            table[pair] = value
        return table

    def penalty(self, kind: str, layer: str, stitch: str, fit: str = "closed form", **more: Any) -> Interval:
        """Mean and interval of :meth:`table`."""
        return interval(self.table(kind, layer, stitch, fit, **more))

    def planted(self, layer: str, fit: str) -> Interval:
        """Penalty between networks and themselves acted on by known elements of G_ReLU: mean, lowest and highest."""
        values = [
            penalty(*[self.accuracies[record["bottom"]]] * 2, record["reestimated"])
            for record in self.records
            if record["task"] == "planted" and record["layer"] == layer and record["fit"] == fit
        ]
        if not values:
            raise ValueError(f"there is no planted record with layer {layer!r} and fit {fit!r}.")
        return Interval(float(np.mean(values)), min(values), max(values))

    def layer_scores(self, kind: str) -> np.ndarray:
        """Affinity scores, (networks, activations) in order of execution, of all networks of a kind."""
        found = [list(values.values()) for name, values in self.scores.items() if _kind(name) == kind]
        if not found:
            raise ValueError(f"there are no scores of {kind} networks.")
        return np.array(found, dtype=np.float64)


def _kind(name: str) -> str:
    """``"myrtle"`` of ``"myrtle_0"``."""
    return name.rpartition("_")[0]


def _seed(name: str) -> int:
    return int(name.rpartition("_")[2])


def load_study(path: str | os.PathLike[str]) -> Study:
    """Read the file that ``book/data/stitching.py`` wrote.

    Raises
    ------
    ValueError
        If the file is cut off or not one of that script.
    """
    text = Path(path).read_text(encoding="utf-8")
    try:
        content = json.loads(text)
        accuracies = {name: about["accuracy"] for name, about in content["networks"].items()}
        records, scores = [], {}
        for task, found in content["tasks"].items():
            for record in found:
                if "scores" in record:
                    values = [math.nan if value is None else value for value in record["scores"]]
                    scores.setdefault(record["network"], {})[record["layer"]] = float(np.mean(values))
                else:
                    records.append({"task": task.partition(":")[0]} | record)
        return Study(content["settings"], content["made_with"], accuracies, records, scores)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a complete file of book/data/stitching.py ({error!r}).") from error
