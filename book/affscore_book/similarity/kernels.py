"""Kernels: do two representations find the same samples alike?

``cka(x, y, "linear")`` is invariant to orthogonal maps of the channels, one common scale and translations;
``cka(x, y, "max")`` and ``"laplace"`` to permutations of the channels, positive scales and translations: the symmetries
of ReLU.

Feature maps of shape (n, C, H, W) follow the paper's appendix D.7, where the groups act on channels only: images are
compared, and the kernel of two of them sums the products of their pixels before anything is done with the channels.

Sources: Godfrey, Brown, Emerson, Kvinge, "On the symmetries of deep learning models and their internal
representations", NeurIPS 2022, section 5 and appendix D.7; Kornblith et al., "Similarity of neural network
representations revisited", ICML 2019 (CKA); Song et al., "Feature selection via dependence maximization", JMLR 2012
(unbiased HSIC).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore.arguments import check_choice, whole_number
from affscore_book.similarity.channels import checked, checked_pair, square_sum, unit_live_channels, unit_matrix
from affscore_book.similarity.results import Similarity, random_orders, similarity

__all__ = ["KERNELS", "centred_gram", "cka", "cka_map", "gram"]

KERNELS = ("linear", "max", "laplace")

# Side of a tile of a Gram matrix: half a MB, so that it stays in the cache.
TILE = 256
# The median distance, the scale of the Laplace kernel, is that between this many samples, the first ones.
SAMPLES_FOR_SCALE = 2000


def gram(x: Any, kernel: str = "max") -> Tensor:
    """The Gram matrix of a kernel between samples, float64, shape (n, n).

    With channels ``c``, pixels ``p`` and the features ``x~`` of :func:`unit_channels`:

    *   ``"linear"``: ``sum_c sum_p x_mcp x_ncp``, of centred features divided by their Frobenius norm;
    *   ``"max"``: ``max_c sum_p x~_mcp x~_ncp`` (definition 5.3). Not positive semi-definite;
    *   ``"laplace"``: ``exp(-scale sum_c sum_p |x~_mcp - x~_ncp|)`` (equation 5.6), the scale being 1 / the median
        distance of the first 2,000 samples. Positive semi-definite.

    ``x`` has shape (n, d) or (n, C, H, W), n >= 2. The matrix is computed in tiles; beside it (8 n^2 bytes) and the
    features nothing large is kept. Raises ValueError if shapes do not fit, n < 2, values are not finite, or no channel
    varies.

    >>> gram([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])[0].abs()
    tensor([0.5000, 0.0000, 0.0000, 0.0000], dtype=torch.float64)
    """
    return _gram(checked(x, "x"), "x", kernel)[0]


def _gram(x: Tensor, name: str, kernel: str) -> tuple[Tensor, Tensor]:
    """The Gram matrix, and which channels vary."""
    check_choice("kernel", kernel, KERNELS)
    if kernel == "linear":
        rows, alive = unit_matrix(x, name)
        rows = rows.flatten(1)
        return rows @ rows.T, alive
    values, alive = unit_live_channels(x, name)
    if kernel == "max":
        return _in_tiles(values.reshape(*values.shape[:2], -1).transpose(0, 1).contiguous(), 1, _largest_product), alive
    result = _in_tiles(values.flatten(1), 0, lambda a, b: torch.cdist(a, b, p=1))
    some = min(len(x), SAMPLES_FOR_SCALE)
    distances = result[torch.triu_indices(some, some, 1).unbind()]
    scale = 1 / max(float(distances.median()), torch.finfo(torch.float64).tiny)
    return result.mul_(-scale).exp_(), alive


def _in_tiles(x: Tensor, axis: int, tile: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """A symmetric (n, n) matrix made of tiles of it, of samples along an axis of ``x``."""
    parts = x.split(TILE, dim=axis)
    result = x.new_empty(x.shape[axis], x.shape[axis])
    for i, a in enumerate(parts):
        for j, b in enumerate(parts[: i + 1]):
            block = tile(a, b)
            rows, columns = (slice(k * TILE, k * TILE + size) for k, size in ((i, len(block)), (j, block.shape[1])))
            result[rows, columns], result[columns, rows] = block, block.T
    return result


def _largest_product(a: Tensor, b: Tensor) -> Tensor:
    """max over channels of the products of pixels: (C, m, p) and (C, n, p) to (m, n)."""
    best = a[0] @ b[0].T
    one = torch.empty_like(best)  # written over for every channel: new memory takes a third of the time
    for left, right in zip(a[1:], b[1:], strict=True):
        torch.mm(left, right.T, out=one)
        torch.maximum(best, one, out=best)
    return best


def centred_gram(k: Tensor) -> Tensor:
    """K~: a Gram matrix with 0 on its diagonal and without what is common to a row or a column (Song et al. 2012).

    The sum of K~ L~ / (n (n - 3)) is then the unbiased Hilbert-Schmidt independence criterion, "HSIC_1" in the paper:
    ``[tr(K L) + 1^T K 1 1^T L 1 / ((n-1)(n-2)) - 2 1^T K L 1 / (n-2)] / (n (n-3))`` for K and L with 0 on the diagonal.
    Its expectation is 0 for independent samples, so it can be negative. ``k`` has shape (n, n), n >= 3.

    >>> centred_gram(gram([[0.0], [1.0], [2.0], [4.0]], "linear")).sum(1).abs().max() < 1e-12
    tensor(True)
    """
    n, sums = len(k), k.sum(1) - k.diagonal()
    margin = sums / (n - 2)
    result = k - margin[:, None]
    result -= margin
    result += sums.sum() / ((n - 1) * (n - 2))
    return result.fill_diagonal_(0)


def _inner(k: Tensor, l: Tensor, order: Tensor | None = None) -> float:  # noqa: E741
    """sum_ij K_ij L_order[i]order[j] of two centred matrices; some rows at a time, without another n x n matrix."""
    every = torch.arange(len(k), device=k.device)
    order = every if order is None else order
    chunks = every.split(max(1, 32 * TILE**2 // len(k)))
    return sum(float((k[rows] * l[order[rows]][:, order]).sum()) for rows in chunks)


def cka(x: Any, y: Any, kernel: str = "linear", *, null: int = 10) -> Similarity:
    """Centred kernel alignment ``HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))`` of the kernels of two representations.

    With the linear kernel this is CKA as in Kornblith et al., invariant to orthogonal maps of the channels. With
    ``"max"`` it is the paper's G_ReLU-CKA (definition 5.3); ``"laplace"`` has the same symmetry and is positive
    semi-definite, which the theory of HSIC asks for. See :func:`gram`. HSIC is the unbiased one, as in the paper: it is
    about 0 for independent features, or slightly negative, where the biased one is positive, the more so the fewer
    samples there are.

    Parameters
    ----------
    x, y
        (n, d) or (n, C, H, W), n >= 4; the numbers of channels and the sizes of the maps may differ.
    kernel
        ``"linear"``, ``"max"`` or ``"laplace"``.
    null
        How many random orders of the samples of ``y`` to compare with.

    Returns
    -------
    Similarity
        In [-1, 1]. The linear kernel needs no n x n matrix where n is above the number of features.

    Raises
    ------
    ValueError
        If shapes do not fit, there are too few samples, values are not finite, no channel varies, or a kernel is the
        same for all pairs of samples.

    Examples
    --------
    >>> x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    >>> moved = 2 * x[:, [2, 0, 1]] + 1
    >>> [round(cka(x, moved, kernel).value, 6) for kernel in ("linear", "max", "laplace")]
    [1.0, 1.0, 1.0]
    """
    check_choice("kernel", kernel, KERNELS)
    whole_number("null", null, 0)
    x, y = checked_pair(x, y, 4)
    orders = random_orders(len(x), null, x.device)
    if kernel == "linear" and len(x) > max(x[0].numel(), y[0].numel()):
        (a, alive_x), (b, alive_y) = unit_matrix(x, "x"), unit_matrix(y, "y")
        values = _linear_cka(a.flatten(1), b.flatten(1), orders)
    else:
        (k, alive_x), (l, alive_y) = _gram(x, "x", kernel), _gram(y, "y", kernel)  # noqa: E741
        values = _gram_cka(k, l, orders)
    return similarity(values, x, y, alive_x, alive_y)


def _gram_cka(k: Tensor, l: Tensor, orders: Iterator[Tensor]) -> list[float]:  # noqa: E741
    """CKA of two Gram matrices, followed by that for random orders of the second."""
    size_k, size_l = square_sum(k), square_sum(l)
    k, l = centred_gram(k), centred_gram(l)  # noqa: E741
    square_k = _varying("x has a kernel that", _inner(k, k), size_k)
    norm = math.sqrt(square_k * _varying("y has a kernel that", _inner(l, l), size_l))
    return [_inner(k, l, order) / norm for order in (None, *orders)]


def _linear_cka(a: Tensor, b: Tensor, orders: Iterator[Tensor]) -> list[float]:
    """As :func:`_gram_cka` for the linear kernel of rows, from d x d products."""
    a, b = a - a.mean(0), b - b.mean(0)
    square_a = _varying("x has a kernel that", _linear_inner(a, a), square_sum(a.T @ a))
    norm = math.sqrt(square_a * _varying("y has a kernel that", _linear_inner(b, b), square_sum(b.T @ b)))
    return [_linear_inner(a, rows) / norm for rows in (b, *(b[order] for order in orders))]


def _linear_inner(a: Tensor, b: Tensor) -> float:
    """As :func:`_inner` of the Gram matrices of centred rows.

    Rows of a linear Gram matrix of centred features add up to 0, so in the formula of :func:`centred_gram` only the
    diagonal remains to be taken out.
    """
    n, total = len(a), (a.T @ b).square().sum()
    diagonal = a.square().sum(1) @ b.square().sum(1)
    total = total - diagonal * (1 + 2 / (n - 2)) + a.square().sum() * b.square().sum() / ((n - 1) * (n - 2))
    return float(total)


def _varying(what: str, square: float, size: float) -> float:
    """``square``, unless it is no more than what rounding leaves of a constant kernel of that size."""
    if not square > 1e-20 * size:
        raise ValueError(f"{what} is the same for all pairs of samples; nothing can be aligned.")
    return square


def cka_map(grams_x: Sequence[Any], grams_y: Sequence[Any]) -> np.ndarray:
    """CKA between every layer of one network and every layer of another.

    ``grams_x`` and ``grams_y`` hold one Gram matrix a layer (:func:`gram`), shape (n, n), of the same samples, n >= 4.
    Returns float64 of shape (layers of x, layers of y). Raises ValueError for other shapes, or if a sequence is empty.

    >>> x = [torch.randn(8, 3, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1)]
    >>> grams = [gram(layer, "linear") for layer in x]
    >>> bool(abs(cka_map(grams, grams)[0, 1] - cka(*x, null=0).value) < 1e-12)
    True
    """
    if not len(grams_x) or not len(grams_y):
        raise ValueError("grams_x and grams_y should each hold at least one Gram matrix.")
    named = [(f"grams_{name}[{i}]", k) for name, all_ in (("x", grams_x), ("y", grams_y)) for i, k in enumerate(all_)]
    matrices = [checked(k, name, 4).to(torch.float64) for name, k in named]
    n = len(matrices[0])
    for matrix, (name, _) in zip(matrices, named, strict=True):
        if matrix.shape != (n, n):
            raise ValueError(f"{name} has shape {tuple(matrix.shape)}; it should be ({n}, {n}) like the first.")
    centred = [centred_gram(matrix) for matrix in matrices]
    rows = torch.stack([each.flatten() for each in centred])
    products = (rows @ rows.T).cpu().numpy()
    for (name, _), square, matrix in zip(named, products.diagonal(), matrices, strict=True):
        _varying(name, square, square_sum(matrix))
    norms = np.sqrt(products.diagonal())
    return (products / np.outer(norms, norms))[: len(grams_x), len(grams_x) :]
