"""Table 1: the intertwiner group of every activation of the catalogue.

:func:`intertwiner` gives the group of a name, of a module of ``torch.nn`` by its parameters, or of any function.

Source: Godfrey, Brown, Emerson, Kvinge, NeurIPS 2022, Table 1 and appendix E.2, extended to the whole catalogue.
"""

from __future__ import annotations

import torch
from torch import nn

from affscore_book.activations.catalogue import CATALOGUE, ActivationFunction, Function, lookup
from affscore_book.symmetries.detector import find_intertwiner
from affscore_book.symmetries.groups import GeneralLinear, Intertwiner, Monomial, PReLUGroup

__all__ = ["intertwiner"]

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
