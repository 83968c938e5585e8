"""Sets batch norm to the statistics of given inputs, for networks that were never trained, or were taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

__all__ = ["set_batch_norm"]


def set_batch_norm(model: nn.Module, parts: Iterable[Any], run: Callable[[Any], object] | None = None) -> nn.Module:
    """Set every batch norm to the plain mean of its means and variances over the parts; nothing else changes.

    Parameters
    ----------
    model
        The network, which is changed in place and left in evaluation mode. A network without batch norm is not run.
    parts
        The batches of inputs, which are run one after the other.
    run
        A function that runs a part through the network; by default ``model``.

    Returns
    -------
    nn.Module
        ``model``.

    >>> network = set_batch_norm(nn.Sequential(nn.BatchNorm1d(1)), [torch.tensor([[1.0], [3.0]])])
    >>> network(torch.tensor([[2.0]])).item()
    0.0
    """
    norms = [module for module in model.eval().modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over the parts, not an exponential one
        norm.train()
    if norms:
        with torch.no_grad():
            for part in parts:
                (run or model)(part)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return model.eval()
