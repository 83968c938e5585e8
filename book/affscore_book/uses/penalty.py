"""The score as a penalty while a network is trained: it is differentiable, so gradient descent can move it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore import affinity_score
from affscore_book.kit.networks import activation_layers
from affscore_book.kit.training import ImageData, accuracy, fit

__all__ = ["mean_score", "train_with_penalty", "watched_pairs"]

Pairs = dict[str, tuple[Tensor, Tensor]]


@contextmanager
def watched_pairs(network: nn.Module) -> Iterator[Pairs]:
    """Input and output of every activation module at the latest pass, with their gradients, by the module's name."""
    pairs: Pairs = {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            pairs[name] = inputs[0], output

        return hook

    hooks = [network.get_submodule(name).register_forward_hook(keep(name)) for name in activation_layers(network)]
    try:
        yield pairs
    finally:
        for hook in hooks:
            hook.remove()


def mean_score(pairs: Pairs) -> Tensor:
    """Mean affinity score of some calls, a float64 number with a gradient; maps are averaged over their positions.

    >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    >>> mean_score({"a": (x, x.relu())}).requires_grad
    True
    """

    def pooled(value: Tensor) -> Tensor:
        return value.flatten(2).mean(2) if value.ndim > 2 else value

    return torch.stack([affinity_score(pooled(x), pooled(y)) for x, y in pairs.values()]).mean()


def train_with_penalty(
    network: nn.Module, data: ImageData, *, target: float | None, strength: float, epochs: int, seed: int
) -> dict[str, Any]:
    """Train in place with ``strength * (mean score - target)^2`` added to the loss of every second step.

    Parameters
    ----------
    target
        None for no penalty.

    Returns
    -------
    ``"scores"``, the mean score on 512 validation images before training and after each epoch; ``"accuracy"`` on test
    images; ``"milliseconds"``, processor time a step.
    """
    probe = data.standardise(data.validation.images[:512])
    scores: list[float] = []
    steps = 0
    with watched_pairs(network) as pairs:

        def measure(_: int) -> None:
            with torch.no_grad():
                network.eval()(probe)
                scores.append(float(mean_score(pairs)))

        def penalty(_: float) -> Tensor:
            nonlocal steps
            steps += 1
            if target is None or steps % 2:
                return torch.zeros(())
            return (strength * (mean_score(pairs) - target) ** 2).float()

        measure(0)
        start = time.process_time()
        fit(network, data, epochs=epochs, seed=seed, penalty=penalty, after_epoch=measure)
        spent = time.process_time() - start
    return {
        "target": target, "scores": scores, "accuracy": accuracy(network, data, data.test),
        "milliseconds": round(1000 * spent / steps, 1), "steps": steps, "calls": len(activation_layers(network)),
        "last": float(np.round(scores[-1], 6)),
    }  # fmt: skip
