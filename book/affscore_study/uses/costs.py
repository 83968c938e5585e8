"""The cost of making one call affine, and the measures of the call that may predict it (experiment E1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore import affinity_score
from affscore.companions import linear_twin, measure
from affscore_book.uses.replacing import AT_ONCE, calls_of, fit_lines, run_replaced, run_watched
from affscore_book.uses.signs import sign_entropy

__all__ = ["Costs", "kl", "measure_costs", "measures_of", "tokens", "variance_share"]

#: The number of positions of images that the token score takes as samples.
TOKENS = 2048
Costs = dict[str, Any]


def kl(before: Tensor, after: Tensor) -> float:
    """The mean over samples of KL(softmax(before) || softmax(after)) in nats, for logits of shape (n, classes).

    >>> kl(torch.zeros(3, 2), torch.zeros(3, 2))
    0.0
    """
    logs = (functional.log_softmax(value.double(), dim=1) for value in (before, after))
    old, new = logs
    return max(float((old.exp() * (old - new)).sum(dim=1).mean()), 0.0)


def _others(x: Tensor, axis: int) -> list[int]:
    return [i for i in range(x.ndim) if i != axis % x.ndim]


def variance_share(y: Tensor, axis: int) -> float:
    """The share of the variance of a call's output that lies between images and not between positions of one image.

    Variances are summed over channels. The share is NaN if the output is constant.

    >>> variance_share(torch.tensor([[[1.0, 1.0]], [[3.0, 3.0]]]), 1)
    1.0
    """
    total = float(y.var(_others(y, axis), unbiased=False).sum())
    inside = [i for i in _others(y, axis) if i]
    means = y.mean(inside) if inside else y
    return float(means.var(0, unbiased=False).sum()) / total if total > 0 else math.nan


def tokens(x: Tensor, axis: int, seed: int, count: int = TOKENS) -> Tensor:
    """At most ``count`` random positions of images as samples, float64 (n, channels), which depend only on the seed."""
    rows = x.movedim(axis, -1)
    generator = np.random.default_rng(seed)
    total = math.prod(rows.shape[:-1])
    places = generator.permutation(total)[:count]
    return rows[tuple(torch.from_numpy(each) for each in np.unravel_index(places, rows.shape[:-1]))].double()


def measures_of(x: Tensor, y: Tensor, axis: int, seed: int) -> dict[str, float]:
    """All measures of one call except the held-out R2, from its input and output on training images."""
    before, after = (tokens(value, axis, seed) for value in (x, y))
    return {
        "channels": x.shape[axis],
        "positions": x[0].numel() // x.shape[axis],
        "score": affinity_score(before, after).item(),
        "twin": affinity_score(before, linear_twin(before, after)).item(),
        "cka": measure(before, after, ["cka"])["cka"],
        "sign_entropy": sign_entropy(x, axis),
        "sparsity": float((y.abs() <= 1e-3).float().mean()),
        "variance_share": variance_share(y, axis),
    }


def measure_costs(network: nn.Module, fitted: Tensor, held_out: Tensor, labels: Tensor | None = None) -> Costs:
    """The measures of every call that is not a gate, and the cost of replacing it by its lines, one call at a time.

    Parameters
    ----------
    network
        Returns logits of shape (n, classes).
    fitted
        Images on which the lines are fitted and the measures are taken, in one pass.
    held_out
        Images on which the cost and the paired R2 are measured.
    labels
        The labels of ``held_out``. Accuracies are measured only if they are given.

    Returns
    -------
    ``"calls"`` has a record for each call, with its measures, ``"r2"`` and ``"kl"`` in nats; ``"accuracy"`` is that of
    the unchanged network.
    """
    calls = calls_of(network, fitted[:4])
    kept = [at for at, call in enumerate(calls) if not call.gate]
    records: dict[int, dict[str, Any]] = {}

    def take(at: int, x: Tensor, y: Tensor) -> None:
        if at in kept:
            records[at] = measures_of(x, y, calls[at].channel_axis, at)

    run_watched(network, fitted, take)
    lines = fit_lines(network, fitted, calls)
    errors: dict[int, list[float]] = {}

    def compare(at: int, x: Tensor, y: Tensor) -> None:
        if at not in kept:
            return
        others = _others(y, calls[at].channel_axis)
        # The spread is that around the batch's own mean; batches are large, so this hardly differs from the total.
        miss, spread = (lines[at](x) - y).square().mean(), y.var(others, unbiased=False).mean()
        errors.setdefault(at, []).append(float(miss / spread) if spread > 0 else math.nan)

    logits = torch.cat([run_watched(network, some, compare) for some in held_out.split(AT_ONCE)])
    result: Costs = {"calls": []}
    if labels is not None:
        result["accuracy"] = float((logits.argmax(1) == labels).double().mean())
    for at in kept:
        changed = run_replaced(network, held_out, {at: lines[at]})
        record = {"name": calls[at].name, "position": at} | records[at]
        record |= {"r2": 1 - float(np.mean(errors[at])), "kl": kl(logits, changed)}
        record["agreement"] = float((logits.argmax(1) == changed.argmax(1)).double().mean())
        if labels is not None:
            record["accuracy"] = float((changed.argmax(1) == labels).double().mean())
        result["calls"].append(record)
    return result
