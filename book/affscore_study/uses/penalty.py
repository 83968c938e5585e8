"""The score as a penalty in training. It is differentiable, so gradient descent can change it (experiment E4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from affscore import affinity_score
from affscore.arguments import check_choice

__all__ = ["EVERY", "WAYS", "TargetPenalty", "mean_score", "slopes_for_relus", "watched_pairs"]

Pairs = list[tuple[Tensor, Tensor]]
#: The penalty is added at every second step.
EVERY = 2
#: The parameters that receive the gradient of the penalty: all, or, for comparison, only shifts or only slopes.
WAYS = ("all", "shifts", "slopes")


@contextmanager
def watched_pairs(network: nn.Module) -> Iterator[Pairs]:
    """The inputs and outputs of every ReLU and PReLU at the latest pass, in order of execution, with their gradients.

    In-place activations would overwrite their inputs, so they work out of place from here on.
    """
    pairs: Pairs = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pairs.append((inputs[0], output))

    with ExitStack() as hooks:
        hooks.enter_context(network.register_forward_pre_hook(lambda module, inputs: pairs.clear()))
        for module in network.modules():
            if isinstance(module, nn.ReLU | nn.PReLU):
                module.inplace = False
                hooks.enter_context(module.register_forward_hook(keep))
        yield pairs


def mean_score(pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """The mean affinity score of some calls, a float64 scalar with a gradient; maps are averaged over their positions.

    >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    >>> mean_score([(x, x.relu())]).requires_grad
    True
    """

    def pooled(value: Tensor) -> Tensor:
        return value.flatten(2).mean(2) if value.ndim > 2 else value

    return torch.stack([affinity_score(pooled(x), pooled(y)) for x, y in pairs]).mean()


def slopes_for_relus(network: nn.Module, slope: float = 0.0, *, learn: bool = True) -> nn.Module:
    """Replace every ReLU by a PReLU and return the network. With slope 0, a PReLU is a ReLU until its slope changes.

    With ``learn=False``, the slopes are fixed.

    >>> [type(module).__name__ for module in slopes_for_relus(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))]
    ['Linear', 'PReLU']
    """
    for parent in list(network.modules()):
        for name, module in parent.named_children():
            if isinstance(module, nn.ReLU):
                setattr(parent, name, nn.PReLU(init=slope).requires_grad_(learn))
    return network


class TargetPenalty:
    """The backward pass of ``loss + strength * (mean score - target)^2``, with the penalty at every second step.

    Parameters
    ----------
    network
        The network inside :func:`watched_pairs`; its calls are ReLUs or PReLUs.
    pairs
        The pairs that :func:`watched_pairs` yields.
    target
        The target of the mean score over the calls; None for no penalty.
    way
        One of :data:`WAYS`. With ``"all"``, every parameter receives the gradient of the penalty. With ``"shifts"``,
        only biases and the shifts of norms do. With ``"slopes"``, only the slopes of PReLUs do, and they do not receive
        that of the loss.

    Raises
    ------
    ValueError
        If ``way`` is unknown, or the network has no such parameters.
    """

    def __init__(
        self, network: nn.Module, pairs: Pairs, *, target: float | None, strength: float, way: str = "all"
    ) -> None:
        self.pairs, self.target, self.strength = pairs, target, strength
        check_choice("way", way, WAYS)
        slopes = [p for module in network.modules() if isinstance(module, nn.PReLU) for p in module.parameters()]
        shifts = [p for name, p in network.named_parameters() if name.endswith("bias")]
        self.slopes = slopes if way == "slopes" else []
        self.felt_by = None if way == "all" else {"shifts": shifts, "slopes": slopes}[way]
        if self.felt_by == []:
            raise ValueError(f"way is {way!r}; the network has no {way}.")

    def backward(self, step: int, loss: Tensor) -> None:
        """Fill the gradients at a step, which is counted from 1; ``loss`` comes from the latest pass."""
        gradients: Sequence[Tensor | None] = []
        if self.target is not None and step % EVERY == 0:
            penalty = (self.strength * (mean_score(self.pairs) - self.target) ** 2).float()
            if self.felt_by is None:
                loss = loss + penalty
            else:
                gradients = torch.autograd.grad(penalty, self.felt_by, retain_graph=True, allow_unused=True)
        loss.backward()
        for slope in self.slopes:
            slope.grad = torch.zeros_like(slope)
        for parameter, gradient in zip(self.felt_by or [], gradients, strict=False):
            if gradient is not None and parameter.grad is not None:
                parameter.grad += gradient
