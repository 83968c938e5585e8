"""How similar are two representations of the same samples, up to the symmetries of ReLU or up to rotations?

Two networks see the same n samples and give features ``X`` and ``Y``. Four measures compare them; each is 1 where the
two are related by its group, and does not change when either is moved by it:

================  ==================================================  =========================================
measure           invariant to                                        call
================  ==================================================  =========================================
Procrustes        orthogonal maps, one common scale, translations     ``procrustes(x, y, "orthogonal")``
G_ReLU-Procrustes permutations, positive scales a channel, shifts     ``procrustes(x, y, "relu")``
linear CKA        orthogonal maps, one common scale, translations     ``cka(x, y, "linear")``
G_ReLU-CKA        permutations, positive scales a channel, shifts     ``cka(x, y, "max")`` and ``"laplace"``
================  ==================================================  =========================================

A similarity alone says little, because independent features can score high: every result comes with the values for the
rows of ``y`` in random order (``null``). Channels that do not vary have no direction; they are reported, not compared.

**Feature maps** of shape (n, C, H, W) follow the paper's appendix D.7, where the groups act on channels only.
Procrustes takes every pixel as a sample, ``as_samples(x)`` of shape (n H W, C). CKA compares images: the kernel of two
images sums the products of their pixels before anything is done with the channels.

Sources: Godfrey, Brown, Emerson, Kvinge, "On the symmetries of deep learning models and their internal
representations", NeurIPS 2022, section 5 and appendix D.7; Kornblith et al., "Similarity of neural network
representations revisited", ICML 2019 (CKA); Song et al., "Feature selection via dependence maximization", JMLR 2012
(unbiased HSIC); Williams et al., "Generalized shape metrics on neural representations", NeurIPS 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

__all__ = [
    "GROUPS",
    "KERNELS",
    "Moments",
    "Similarity",
    "as_samples",
    "cka",
    "cka_map",
    "gram",
    "hsic",
    "layer_outputs",
    "procrustes",
    "unit_channels",
]

GROUPS = ("relu", "orthogonal")
KERNELS = ("linear", "max", "laplace")

# Entries of a tile of a Gram matrix that is worked on at a time: half a MB, so that it stays in the cache.
_TILE = 2**16
# Rows of a linear Gram matrix that are worked on at a time.
_ROWS = 256
# The median distance, the scale of the Laplace kernel, is that between this many samples, the first ones.
_SAMPLES_FOR_SCALE = 2000


# ----------------------------------------------------------------------------------------------- input


def _features(value: Any, name: str, least: int = 2) -> Tensor:
    """``value`` as a tensor of shape (n, d) or (n, C, H, W), or an error that says what it should have been."""
    try:
        tensor = value.detach() if isinstance(value, Tensor) else torch.from_numpy(np.array(value, order="C"))
    except TypeError as error:
        raise TypeError(f"{name} should be an array or tensor of real numbers, but it is {value!r:.80}.") from error
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{name} has dtype {tensor.dtype}; it should hold real numbers.")
    if tensor.ndim not in (2, 4) or 0 in tensor.shape[1:]:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}; it should be (n, channels) or (n, channels, height, width), "
            "each at least 1."
        )
    if tensor.shape[0] < least:
        raise ValueError(f"{name} has n = {tensor.shape[0]} samples; this measure needs n >= {least}.")
    if not all(bool(torch.isfinite(end)) for end in tensor.aminmax()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise ValueError(f"{name} holds {bad} values that are NaN or infinite; all should be finite.")
    return tensor


def _pair(x: Any, y: Any, least: int = 2, *, space: bool = False) -> tuple[Tensor, Tensor]:
    x, y = _features(x, "x", least), _features(y, "y", least)
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} samples and y has {len(y)}; row i of both should belong to the same sample.")
    if space and x.shape[2:] != y.shape[2:]:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and y has shape {tuple(y.shape)}; Procrustes compares pixel by pixel, so "
            "height and width should be the same."
        )
    return x, y.to(x.device)


def _one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; it should be one of {', '.join(map(repr, allowed))}.")


def _draws(null: int) -> None:
    if not isinstance(null, (int, np.integer)) or isinstance(null, bool) or null < 0:
        raise ValueError(f"null is {null!r}; it should be the number of permutations to draw, 0 or more.")


def as_samples(x: Any) -> Tensor:
    """Every pixel of every feature map as a sample of its own.

    (n, C, H, W) to (n H W, C), pixels of an image after each other; (n, d) stays as it is.

    >>> as_samples(torch.zeros(5, 16, 8, 8)).shape
    torch.Size([320, 16])
    """
    x = _features(x, "x", 1)
    return x if x.ndim == 2 else x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


# -------------------------------------------------------------------------------------------- channels


def _others(x: Tensor) -> list[int]:
    """All axes but that of the channels."""
    return [axis for axis in range(x.ndim) if axis != 1]


def _largest(x: Tensor) -> Tensor:
    """The largest magnitude in each channel, (C,), without a copy of the features."""
    return torch.maximum(x.amax(_others(x)), -x.amin(_others(x)))


def _scaled(x: Tensor) -> Tensor:
    """A float64 copy, its channels divided by their largest magnitude where squares could overflow or vanish."""
    wide = x.to(torch.float64, copy=True)
    largest = _largest(wide).reshape(-1, *[1] * (x.ndim - 2))
    extreme = (largest > 1e100) | ((largest < 1e-100) & (largest > 0))
    return wide.div_(torch.where(extreme, largest, 1.0)) if bool(extreme.any()) else wide


def _centre(wide: Tensor, x: Tensor) -> Tensor:
    """Remove the means of the channels (over samples and pixels) in place; which channels vary, bool (C,).

    A channel that varies by no more than rounding in the precision of its input ``x`` counts as constant.
    """
    rounding = 4 * min(torch.finfo(x.dtype).eps, 1.2e-7) if x.is_floating_point() else 1e-15
    others = _others(x)
    largest = _largest(wide)
    for _ in range(2):  # the second pass removes what rounding leaves of a large mean
        wide.sub_(wide.mean(others, keepdim=True))
    return _largest(wide) > rounding * largest


def _unit(x: Tensor, name: str, centred: bool) -> tuple[Tensor, Tensor]:
    """The live channels with norm 1, float64, and which channels those are, bool (C,)."""
    wide, others = _scaled(x), _others(x)
    alive = _centre(wide, x) if centred else _largest(wide) > 0
    if not bool(alive.any()):
        what = "vary" if centred else "differ from 0"
        raise ValueError(f"{name} has no channels that {what}; there is nothing to compare.")
    if not bool(alive.all()):
        wide = wide[:, alive]
    return wide.div_(torch.linalg.vector_norm(wide, dim=others, keepdim=True)), alive


def _unit_norm(x: Tensor, name: str, centred: bool) -> tuple[Tensor, Tensor]:
    """All channels, their Frobenius norm together 1, float64, and which of them vary."""
    wide = x.to(torch.float64, copy=True)
    largest = float(_largest(wide).max())
    wide.div_(largest if largest > 0 else 1.0)
    alive = _centre(wide, x) if centred else _largest(wide) > 0
    if not bool(alive.any()):
        raise ValueError(f"{name} has no channels that vary; there is nothing to compare.")
    # Channels below rounding stay in: a rotation may have spread a small one over them all.
    wide.div_(_largest(wide).max())
    return wide.div_(torch.linalg.vector_norm(wide)), alive


def unit_channels(x: Any, *, centred: bool = True) -> Tensor:
    """Channels with mean 0 (if ``centred``) and norm 1 over samples and pixels; channels that do not vary become 0.

    This removes positive scales and, if centred, translations of channels (the tilde of the paper's section 5).

    Returns float64, the shape of ``x``. Raises ValueError for wrong shapes, values that are not finite, or if no
    channel varies.

    >>> unit_channels([[3.0, 1.0], [-3.0, 1.0]])
    tensor([[ 0.7071,  0.0000],
            [-0.7071,  0.0000]], dtype=torch.float64)
    """
    x = _features(x, "x")
    values, alive = _unit(x, "x", centred)
    result = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    result[:, alive] = values
    return result


# --------------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class Similarity:
    """A similarity beside what it is for the same features with the samples of ``y`` in random order.

    Attributes
    ----------
    value
        The similarity, at most 1.
    null
        The values under random orders, float64, shape (draws,). Rows that do not belong together should not be
        similar: what is left is what the measure gives for nothing.
    dead_x, dead_y
        Channels that do not vary (or, uncentred, are 0). They were left out.
    n, channels_x, channels_y
        Samples, and channels before any was left out.
    distance
        For Procrustes, the distance that the value comes from; None otherwise.

    ``float()`` gives the value.
    """

    value: float
    null: np.ndarray = field(repr=False)
    dead_x: tuple[int, ...]
    dead_y: tuple[int, ...]
    n: int
    channels_x: int
    channels_y: int
    distance: float | None = None

    def __float__(self) -> float:
        return self.value

    @property
    def null_mean(self) -> float:
        """Mean of the null values, NaN if none were drawn."""
        return float(self.null.mean()) if len(self.null) else math.nan

    @property
    def p_value(self) -> float:
        """Share of the orders, the given one included, with a value at least as high: (1 + hits) / (1 + draws)."""
        return (1 + int((self.null >= self.value).sum())) / (1 + len(self.null))

    def __repr__(self) -> str:
        drawn = f", null {self.null_mean:.3f}" if len(self.null) else ""
        dead = [
            f", {len(gone)} of {count} channels of {name} dead"
            for name, gone, count in (("x", self.dead_x, self.channels_x), ("y", self.dead_y, self.channels_y))
            if gone
        ]
        return f"Similarity({self.value:.3f}{drawn}{''.join(dead)})"


def _gone(alive: Tensor) -> tuple[int, ...]:
    return tuple((~alive).nonzero()[:, 0].tolist())


def _orders(n: int, draws: int, seed: int) -> Iterator[Tensor]:
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        yield torch.from_numpy(generator.permutation(n))


# ------------------------------------------------------------------------------------------ Procrustes


def _nuclear(cross: Tensor) -> tuple[float, Tensor]:
    """max tr(cross Q^T) over maps Q with orthonormal rows or columns, and that Q, of the shape of cross."""
    u, sigma, v = torch.linalg.svd(cross, full_matrices=False)
    return float(sigma.sum()), u @ v


def _matching(cross: Tensor) -> tuple[float, Tensor]:
    """max tr(cross P^T) over partial permutations P of the shape of cross, and that P."""
    rows, columns = linear_sum_assignment(cross.cpu().numpy(), maximize=True)
    p = torch.zeros_like(cross)
    p[rows, columns] = 1.0
    return float(cross[rows, columns].sum()), p


def _residual(x: Tensor, y: Tensor, q: Tensor) -> float:
    """|X - Y Q^T|^2 + |Y|^2 - |Y Q^T|^2: what is left, with what Q does not reach. Exact near 0, unlike |X|^2 - ..."""
    image = y @ q.T
    unreached = y - image @ q if q.shape[0] < q.shape[1] else y.new_zeros(())
    return _size(x - image) + _size(unreached)


def procrustes(
    x: Any, y: Any, group: str = "relu", *, centred: bool = True, null: int = 10, seed: int = 0
) -> Similarity:
    """Procrustes similarity: 1 minus half the distance that is left after the best map of the group.

    With ``group="relu"`` (definition 5.2 of the paper), channels get norm 1 and are then matched one to one:
    ``delta^2 = min_P |X~ - Y~ P|^2`` over permutations P, similarity ``1 - delta / (2 sqrt d)``. With
    ``"orthogonal"``, both matrices get Frobenius norm 1, and ``delta = min_Q |X - Y Q|`` over orthogonal Q, similarity
    ``1 - delta / 2``. In both cases the distance stored in the result is that of matrices of norm 1, so the
    similarity is ``1 - distance / 2``.

    Parameters
    ----------
    x, y
        Arrays or tensors of shape (n, d) or (n, C, H, W), n >= 2, real, finite; sample i is the same in both. The
        numbers of channels may differ: channels without partner then count with their whole norm.
    group
        ``"relu"`` or ``"orthogonal"``.
    centred
        Subtract the mean of every channel, which makes the measure invariant to translations. The paper's code does
        not; with ``False`` this is its measure.
    null
        How many random orders of the samples of ``y`` to compare with.
    seed
        Of those orders.

    Returns
    -------
    Similarity
        In [0, 1] for the group of ReLU. For orthogonal maps, and for non-negative features that are not centred, not
        below 1 - 1/sqrt(2) = 0.293.

    Raises
    ------
    ValueError
        If shapes do not fit, n < 2, values are not finite, or no channel varies.

    Examples
    --------
    >>> x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)     # (50, 3)
    >>> procrustes(x, 2 * x[:, [2, 0, 1]] + 1).distance < 1e-10
    True
    >>> rotated = x @ torch.linalg.qr(x[:3]).Q
    >>> procrustes(x, rotated, "orthogonal").distance < 1e-10 < 0.1 < procrustes(x, rotated).distance
    True
    """
    _one_of("group", group, GROUPS)
    _draws(null)
    x, y = _pair(x, y, space=True)
    n, shape_x, shape_y = len(x), x.shape, y.shape
    if group == "relu":
        (x, alive_x), (y, alive_y) = _unit(x, "x", centred), _unit(y, "y", centred)
    else:
        (x, alive_x), (y, alive_y) = (_unit_norm(value, name, centred) for value, name in ((x, "x"), (y, "y")))
    flip = x.shape[1] > y.shape[1]
    a, b = (as_samples(y), as_samples(x)) if flip else (as_samples(x), as_samples(y))
    best = _matching if group == "relu" else _nuclear
    size = _size(a) + _size(b)

    distance = math.sqrt(2 * _residual(a, b, best(a.T @ b)[1]) / size)
    values = []
    pixels = b.reshape(n, -1, b.shape[1])
    for order in _orders(n, null, seed):
        cross = a.T @ pixels[order.to(b.device)].reshape(-1, b.shape[1])
        values.append(1 - math.sqrt(max(0.0, 2 * (size - 2 * best(cross)[0]) / size)) / 2)
    return Similarity(
        1 - distance / 2, np.array(values), _gone(alive_x), _gone(alive_y), n, shape_x[1], shape_y[1], distance
    )


# ------------------------------------------------------------------------------------------------- CKA


def _kernel_features(x: Tensor, name: str, kernel: str) -> tuple[Tensor, Tensor]:
    """What the kernel multiplies: float64 (C, n, pixels), and which channels vary."""
    values, alive = _unit_norm(x, name, True) if kernel == "linear" else _unit(x, name, True)
    return values.reshape(*values.shape[:2], -1).transpose(0, 1).contiguous(), alive


def gram(x: Any, kernel: str = "max", *, scale: float | None = None) -> Tensor:
    """The Gram matrix of a kernel between samples, float64, shape (n, n).

    With channels ``c``, pixels ``p`` and the features ``x~`` of :func:`unit_channels`:

    *   ``"linear"``: ``sum_c sum_p x_mcp x_ncp``, of centred features divided by their Frobenius norm;
    *   ``"max"``: ``max_c sum_p x~_mcp x~_ncp`` (definition 5.3). Not positive semi-definite;
    *   ``"laplace"``: ``exp(-scale sum_c sum_p |x~_mcp - x~_ncp|)`` (equation 5.6). Positive semi-definite.

    Parameters
    ----------
    x
        (n, d) or (n, C, H, W), n >= 2.
    scale
        Of the Laplace kernel, > 0. None takes 1 / the median distance of the first 2,000 samples.

    The matrix is computed in tiles; beside it (8 n^2 bytes) and the features nothing large is kept. Raises as
    :func:`procrustes`.

    >>> gram([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])[0].abs()
    tensor([0.5000, 0.0000, 0.0000, 0.0000], dtype=torch.float64)
    """
    return _gram(_features(x, "x"), "x", kernel, scale)[0]


def _gram(x: Tensor, name: str, kernel: str, scale: float | None) -> tuple[Tensor, Tensor]:
    _one_of("kernel", kernel, KERNELS)
    if scale is not None and not (kernel == "laplace" and 0 < scale < math.inf):
        raise ValueError(f"scale is {scale}; it should be a positive number, and only the laplace kernel has one.")
    values, alive = _kernel_features(x, name, kernel)
    n = values.shape[1]
    result = torch.empty(n, n, dtype=torch.float64, device=values.device)
    if kernel == "linear":  # the matrix is symmetric: half of it is enough
        rows = values.transpose(0, 1).reshape(n, -1)
        for top in range(0, n, _ROWS):
            end = top + _ROWS
            result[top:end, :end] = rows[top:end] @ rows[:end].T
            result[:top, top:end] = result[top:end, :top].T
        return result, alive
    tile = _max_tile if kernel == "max" else _l1_tile
    side = math.isqrt(_TILE)
    for top in range(0, n, side):
        for left in range(0, top + 1, side):
            block = tile(values[:, top : top + side], values[:, left : left + side])
            result[top : top + side, left : left + side] = block
            result[left : left + side, top : top + side] = block.T
    if kernel == "laplace":
        if scale is None:
            some = min(n, _SAMPLES_FOR_SCALE)
            distances = result[torch.triu_indices(some, some, 1).unbind()]
            scale = 1 / max(float(distances.median()), torch.finfo(torch.float64).tiny)
        result.mul_(-scale).exp_()
    return result, alive


def _max_tile(a: Tensor, b: Tensor) -> Tensor:
    """max over channels of the products of pixels: (C, m, p) and (C, n, p) to (m, n)."""
    best = a[0] @ b[0].T
    one = torch.empty_like(best)
    for left, right in zip(a[1:], b[1:], strict=True):
        torch.mm(left, right.T, out=one)
        torch.maximum(best, one, out=best)
    return best


def _l1_tile(a: Tensor, b: Tensor) -> Tensor:
    """The l1 distance of all samples: (C, m, p) and (C, n, p) to (m, n)."""
    return torch.cdist(a.transpose(0, 1).flatten(1), b.transpose(0, 1).flatten(1), p=1)


def _gram_input(value: Any, name: str, least: int) -> Tensor:
    matrix = _features(value, name, least)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has shape {tuple(matrix.shape)}; a Gram matrix should be (n, n).")
    return matrix.to(torch.float64)


class _CentredRows:
    """A Gram matrix without what is common to a row or a column, made row by row so that no copy is kept.

    Biased: H K H. Unbiased: the diagonal counts as 0, and the centring is that of Song et al. (2012), after which
    sum K~ L~ / (n (n - 3)) is the unbiased HSIC.
    """

    def __init__(self, k: Tensor, unbiased: bool):
        n = len(k)
        self.k, self.unbiased = k, unbiased
        sums = k.sum(1)
        if unbiased:
            sums = sums - k.diagonal()
            self.margin, self.level = sums / (n - 2), sums.sum() / ((n - 1) * (n - 2))
        else:
            self.margin, self.level = sums / n, sums.sum() / n**2

    def rows(self, index: Tensor, order: Tensor) -> Tensor:
        """Rows order[index] with the columns in order."""
        chosen = order[index]
        block = self.k[chosen][:, order] - self.margin[chosen][:, None] - self.margin[order] + self.level
        if self.unbiased:
            block[torch.arange(len(index), device=block.device), index] = 0.0
        return block


def _inner(k: _CentredRows, l: _CentredRows, order: Tensor) -> float:  # noqa: E741
    """sum_ij K_ij L_order[i]order[j] of two centred matrices."""
    n = len(order)
    same = torch.arange(n, device=order.device)
    total = 0.0
    for index in same.split(max(1, 32 * _TILE // n)):
        total += float((k.rows(index, same) * l.rows(index, order)).sum())
    return total


def hsic(k: Any, l: Any, *, unbiased: bool = True) -> float:  # noqa: E741
    """The Hilbert-Schmidt independence criterion of two Gram matrices of the same samples.

    Biased: ``tr(K H L H) / (n - 1)^2`` with ``H = I - 1 1^T / n``. Unbiased (Song et al. 2012; "HSIC_1" in the
    paper): ``[tr(K~ L~) + 1^T K~ 1 1^T L~ 1 / ((n-1)(n-2)) - 2 1^T K~ L~ 1 / (n-2)] / (n (n-3))``, where K~ is K with
    a diagonal of zeros. Its expectation is 0 for independent samples, so it can be negative.

    ``k`` and ``l`` have shape (n, n), symmetric, n >= 4 (n >= 2 if biased). Raises ValueError otherwise.

    >>> k = torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> round(hsic(k, k), 3), round(hsic(k, 1 - k), 3)
    (0.667, -0.667)
    """
    least = 4 if unbiased else 2
    k, l = _gram_input(k, "k", least), _gram_input(l, "l", least)  # noqa: E741
    if k.shape != l.shape:
        raise ValueError(f"k has shape {tuple(k.shape)} and l has shape {tuple(l.shape)}; they should be the same.")
    n = len(k)
    total = _inner(_CentredRows(k, unbiased), _CentredRows(l, unbiased), torch.arange(n, device=k.device))
    return total / (n * (n - 3) if unbiased else (n - 1) ** 2)


def cka(
    x: Any,
    y: Any,
    kernel: str = "linear",
    *,
    unbiased: bool = True,
    scale: float | None = None,
    null: int = 10,
    seed: int = 0,
) -> Similarity:
    """Centred kernel alignment ``HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))`` of the kernels of two representations.

    With the linear kernel this is CKA as in Kornblith et al., invariant to orthogonal maps of the channels. With
    ``"max"`` it is the paper's G_ReLU-CKA (definition 5.3); ``"laplace"`` has the same symmetry and is positive
    semi-definite, which the theory of HSIC asks for. See :func:`gram`.

    Parameters
    ----------
    x, y
        (n, d) or (n, C, H, W), n >= 4 (n >= 2 if biased); the numbers of channels and the sizes of the maps may
        differ.
    kernel
        ``"linear"``, ``"max"`` or ``"laplace"``.
    unbiased
        Use the unbiased HSIC, as the paper does. It is then about 0 for independent features, or slightly negative;
        the biased one is positive for them, the more so the fewer samples there are.
    scale
        Of the Laplace kernel.
    null, seed
        As in :func:`procrustes`.

    Returns
    -------
    Similarity
        In [-1, 1]. The linear kernel needs no n x n matrix where n is above the number of features.

    Raises
    ------
    ValueError
        As :func:`procrustes`, and if a kernel is the same for all pairs of samples.

    Examples
    --------
    >>> x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    >>> moved = 2 * x[:, [2, 0, 1]] + 1
    >>> [round(cka(x, moved, kernel).value, 6) for kernel in ("linear", "max", "laplace")]
    [1.0, 1.0, 1.0]
    """
    _one_of("kernel", kernel, KERNELS)
    _draws(null)
    x, y = _pair(x, y, 4 if unbiased else 2)
    n = len(x)
    if kernel == "linear" and scale is None and n > max(x[0].numel(), y[0].numel()):
        (a, alive_x), (b, alive_y) = (_unit_norm(value, name, True) for value, name in ((x, "x"), (y, "y")))
        values = _linear_cka(a.flatten(1), b.flatten(1), unbiased, null, seed)
    else:
        (k, alive_x), (l, alive_y) = _gram(x, "x", kernel, scale), _gram(y, "y", kernel, scale)  # noqa: E741
        values = _gram_cka(k, l, unbiased, null, seed)
    return Similarity(float(values[0]), values[1:], _gone(alive_x), _gone(alive_y), n, x.shape[1], y.shape[1])


def _ratio(xy: np.ndarray, xx: float, yy: float, size_x: float, size_y: float) -> np.ndarray:
    for name, square, size in (("x", xx, size_x), ("y", yy, size_y)):
        # What is left of a constant kernel is rounding.
        if not square > 1e-20 * size:
            raise ValueError(f"{name} has a kernel that is the same for all pairs of samples; nothing can be aligned.")
    return xy / math.sqrt(xx * yy)


def _size(k: Tensor) -> float:
    return float(torch.linalg.vector_norm(k)) ** 2


def _gram_cka(k: Tensor, l: Tensor, unbiased: bool, null: int, seed: int) -> np.ndarray:  # noqa: E741
    """CKA of two Gram matrices, followed by that for random orders of the second."""
    n = len(k)
    rows_k, rows_l = _CentredRows(k, unbiased), _CentredRows(l, unbiased)
    same = torch.arange(n, device=k.device)
    orders = [same, *(order.to(k.device) for order in _orders(n, null, seed))]
    products = np.array([_inner(rows_k, rows_l, order) for order in orders])
    return _ratio(products, _inner(rows_k, rows_k, same), _inner(rows_l, rows_l, same), _size(k), _size(l))


def _linear_cka(a: Tensor, b: Tensor, unbiased: bool, null: int, seed: int) -> np.ndarray:
    """As :func:`_gram_cka` for the linear kernel of rows, from d x d products."""
    a, b = a - a.mean(0), b - b.mean(0)

    def product(one: Tensor, other: Tensor) -> float:
        return _linear_hsic(
            len(one), one.T @ other, one.square().sum(1) @ other.square().sum(1), one.square().sum(),
            other.square().sum(), unbiased,
        )  # fmt: skip

    orders = [torch.arange(len(a)), *_orders(len(a), null, seed)]
    products = np.array([product(a, b[order.to(b.device)]) for order in orders])
    return _ratio(products, product(a, a), product(b, b), _size(a.T @ a), _size(b.T @ b))


def _linear_hsic(n: int, cross: Tensor, norms: Tensor, sum_x: Tensor, sum_y: Tensor, unbiased: bool) -> float:
    """sum K~ L~ of centred rows from X^T Y, sum |x_i|^2 |y_i|^2, sum |x_i|^2 and sum |y_i|^2.

    Rows of a linear Gram matrix of centred features add up to 0, so in the formula of :func:`hsic` only the diagonal
    remains to be taken out.
    """
    total = cross.square().sum()
    if unbiased:
        total = total - norms * (1 + 2 / (n - 2)) + sum_x * sum_y / ((n - 1) * (n - 2))
    return float(total)


def cka_map(grams_x: Sequence[Any], grams_y: Sequence[Any], *, unbiased: bool = True) -> np.ndarray:
    """CKA between every layer of one network and every layer of another.

    ``grams_x`` and ``grams_y`` hold one Gram matrix a layer (:func:`gram`), shape (n, n), of the same samples.
    Returns float64 of shape (layers of x, layers of y). Raises ValueError as :func:`hsic`, or if a sequence is empty.

    >>> x = [torch.randn(8, 3, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1)]
    >>> grams = [gram(layer, "linear") for layer in x]
    >>> bool(abs(cka_map(grams, grams)[0, 1] - cka(*x, null=0).value) < 1e-12)
    True
    """
    if not len(grams_x) or not len(grams_y):
        raise ValueError("grams_x and grams_y should each hold at least one Gram matrix.")
    least = 4 if unbiased else 2
    named = [(k, f"grams_{name}[{i}]") for name, all_ in (("x", grams_x), ("y", grams_y)) for i, k in enumerate(all_)]
    matrices = [_gram_input(k, name, least) for k, name in named]
    n = len(matrices[0])
    for matrix, (_, name) in zip(matrices, named, strict=True):
        if len(matrix) != n:
            raise ValueError(f"{name} has shape {tuple(matrix.shape)}; it should be ({n}, {n}) like the first.")
    same = torch.arange(n, device=matrices[0].device)
    centred = [_CentredRows(matrix, unbiased) for matrix in matrices]
    products = np.zeros((len(centred), len(centred)))
    for index in same.split(max(1, 32 * _TILE // n)):
        rows = torch.stack([each.rows(index, same).flatten() for each in centred])
        products += (rows @ rows.T).cpu().numpy()
    norms = np.sqrt(products.diagonal())
    for norm, (_, name), matrix in zip(norms, named, matrices, strict=True):
        if not norm**2 > 1e-20 * _size(matrix):
            raise ValueError(f"{name} is the same for all pairs of samples; nothing can be aligned.")
    return (products / np.outer(norms, norms))[: len(grams_x), len(grams_x) :]


# ------------------------------------------------------------------------------------------- streaming


class Moments:
    """Everything that Procrustes and linear CKA need, gathered batch by batch in memory d x d.

    For features that do not fit into memory. The samples are taken relative to the mean of the first batch, so that
    little is lost where features are far from 0. Near a distance of 0 the distance is exact to about 1e-7 only: it is
    a root of a difference. :func:`procrustes` goes back to the features and is exact there.

    >>> generator = torch.Generator().manual_seed(0)
    >>> x, y = torch.randn(2, 60, 4, generator=generator, dtype=torch.float64)
    >>> moments = Moments()
    >>> for a, b in zip(x.split(25), y.split(25)):
    ...     moments.update(a, b)
    >>> abs(moments.procrustes("relu") - float(procrustes(x, y, null=0))) < 1e-10
    True
    >>> abs(moments.cka() - float(cka(x, y, null=0))) < 1e-10
    True
    """

    def __init__(self) -> None:
        self.n = 0

    def __repr__(self) -> str:
        shapes = f", channels {len(self.sum_x)} and {len(self.sum_y)}" if self.n else ""
        return f"Moments(n={self.n}{shapes})"

    def update(self, x: Any, y: Any) -> None:
        """Add samples of shape (n, d_x) and (n, d_y), n >= 1; :func:`as_samples` makes them of feature maps."""
        x, y = _features(x, "x", 1), _features(y, "y", 1)
        for value, name in ((x, "x"), (y, "y")):
            if value.ndim != 2:
                raise ValueError(f"{name} has shape {tuple(value.shape)}; it should be (n, d), see as_samples.")
        if len(x) != len(y):
            raise ValueError(f"x has {len(x)} samples and y has {len(y)}; row i of both should be the same sample.")
        x, y = x.to(torch.float64), y.to(torch.float64)
        if not self.n:
            self._origin_x, self._origin_y = x.mean(0), y.mean(0)
            zero = x.new_zeros(())
            self.sum_x, self.sum_y = torch.zeros_like(x[0]), torch.zeros_like(y[0])
            self._products: dict[str, Tensor] = dict.fromkeys(("xx", "xy", "yy"), zero)
            self._norms: dict[str, Tensor] = dict.fromkeys(("xx", "xy", "yy"), zero)
            self._turned: dict[str, Tensor] = dict.fromkeys(("xx", "xy", "yx", "yy"), zero)
        elif (x.shape[1], y.shape[1]) != (len(self.sum_x), len(self.sum_y)):
            raise ValueError(
                f"x and y have {x.shape[1]} and {y.shape[1]} channels; before they had {len(self.sum_x)} and "
                f"{len(self.sum_y)}."
            )
        rows = {"x": x - self._origin_x, "y": y - self._origin_y}
        square = {name: value.square().sum(1) for name, value in rows.items()}
        self.n += len(x)
        self.sum_x, self.sum_y = self.sum_x + rows["x"].sum(0), self.sum_y + rows["y"].sum(0)
        for a, b in ("xx", "xy", "yy"):
            self._products[a + b] = self._products[a + b] + rows[a].T @ rows[b]
            self._norms[a + b] = self._norms[a + b] + square[a] @ square[b]
        for a, b in ("xx", "xy", "yx", "yy"):
            self._turned[a + b] = self._turned[a + b] + square[a] @ rows[b]

    def _covariances(self, least: int) -> tuple[Tensor, Tensor, Tensor]:
        """Sums of centred products: X^T X, X^T Y, Y^T Y."""
        if self.n < least:
            raise ValueError(f"there are n = {self.n} samples; this measure needs n >= {least}.")
        sums = {"x": self.sum_x, "y": self.sum_y}
        xx, xy, yy = (
            self._products[pair] - torch.outer(sums[pair[0]], sums[pair[1]]) / self.n for pair in ("xx", "xy", "yy")
        )
        return xx, xy, yy

    def procrustes(self, group: str = "relu") -> float:
        """The similarity of :func:`procrustes`, centred. Raises ValueError for n < 2 or if no channel varies."""
        _one_of("group", group, GROUPS)
        xx, xy, yy = self._covariances(2)
        live = []
        for square, product, origin, name in (
            (xx, self._products["xx"], self._origin_x, "x"),
            (yy, self._products["yy"], self._origin_y, "y"),
        ):
            size = product.diagonal() + self.n * origin.square()
            live.append(square.diagonal() > 1e-14 * size)
            if not bool(live[-1].any()):
                raise ValueError(f"{name} has no channels that vary; there is nothing to compare.")
        if group == "relu":
            a, b = xx.diagonal()[live[0]], yy.diagonal()[live[1]]
            cross = xy[live[0]][:, live[1]] / a.sqrt()[:, None] / b.sqrt()
            size, gain = float(len(a) + len(b)), _matching(cross)[0]
        else:
            size, gain = 2.0, _nuclear(xy)[0] / math.sqrt(float(xx.trace() * yy.trace()))
        return 1 - math.sqrt(max(0.0, 2 * (size - 2 * gain) / size)) / 2

    def cka(self, *, unbiased: bool = True) -> float:
        """Linear CKA of :func:`cka`. Raises ValueError for n < 4 (n < 2 if biased) or if no channel varies."""
        xx, xy, yy = self._covariances(4 if unbiased else 2)
        n = self.n
        mean = {"x": self.sum_x / n, "y": self.sum_y / n}
        norm2 = {name: value @ value for name, value in mean.items()}
        traces = {"x": xx.trace(), "y": yy.trace()}

        def norms(a: str, b: str) -> Tensor:
            """sum |a_i - mean|^2 |b_i - mean|^2, multiplied out."""
            square = {name: traces[name] + n * norm2[name] for name in (a, b)}
            product = self._products[a + b]
            mixed = 4 * mean[a] @ product @ mean[b]
            turned = -2 * (self._turned[a + b] @ mean[b] + self._turned[b + a] @ mean[a])
            level = norm2[b] * square[a] + norm2[a] * square[b] - 4 * n * norm2[a] * norm2[b] + n * norm2[a] * norm2[b]
            return self._norms[a + b] + mixed + turned + level

        def product(a: str, b: str, cross: Tensor) -> float:
            return _linear_hsic(n, cross, norms(a, b), traces[a], traces[b], unbiased)

        top = np.array([product("x", "y", xy)])
        return float(_ratio(top, product("x", "x", xx), product("y", "y", yy), _size(xx), _size(yy))[0])


# -------------------------------------------------------------------------------------------- features


@torch.no_grad()
def layer_outputs(
    network: nn.Module, layers: Iterable[str], images: Tensor, *, batch_size: int = 500
) -> dict[str, Tensor]:
    """What the named modules of a network give for a stack of images, float32 on the CPU, n along the first axis.

    The network should be in evaluation mode; it runs where its parameters are.

    Raises
    ------
    ValueError
        If a name is unknown, the network is in training mode, or a module runs more than once for an image.

    >>> from affscore_book.kit.networks import myrtle
    >>> outputs = layer_outputs(myrtle(width=4, channels=1).eval(), ["relu3", "relu4"], torch.zeros(3, 1, 32, 32))
    >>> {name: tuple(value.shape) for name, value in outputs.items()}
    {'relu3': (3, 16, 16, 16), 'relu4': (3, 32, 8, 8)}
    """
    layers = list(layers)
    modules = dict(network.named_modules())
    for name in layers:
        if name not in modules:
            raise ValueError(f"layers: there is no module {name!r}; there are {', '.join(filter(None, modules))}.")
    if network.training:
        raise ValueError("network is in training mode, where batch norm mixes the images; call network.eval() first.")
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    batch: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
            if name in batch:
                raise ValueError(f"layers: module {name!r} runs more than once for an image.")
            # A copy: a later module may work in place.
            batch[name] = output.to("cpu", torch.float32, copy=True)

        return hook

    handles = [modules[name].register_forward_hook(keep(name)) for name in layers]
    parts: Mapping[str, list[Tensor]] = {name: [] for name in layers}
    try:
        for some in images.split(batch_size):
            batch.clear()
            network(some.to(device))
            for name in layers:
                if name not in batch:
                    raise ValueError(f"layers: module {name!r} did not run.")
                parts[name].append(batch[name])
    finally:
        for handle in handles:
            handle.remove()
    return {name: torch.cat(values) for name, values in parts.items()}
