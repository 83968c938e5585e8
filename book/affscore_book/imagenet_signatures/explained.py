"""What the architecture alone gives: trained signatures against untrained ones, families, and modules against calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from affscore.signature import Signature
from affscore.suite.architectures import facts
from affscore.suite.tables import Table
from affscore.zoo.models import require

__all__ = ["Explained", "activation_modules", "explained", "explained_table", "family_medians"]


class Explained(NamedTuple):
    """How much of a trained signature the same network's untrained signature tells.

    Attributes
    ----------
    shift
        Mean trained score minus mean untrained score.
    correlation
        Pearson correlation of the two over the calls.
    share
        Its square: the part of the variance along the trained signature that the best straight line in the untrained
        one accounts for.
    ceiling
        The same share when another trained network (another seed) takes the untrained one's place, mean over all
        pairs; NaN where there is one trained network only.
    """

    shift: float
    correlation: float
    share: float
    ceiling: float


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    alive = ~(np.isnan(one) | np.isnan(other))
    return float(np.corrcoef(one[alive], other[alive])[0, 1])


def explained(trained: Signature, untrained: Signature) -> Explained:
    """Compare a network's trained signature with its untrained one; rows are batches or seeds.

    Several trained seeds are compared one by one with the mean over the untrained ones, and the results averaged.

    Examples
    --------
    >>> from affscore.calls import Call
    >>> calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (4,), 1) for i in range(3)]
    >>> result = explained(Signature(calls, np.array([[0.2, 0.4, 0.6]])), Signature(calls, np.array([[0.7, 0.8, 0.9]])))
    >>> round(result.shift, 2), round(result.share, 2), result.ceiling
    (-0.4, 1.0, nan)
    """
    start = untrained.mean
    weights = trained.provenance.get("stacked", [])
    rows = trained.scores if len(set(weights)) > 1 else trained.mean[None]
    correlations = np.array([_correlation(row, start) for row in rows])
    pairs = [_correlation(a, b) ** 2 for i, a in enumerate(rows) for b in rows[:i]]
    return Explained(
        shift=float(np.nanmean(trained.mean) - np.nanmean(start)),
        correlation=float(correlations.mean()),
        share=float((correlations**2).mean()),
        ceiling=float(np.mean(pairs)) if pairs else float("nan"),
    )


def explained_table(trained: Mapping[str, Signature], untrained: Mapping[str, Mapping[str, Signature]]) -> Table:
    """:func:`explained` for every trained network and every kind of untrained weights, a row each."""
    return Table.from_rows(
        [
            {"network": name, "compared with": kind, "calls": len(signature.calls)}
            | explained(signature, others[name])._asdict()
            for name, signature in trained.items()
            for kind, others in untrained.items()
            if name in others
        ]
    )


def family_medians(signatures: Mapping[str, Signature]) -> dict[str, float]:
    """Median over the networks of each family of the median score over calls, lowest (most non-linear) first."""
    members: dict[str, list[float]] = {}
    for name, each in signatures.items():
        members.setdefault(facts(name).family, []).append(float(np.nanmedian(each.mean)))
    medians = {family: float(np.median(values)) for family, values in members.items()}
    return dict(sorted(medians.items(), key=lambda item: item[1]))


def activation_modules(name: str) -> int:
    """How many activation modules a network of torchvision has: what hooks on modules can see.

    >>> activation_modules("alexnet"), activation_modules("googlenet")
    (7, 0)
    """
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device("meta"):
        network = require("torchvision.models").get_model(name, **options)
    kinds = [type(m) for m in network.modules() if not isinstance(m, nn.MultiheadAttention)]
    return sum(kind.__module__ == "torch.nn.modules.activation" for kind in kinds)
