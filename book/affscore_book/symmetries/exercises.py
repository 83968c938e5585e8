"""Checks of the exercises of the chapter on symmetries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from affscore_book.kit.checks import report
from affscore_book.symmetries.action import act
from affscore_book.symmetries.detector import find_intertwiner
from affscore_book.symmetries.groups import Monomial, PReLUGroup
from affscore_book.symmetries.layers import hidden_layers


def check_function(function: Any) -> None:
    """Does a function have every lambda, negative ones too, with phi(lambda) = abs(lambda)^3?"""
    finding = find_intertwiner(function)
    if finding.group is None:
        return report("symmetries-function", False, "", f"its group cannot be told: {finding.reason}")
    report(
        "symmetries-function",
        finding.group == Monomial("positive", flip=1, degree=3),
        "an even function, homogeneous of degree 3.",
        f"its group is '{finding.group.description}', with phi: {finding.group.phi_description}.",
    )


def check_prelu(matrix: Any) -> None:
    """Does a matrix for PReLU slopes 1, 1, 4, 1/4 mix the first two channels and swap the others with a sign?"""
    group, matrix = PReLUGroup((1.0, 1.0, 4.0, 0.25)), torch.as_tensor(matrix, dtype=torch.float64)
    reason = group.why_not(matrix)
    if reason:
        return report("symmetries-prelu", False, "", reason)
    mixes = bool((matrix[:2, :2] != 0).all(1).any())  # one new channel made of both is enough: a shear mixes
    flips = bool(matrix[2, 3] < 0 and matrix[3, 2] < 0)
    report(
        "symmetries-prelu",
        mixes and flips,
        "slope 1 mixes, and slopes whose product is 1 swap with a sign.",
        "it belongs to the group, but a new channel should be made of both first ones, and the last two should swap "
        "with negative signs.",
    )


def check_ties(network: nn.Sequential, matrices: Mapping[str, Tensor], layer: str) -> None:
    """Do the matrices move the channels of one layer of a residual network and keep the function?"""
    if layer not in matrices:
        return report("symmetries-ties", False, "", f"{layer} should have a matrix.")
    channels = {hidden.name: hidden.channels for hidden in hidden_layers(network)}[layer]
    if torch.allclose(matrices[layer].double(), torch.eye(channels, dtype=torch.float64)):
        return report("symmetries-ties", False, "", f"the matrix of {layer} should not be the identity.")
    try:
        other = act(network, matrices)
    except (TypeError, ValueError) as error:
        return report("symmetries-ties", False, "", str(error))
    x = torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x.to(next(network.parameters()).dtype)
    with torch.no_grad():
        gap = (network(x) - other(x)).abs().max()
    report("symmetries-ties", bool(gap < 1e-4), "same function, other weights.", f"the outputs move by {gap:.2g}.")


def check_count(count: int) -> None:
    """How many sign patterns and orders of 5 tanh neurons compute the same function?"""
    report(
        "symmetries-count",
        count == 2**5 * 120,
        "2^5 signs times 5! orders.",
        f"{count} is not right: every order, and a sign for each.",
    )
