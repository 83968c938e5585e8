"""The paper's small statements about intertwiners as computations that can fail.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, theorem 3.3, lemmas 3.1, 5.1, E.7, E.12 and E.46, definitions 5.2 and 5.3, remark 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from affscore.arguments import whole_number
from affscore_book.activations.catalogue import ActivationFunction, Function, lookup
from affscore_book.kit.checking import square_matrix
from affscore_book.kit.draws import random_rotation
from affscore_book.symmetries.groups import Intertwiner, Monomial

__all__ = [
    "aligned_draws", "defect", "distinct_rays", "ignored_draws", "keeps_axes", "keeps_max", "least_eigenvalue",
    "others_passing", "passes", "passing", "sample_kinds", "slope_gap", "unit_values",
]  # fmt: skip


def sample_kinds(n: int, seed: int) -> dict[str, Tensor]:
    """One random invertible matrix (n, n), float64, of each of six kinds, of which only the first is in ReLU's group.

    >>> list(sample_kinds(3, 0))
    ['element of G_ReLU', 'one sign turned', 'permutation with signs', 'one entry added', 'rotation', 'normal entries']
    """
    whole_number("n", n, 2)
    generator = torch.Generator().manual_seed(seed)
    element = Monomial("positive").sample(n, generator)
    turned, added = element.clone(), element.clone()
    turned[0] *= -1
    added[0, (int(element[0].argmax()) + 1) % n] = 1e-3
    signs = Monomial("one", flip=-1).sample(n, generator)
    signs[0] *= -signs[0].sum()  # at least one sign is -1
    return {
        "element of G_ReLU": element,
        "one sign turned": turned,
        "permutation with signs": signs,
        "one entry added": added,
        "rotation": random_rotation(n, generator),
        "normal entries": torch.randn(n, n, generator=generator, dtype=torch.float64),
    }


def keeps_axes(a: Tensor) -> bool:
    """Whether ``a`` (n, n) maps the rays along the coordinate axes onto each other (Theorem 3.3).

    >>> keeps_axes(torch.tensor([[0.0, 2.0], [1.0, 0.0]])), keeps_axes(torch.tensor([[0.0, -2.0], [1.0, 0.0]]))
    (True, False)
    """
    images = _rays(square_matrix("a", a).double().T)
    distances = torch.cdist(images, torch.eye(len(a), dtype=torch.float64))
    on_axis = distances < 1e-9
    return bool((on_axis.sum(0) == 1).all() and (on_axis.sum(1) == 1).all())


def distinct_rays(matrices: Tensor, vector: Tensor) -> int:
    """The number of different rays to which the ``matrices`` (k, n, n) map the ray through a ``vector`` (n,).

    >>> distinct_rays(torch.stack([torch.eye(2), 3 * torch.eye(2), torch.eye(2).flip(0)]), torch.tensor([1.0, 0.0]))
    2
    """
    images = _rays(matrices.double() @ vector.double())
    return len(torch.unique((images * 1e9).round() + 0.0, dim=0))


def _rays(vectors: Tensor) -> Tensor:
    return vectors / torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)


def defect(function: str | ActivationFunction | Function, a: Tensor, b: Tensor, *, reach: float = 1e3) -> float:
    """The largest relative difference between sigma(a x) and b sigma(x), from 0 (equal) to 1.

    Parameters
    ----------
    function
        The name of an activation, an activation, or a function of a float64 tensor.
    a, b
        float64 matrices of shape (n, n).
    reach
        The coordinates of the 1000 points x have random signs and magnitudes between 1e-4 and ``reach``, uniform in the
        logarithm.

    Returns
    -------
    The largest abs(sigma(a x) - b sigma(x)) / (abs(sigma(a x)) + abs(b) abs(sigma(x))), taken entry by entry.

    Raises
    ------
    ValueError
        If ``a`` or ``b`` is not square, or ``reach`` is not above 1e-4.

    >>> a = torch.diag(torch.tensor([2.0, 3.0], dtype=torch.float64))
    >>> defect("relu6", a, a, reach=1.0), round(defect("relu6", a, a, reach=100.0), 1)
    (0.0, 0.5)
    """
    a, b = square_matrix("a", a), square_matrix("b", b)
    if not 1e-4 < reach < math.inf:
        raise ValueError(f"reach is {reach}; it should be finite and above 1e-4.")
    row = lookup(function)
    generator = torch.Generator().manual_seed(0)
    shape = (len(a), 1000)
    size = torch.rand(shape, generator=generator, dtype=torch.float64) * math.log(reach / 1e-4) + math.log(1e-4)
    x = size.exp() * (2.0 * torch.randint(0, 2, shape, generator=generator).double() - 1)
    image, value = row(a @ x), row(x)
    scale = image.abs() + b.abs() @ value.abs()
    gap = (image - b @ value).abs()
    return float(torch.where(gap == 0, 0.0, gap / scale).max())


def passes(function: str | ActivationFunction | Function, a: Tensor) -> bool:
    """Whether a matrix (n, n) passes through an activation, decided from values of the activation alone.

    By Lemma 3.1, only ``sigma(A) sigma(I)^-1`` can be on the other side. ``a`` passes if that matrix is invertible and
    the two sides differ by at most 1e-10 (:func:`defect`). Raises ValueError if sigma(I) is singular.

    >>> passes("relu", torch.diag(torch.tensor([2.0, 3.0]))), passes("relu", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    (True, False)
    """
    a = square_matrix("a", a).double()
    sigma = lookup(function)
    identity = sigma(torch.eye(len(a), dtype=torch.float64))
    if torch.linalg.matrix_rank(identity) < len(a):
        raise ValueError("sigma of the identity is singular, so Lemma 3.1 gives no candidate.")
    other = sigma(a) @ torch.linalg.inv(identity)
    other = torch.where(other.abs() > 1e-12 * other.abs().max(), other, 0.0)  # rounding would show in the tails
    return bool(torch.linalg.matrix_rank(other) == len(a)) and defect(function, a, other) <= 1e-10


def passing(function: str | ActivationFunction | Function, group: Intertwiner) -> int:
    """The number of 10 random elements A of a group that pass through a function and become the group's phi(A).

    An element (4, 4) passes if its :func:`defect` is at most 1e-10.

    >>> from affscore_book.symmetries.table import intertwiner
    >>> passing("tanh", intertwiner("tanh")), passing("tanh", intertwiner("relu"))
    (10, 0)
    """
    elements = [group.sample(4, seed) for seed in range(10)]
    return sum(defect(function, a, group.phi(a)) <= 1e-10 for a in elements)


def others_passing(function: str | ActivationFunction | Function, group: Intertwiner) -> int:
    """The number of 10 random invertible matrices (4, 4) outside a group that pass through a function (:func:`passes`).

    They are the matrices of :func:`sample_kinds` that the group does not contain. Together with :func:`passing`, this
    tests a group from both sides: some of these matrices pass if the group is too small, and some of its own elements
    do not pass if it is too large.

    >>> from affscore_book.symmetries.table import intertwiner
    >>> others_passing("relu", intertwiner("relu")), others_passing("relu", intertwiner("tanh")) > 0
    (0, True)
    """
    drawn = [a for seed in range(20) for a in sample_kinds(4, seed).values() if not group.contains(a)]
    return sum(passes(function, a) for a in drawn[:10])


def unit_values(function: str | ActivationFunction | Function, n: int) -> tuple[bool, bool]:
    """Whether sigma(I) is invertible, by Lemma E.7 from sigma(0) and sigma(1) alone, and by its singular values.

    The lemma requires sigma(1) != sigma(0) and sigma(1) != -(n - 1) sigma(0), because the differences are the
    eigenvalues of sigma(I).

    >>> unit_values("relu", 4), unit_values(torch.ones_like, 4)
    ((True, True), (False, False))
    """
    whole_number("n", n, 1)
    sigma = lookup(function)
    zero, one = sigma(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
    differences = (one + (n - 1) * zero, *((one - zero,) if n > 1 else ()))
    scale = abs(zero) + abs(one)
    by_lemma = scale > 0 and all(abs(value) > 1e-12 * n * scale for value in differences)
    sizes = torch.linalg.svdvals(sigma(torch.eye(n, dtype=torch.float64)))
    return by_lemma, bool(sizes[-1] > 1e-12 * n * scale)


def slope_gap(function: str | ActivationFunction | Function, a: Tensor, b: Tensor) -> float:
    """The largest relative difference between sigma'((A x)_i) a_ij and b_ij sigma'(x_j) at 200 normal points (E.12).

    If sigma(A x) = B sigma(x), the two are equal. This is the reason why rows of A have one entry: sigma'((A x)_i)
    depends on every x_k with a_ik != 0, but the right side depends on x_j alone.

    >>> a = torch.diag(torch.tensor([2.0, 3.0]))
    >>> slope_gap("relu", a, a), slope_gap("tanh", a, a) > 0.1
    (0.0, True)
    """
    a, b = square_matrix("a", a).double(), square_matrix("b", b).double()
    x = torch.randn(200, len(a), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sigma = lookup(function)

    def slope(at: Tensor) -> Tensor:
        at = at.detach().requires_grad_()
        value = sigma(at)
        # The slope of a staircase is 0, and autograd has no gradient for it.
        return torch.autograd.grad(value.sum(), at)[0] if value.requires_grad else torch.zeros_like(at)

    left, right = slope(x @ a.T)[:, :, None] * a, b * slope(x)[:, None, :]
    scale = (left.abs() + right.abs()).max()
    return float((left - right).abs().max() / scale) if scale else 0.0


def ignored_draws(measure: Callable[[Tensor, Tensor], float], *, translations: bool) -> int:
    """The number of 10 draws in which a measure is invariant to elements of ReLU's group on both arguments (Lemma 5.1).

    A draw has normal features X and Y (50, 4), float64, and matrices A and B of the group, and with ``translations``
    also a shift of every channel. It counts if ``measure(X A + 1 v^T, Y B + 1 w^T)`` equals ``measure(X, Y)`` to 1e-9.

    >>> def size(x, y):
    ...     return float((x / x.norm(dim=0)).sum())
    >>> ignored_draws(size, translations=False), ignored_draws(size, translations=True)
    (10, 0)
    """
    count = 0
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        pair = torch.randn(2, 50, 4, generator=generator, dtype=torch.float64)
        moved = [_moved(features, generator, translations) for features in pair]
        count += abs(measure(*moved) - measure(*pair)) <= 1e-9
    return count


def aligned_draws(measure: Callable[[Tensor, Tensor], float]) -> int:
    """The number of 10 draws in which ``measure(X, X A + 1 v^T)`` is 1 to 1e-6 (definitions 5.2 and 5.3).

    X, A and v are drawn as in :func:`ignored_draws`.

    >>> aligned_draws(lambda x, y: 1.0), aligned_draws(lambda x, y: float((x - y).norm()))
    (10, 0)
    """
    count = 0
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(50, 4, generator=generator, dtype=torch.float64)
        count += abs(measure(x, _moved(x, generator, True)) - 1) <= 1e-6
    return count


def _moved(features: Tensor, generator: torch.Generator, translations: bool) -> Tensor:
    element = Monomial("positive").sample(features.shape[1], generator)
    shift = torch.randn(features.shape[1], generator=generator, dtype=torch.float64)
    return features @ element + translations * shift


def least_eigenvalue(p: float) -> float:
    """The smallest eigenvalue of exp(-|x - y|_p / 10) on the 125 points of a grid in the cube [-1, 1]^3 (Remark 5.5).

    If it is below 0, the kernel is not positive semi-definite. If it is above 0, nothing follows.

    >>> least_eigenvalue(1) > 0 > least_eigenvalue(4)
    True
    """
    grid = torch.linspace(-1, 1, 5, dtype=torch.float64)
    points = torch.cartesian_prod(grid, grid, grid)
    return float(torch.linalg.eigvalsh(torch.exp(-torch.cdist(points, points, p=p) / 10))[0])


def keeps_max(a: Any) -> bool:
    """Whether ``max(A x * A y) = max(x * y)`` holds for a matrix (d, d) at 500 pairs of normal vectors (Lemma E.46).

    It holds for permutations with signs and for no other matrices. The max kernel of features that are not normalised
    therefore distinguishes scalings, but is invariant to signs, although a change of sign is not a symmetry of ReLU.

    >>> keeps_max([[0.0, -1.0], [1.0, 0.0]]), keeps_max([[2.0, 0.0], [0.0, 1.0]]), keeps_max([[0.6, -0.8], [0.8, 0.6]])
    (True, False, False)
    """
    a = torch.as_tensor(a, dtype=torch.float64)
    x, y = torch.randn(2, 500, len(a), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before, after = ((left * right).amax(1) for left, right in ((x, y), (x @ a.T, y @ a.T)))
    return bool(torch.allclose(after, before, rtol=1e-9, atol=1e-9))
