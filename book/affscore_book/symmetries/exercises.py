"""Checks of the exercises of the chapter on symmetries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from affscore_book.kit.answers import Unfit, function, mapping, numbers
from affscore_book.kit.checks import case, exercise, report
from affscore_book.symmetries.action import act
from affscore_book.symmetries.detector import find_intertwiner
from affscore_book.symmetries.groups import Monomial
from affscore_book.symmetries.layers import hidden_layers
from affscore_book.symmetries.table import intertwiner


def tensor(answer: Any) -> Tensor:
    """The form of a matrix or a vector, in float64."""
    return torch.from_numpy(numbers(answer))


@exercise("symmetries-function", function=function)
def check_function(function: Any, degree: int = 3) -> None:
    """Does a function have every lambda, negative ones too, with phi(lambda) = abs(lambda)^degree?"""
    finding = find_intertwiner(function)
    if finding.group is None:
        return report("symmetries-function", False, "", f"its group cannot be told: {finding.reason}")
    report(
        "symmetries-function",
        finding.group == Monomial("positive", flip=1, degree=degree),
        f"an even function, homogeneous of degree {degree}.",
        f"its group is '{finding.group.description}', with phi: {finding.group.phi_description}.",
    )


@exercise("symmetries-fool", function=function)
def check_fool(function: Any) -> None:
    """Does the detector find ReLU's group for a function that is not homogeneous from 1e-15 to 1e15?"""
    group = find_intertwiner(function).group
    if group != Monomial("positive"):
        told = "cannot tell" if group is None else f"finds '{group.description}'"
        return report("symmetries-fool", False, "", f"the detector {told}; where does it not look?")
    size = torch.logspace(-15, 15, 3001, dtype=torch.float64)
    x = torch.cat([-size.flip(0), size])
    wanted = 2 * function(x)
    gap = (function(2 * x) - wanted).abs() / wanted.abs().clamp(min=1e-300)
    seen = x[gap.nan_to_num(0.0) > 1e-3].abs()
    report(
        "symmetries-fool",
        len(seen) > 0,
        f"doubled inputs give doubled outputs as far as it looks, and not at {seen[0]:.3g}." if len(seen) else "",
        "its outputs double with its inputs from 1e-15 to 1e15.",
    )


@exercise("symmetries-build", action=function)
def check_build(action: Callable[..., tuple[Sequence[Tensor], Sequence[Tensor]]]) -> None:
    """Does ``action(weights, biases, matrices, phi)`` move a perceptron (3, 5, 4, 2) and keep its function?

    With tanh, where phi(A) = A, and with ReLU squared, where it is not.
    """
    generator = torch.Generator().manual_seed(0)
    sizes = list(itertools.pairwise((3, 5, 4, 2)))
    weights = [torch.randn(after, before, generator=generator, dtype=torch.float64) for before, after in sizes]
    biases = [torch.randn(after, generator=generator, dtype=torch.float64) for _, after in sizes]
    x = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    for name, sigma in (("tanh", torch.tanh), ("relu_squared", lambda x: x.relu() ** 2)):
        group = intertwiner(name)
        matrices = [group.sample(5, 1), group.sample(4, 2)]
        with case(name):
            found = _moved(action([w.clone() for w in weights], [b.clone() for b in biases], matrices, group.phi))
            if [w.shape for w in found[0]] != [w.shape for w in weights] or [b.shape for b in found[1]] != [
                b.shape for b in biases
            ]:
                hint = "the new weights and biases should have the shapes of the old ones."
                return report("symmetries-build", False, "", hint)
            if not torch.allclose(found[0][0], matrices[0] @ weights[0]):
                hint = "the first weights should be A_1 times the old ones, from the left."
                return report("symmetries-build", False, "", hint)
        gap = (_outputs(*found, sigma, x) - _outputs(weights, biases, sigma, x)).abs().max()
        if not gap < 1e-6:
            hint = f"with {name} the outputs move by {gap:.2g}. What comes out of an activation that A goes into?"
            with case(name):
                return report("symmetries-build", False, "", hint)
    report("symmetries-build", True, "other weights, the same function, with both activations.", "")


def _moved(found: Any) -> tuple[list[Tensor], list[Tensor]]:
    """What ``action`` returned, as lists of tensors of float64."""
    try:
        weights, biases = found
        return [tensor(each) for each in weights], [tensor(each) for each in biases]
    except (TypeError, ValueError) as error:
        raise Unfit("your function should return the new weights and the new biases, two lists of tensors.") from error


def _outputs(
    weights: Sequence[Tensor], biases: Sequence[Tensor], sigma: Callable[[Tensor], Tensor], x: Tensor
) -> Tensor:
    """The perceptron of these weights at inputs x (n, 3)."""
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        x = sigma(x @ weight.T + bias)
    return x @ weights[-1].T + biases[-1]


@exercise("symmetries-ties", matrices=mapping(tensor))
def check_ties(network: nn.Sequential, matrices: Mapping[str, Tensor], layer: str) -> None:
    """Do the matrices move the channels of one layer of a residual network and keep the function?"""
    if layer not in matrices:
        return report("symmetries-ties", False, "", f"{layer} should have a matrix.")
    matrices = {name: matrix.to(next(network.parameters()).dtype) for name, matrix in matrices.items()}
    channels = {hidden.name: hidden.channels for hidden in hidden_layers(network)}[layer]
    if matrices[layer].shape != (channels, channels):
        found = f"the matrix of {layer} has shape {tuple(matrices[layer].shape)}; it should be {channels} x {channels}."
        return report("symmetries-ties", False, "", found)
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
