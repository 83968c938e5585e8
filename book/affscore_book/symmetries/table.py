"""Table 1: the intertwiner group of every activation of the catalogue, and how well a matrix passes through one.

:func:`intertwiner` gives the group of a name, of a module of ``torch.nn`` by its parameters, or of any function.

Source: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, Table 1 and appendix E.2, extended to the whole catalogue.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from affscore_book.activations.catalogue import CATALOGUE, ActivationFunction, Function, lookup
from affscore_book.kit.checking import square_matrix
from affscore_book.symmetries.detector import find_intertwiner
from affscore_book.symmetries.groups import GeneralLinear, Intertwiner, Monomial, PReLUGroup

__all__ = ["defect", "intertwiner", "passing"]

# What is not listed has permutations only.
TABLE: dict[str, Intertwiner] = {
    "identity": GeneralLinear(),
    **dict.fromkeys(("relu", "leaky_relu", "prelu", "rrelu"), Monomial("positive", degree=1)),
    "relu_squared": Monomial("positive", degree=2),
    "heaviside": Monomial("positive", degree=0),
    "sign": Monomial("positive", flip=-1, degree=0),
    "abs": Monomial("positive", flip=1, degree=1),
    "square": Monomial("positive", flip=1, degree=2),
    "cube": Monomial("positive", flip=-1, degree=3),
    **dict.fromkeys(
        (
            "tanh", "lecun_tanh", "hardtanh", "softsign", "arctan", "erf", "isru", "sqnl", "symlog", "tanhshrink",
            "hardshrink", "softshrink", "plu", "sine", "gcu",
        ),
        Monomial("one", flip=-1),
    ),
    **dict.fromkeys(("lisht", "gaussian", "ricker", "sq_rbf", "cosine"), Monomial("one", flip=1)),
}  # fmt: skip


def intertwiner(activation: str | ActivationFunction | nn.Module | Function) -> Intertwiner:
    """The intertwiner group of an activation.

    Parameters
    ----------
    activation
        A name in the catalogue of activations, an :class:`ActivationFunction`, or a module of ``torch.nn``: ReLU,
        LeakyReLU and PReLU (with one slope or one for each channel) by their slopes. Any other function goes through
        :func:`~affscore_book.symmetries.detector.find_intertwiner`.

    Raises
    ------
    ValueError
        If the name is unknown, or the group of a function cannot be told from its values.
    TypeError
        If the argument is neither a name nor callable.

    Examples
    --------
    >>> group = intertwiner("relu")
    >>> group
    Monomial(positive scalings times permutations; phi: A)
    >>> a = group.sample(3, 0)                                            # (3, 3), float64
    >>> x = torch.randn(3, 5, dtype=torch.float64)
    >>> torch.allclose(torch.relu(a @ x), group.phi(a) @ torch.relu(x))
    True
    >>> group.why_not(torch.tensor([[0.8, -0.6], [0.6, 0.8]]))
    'row 0 has 2 entries that are not 0; it should have one.'
    >>> intertwiner(torch.nn.LeakyReLU(-1.0)).phi_description              # the absolute value
    'abs(A)'
    """
    if isinstance(activation, nn.PReLU):
        slopes = activation.weight.detach().double().tolist()
        return PReLUGroup(tuple(slopes)) if len(slopes) > 1 else intertwiner(nn.LeakyReLU(slopes[0]))
    if isinstance(activation, nn.LeakyReLU) and activation.negative_slope != 1:
        return Monomial("positive", flip=int(activation.negative_slope == -1), degree=1)
    if isinstance(activation, nn.LeakyReLU | nn.Identity):
        return GeneralLinear()
    if isinstance(activation, nn.ReLU):
        return TABLE["relu"]
    row = lookup(activation)
    if row.name in CATALOGUE:
        return TABLE.get(row.name, Monomial("one"))
    with torch.no_grad():
        finding = find_intertwiner(row)
    if finding.group is None:
        raise ValueError(f"activation is {row.title}, and its group cannot be told from its values: {finding.reason}")
    return finding.group


def defect(function: str | ActivationFunction | Function, a: Tensor, b: Tensor, *, reach: float = 1e3) -> float:
    """How far sigma(a x) is from b sigma(x) at worst, relative to the terms in it: 0 for equal, at most 1.

    Parameters
    ----------
    function
        Name, activation or function of a float64 tensor.
    a, b
        (n, n) float64 matrices.
    reach
        Coordinates of the 1000 x have random signs and magnitudes between 1e-4 and this, uniform in the logarithm.

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


def passing(function: str | ActivationFunction | Function, group: Intertwiner) -> int:
    """How many of 10 random elements A of a group pass through a function and come out as the group's phi(A).

    An element (4, 4) passes if its :func:`defect` is at most 1e-10.

    >>> passing("tanh", intertwiner("tanh")), passing("tanh", intertwiner("relu"))
    (10, 0)
    """
    elements = [group.sample(4, seed) for seed in range(10)]
    return sum(defect(function, a, group.phi(a)) <= 1e-10 for a in elements)
