"""Stitches: small maps on the channels of feature maps, as modules that can be learned.

*   :class:`Stitch` has the kinds :class:`Full`, :class:`LowRank` and :class:`Lasso`, and the symmetries of ReLU, which
    are permutations with positive scales: :class:`MonomialStitch` is a fixed one, and :class:`Birkhoff` and
    :class:`SoftSort` have a form that can be learned.
*   :func:`stitch_layer` makes a stitch from the closed forms of :mod:`affscore_book.stitching.moments` or from random
    numbers.

:mod:`affscore_study.stitching.stitched` puts stitches between two networks.

Reference: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, section 4 and appendices D.2 and D.6.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore_book.kit.checking import square_matrix
from affscore_book.stitching.moments import SMALLEST_SCALE, Moments, assignment, hungarian, least_squares

__all__ = [
    "STITCHES",
    "Birkhoff",
    "Full",
    "Lasso",
    "LowRank",
    "MonomialStitch",
    "SoftSort",
    "Stitch",
    "sinkhorn",
    "soft_sort",
    "stitch_layer",
]

#: The stitches of :func:`stitch_layer`, which accepts any other rank as well.
STITCHES = ("full", "rank 1", "rank 2", "rank 4", "lasso", "g_relu", "soft_sort")


class Stitch(nn.Module):
    """A linear map on channels, from (n, inputs, H, W) to (n, outputs, H, W), the same at every pixel and without bias.

    It is the base class of all stitches. Each kind defines :meth:`matrix`. Some also have a term for the training loss
    (:meth:`penalty`), a step after each update (:meth:`project`) and a final form (:meth:`rounded`).
    """

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs

    def matrix(self) -> Tensor:
        """The map as a matrix of shape (outputs, inputs)."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """The scalar that :func:`learn` adds to the loss."""
        return torch.zeros(())

    def schedule(self, done: float) -> None:
        """Adapt the stitch before each step to the finished part of the training, from 0 to 1."""

    def project(self, step: float) -> None:
        """Return to the set of allowed maps after a step of size ``step``."""

    def rounded(self) -> Stitch:
        """The stitch to evaluate, an element of the allowed set."""
        return self

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.inputs:
            raise ValueError(f"x has shape {tuple(x.shape)}; it should be (n, {self.inputs}, H, W).")
        return functional.conv2d(x, self.matrix()[:, :, None, None].to(x.dtype))

    def sparsity(self) -> float:
        """The share of the matrix's entries with absolute value at most 0.001 (equation D.1)."""
        return float((self.matrix().detach().abs() <= 1e-3).double().mean())

    def __repr__(self) -> str:
        return f"{type(self).__name__.removesuffix('Stitch')}({self.inputs} -> {self.outputs})"


class Full(Stitch):
    """A stitch with any matrix. ``weight`` has shape (outputs, inputs); its precision is kept.

    >>> Full(torch.eye(3)[:2])(torch.ones(1, 3, 5, 5)).shape
    torch.Size([1, 2, 5, 5])
    """

    def __init__(self, weight: Tensor):
        if weight.ndim != 2 or 0 in weight.shape or not bool(weight.isfinite().all()):
            raise ValueError(f"weight has shape {tuple(weight.shape)}; it should be a matrix of finite numbers.")
        super().__init__(weight.shape[1], weight.shape[0])
        self.weight = nn.Parameter(weight.clone())

    def matrix(self) -> Tensor:
        return self.weight


class Lasso(Full):
    """A stitch with any matrix and a penalty of ``strength`` times the sum of its absolute entries (D.6).

    The paper adds the penalty to the loss, so that its gradient makes small entries jump about zero. Here each step is
    followed by soft thresholding, the proximal step of the same penalty, which makes them exactly zero.
    """

    def __init__(self, weight: Tensor, strength: float = 0.01):
        super().__init__(weight)
        self.strength = strength

    @torch.no_grad()
    def project(self, step: float) -> None:
        self.weight.copy_(functional.softshrink(self.weight, self.strength * step))


class LowRank(Stitch):
    """A stitch with the product of two matrices, ``left`` (outputs, rank) and ``right`` (rank, inputs)."""

    def __init__(self, left: Tensor, right: Tensor):
        super().__init__(right.shape[1], left.shape[0])
        self.left, self.right = nn.Parameter(left.float().clone()), nn.Parameter(right.float().clone())

    def matrix(self) -> Tensor:
        return self.left @ self.right


class MonomialStitch(Stitch):
    """A stitch with an element P D of G_ReLU, a permutation times positive scales, of which nothing is learned.

    ``permutation`` and the positive ``scale`` have shape (channels,). Output channel i is ``scale[i]`` times input
    channel ``permutation[i]``.

    >>> MonomialStitch(torch.tensor([1, 0]), torch.tensor([2.0, 3.0])).matrix()
    tensor([[0., 2.],
            [3., 0.]])
    """

    permutation: Tensor
    scale: Tensor

    def __init__(self, permutation: Tensor, scale: Tensor):
        super().__init__(len(permutation), len(permutation))
        self.register_buffer("permutation", permutation.clone())
        self.register_buffer("scale", scale.float().clone())

    def matrix(self) -> Tensor:
        return torch.diag(self.scale)[:, self.permutation.argsort()]


class Birkhoff(Stitch):
    """A relaxation of G_ReLU for gradient descent: a doubly stochastic matrix times non-negative scales (D.2.1).

    The matrix is ``transport`` (n, n) times the diagonal matrix of ``scale`` (n,), which scales the inputs. The
    penalty is ``-alpha`` times the Frobenius norm of ``transport``, which is largest at permutations. After each step,
    negative entries become 0 and 16 Sinkhorn iterations follow. ``scale`` is fixed in the part ``head_start`` of the
    training, by default the first half. :meth:`rounded` returns the nearest permutation.
    """

    def __init__(self, transport: Tensor, scale: Tensor, alpha: float = 0.1, head_start: float = 0.5):
        square_matrix("transport", transport)
        super().__init__(len(transport), len(transport))
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
    def project(self, step: float) -> None:
        self.transport.copy_(sinkhorn(self.transport, 16))
        self.scale.clamp_(min=0)

    def rounded(self) -> MonomialStitch:
        permutation = hungarian(self.transport.detach())
        return MonomialStitch(permutation, self.scale.detach()[permutation].clamp(min=SMALLEST_SCALE))


class SoftSort(Stitch):
    """A relaxation of G_ReLU by soft sorting (:func:`soft_sort`), with the scales exp(``log_scale``) of inputs (D.2.2).

    ``scores`` and ``log_scale`` have shape (n,); ``temperature`` is in units of 1/n.
    """

    def __init__(self, scores: Tensor, log_scale: Tensor, temperature: float = 1.0):
        super().__init__(len(scores), len(scores))
        self.temperature = temperature / len(scores)
        self.scores, self.log_scale = nn.Parameter(scores.float().clone()), nn.Parameter(log_scale.float().clone())

    def matrix(self) -> Tensor:
        return soft_sort(self.scores, self.temperature) * self.log_scale.exp()

    def rounded(self) -> MonomialStitch:
        permutation = self.scores.detach().argsort(descending=True, stable=True)
        return MonomialStitch(permutation, self.log_scale.detach().exp()[permutation])


def sinkhorn(matrix: Tensor, iterations: int) -> Tensor:
    """A nearly doubly stochastic matrix: negative entries become 0, then columns and rows are divided by their sums.

    ``matrix`` has shape (n, n). The rows of the result sum to 1, and the sums of the columns approach 1 with more
    ``iterations``.

    >>> sinkhorn(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 10)
    tensor([[0.6667, 0.3333],
            [0.3333, 0.6667]])
    """
    # An empty row or column would divide 0 by 0.
    matrix = matrix.clamp(min=torch.finfo(matrix.dtype).tiny ** 0.5)
    for _ in range(iterations):
        matrix = matrix / matrix.sum(0, keepdim=True)
        matrix = matrix / matrix.sum(1, keepdim=True)
    return matrix


def soft_sort(scores: Tensor, temperature: float) -> Tensor:
    """SoftSort: the softmax over each row i of ``-|sorted(scores)[i] - scores[j]| / temperature``, from (n,) to (n, n).

    As the temperature falls, it tends to the permutation that sorts ``scores`` in descending order. The paper prints it
    without the absolute value, but then all rows would be the same.

    >>> soft_sort(torch.tensor([0.0, 2.0]), temperature=0.01).round()
    tensor([[0., 1.],
            [1., 0.]])
    """
    return torch.softmax(-(scores.sort(descending=True).values[:, None] - scores).abs() / temperature, dim=1)


def stitch_layer(
    kind: str,
    start: Moments | tuple[int, int],
    *,
    alpha: float = 0.1,
    head_start: float = 0.5,
    strength: float = 0.01,
    temperature: float = 1.0,
) -> Stitch:
    """A stitch of some kind, from the closed form or from random numbers.

    Parameters
    ----------
    kind
        ``"full"``, ``"rank r"`` for a whole number r, ``"lasso"``, ``"g_relu"`` or ``"soft_sort"``.
    start
        :class:`Moments` give the closed form (for ``"lasso"``, least squares). The numbers of channels, (inputs,
        outputs), give random numbers, with which the paper starts; ``"soft_sort"`` always starts with random numbers.
    alpha, head_start, strength, temperature
        The parameters of :class:`Birkhoff`, :class:`Lasso` and :class:`SoftSort`.

    Raises
    ------
    ValueError
        If the kind is unknown, a rank is out of range, or the numbers of channels differ for a permutation.

    >>> stitch_layer("rank 2", (8, 8))
    LowRank(8 -> 8)
    >>> stitch_layer("g_relu", (8, 4))
    Traceback (most recent call last):
        ...
    ValueError: kind is 'g_relu', which is square; the networks have 8 and 4 channels at this layer.
    """
    moments, (outputs, inputs) = (start, start.yx.shape) if isinstance(start, Moments) else (None, start[::-1])
    generator = torch.Generator().manual_seed(0)
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
        if moments is None:
            weight = torch.randn(outputs, inputs, generator=generator) / inputs**0.5
        else:
            weight = least_squares(moments).float()
        return Full(weight) if kind == "full" else Lasso(weight, strength)
    if kind == "g_relu":
        transport, scale = torch.rand(outputs, inputs, generator=generator), torch.ones(inputs)
        if moments is not None:
            permutation, scales = assignment(moments)
            transport, scale[permutation] = torch.eye(inputs)[permutation], scales.float()
        return Birkhoff(transport, scale, alpha, head_start)
    if kind == "soft_sort":
        return SoftSort(torch.randn(inputs, generator=generator), torch.zeros(inputs), temperature)
    raise ValueError(f"kind is {kind!r}; it should be one of {', '.join(map(repr, STITCHES))}, or 'rank' and a number.")
