"""A decade whose signatures are chosen by the test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from affscore.calls import Call
from affscore.signature import Signature
from affscore_book.decade.collection import END, START, Trained
from affscore_book.decade.networks import SETTINGS


def signature(rows, modules: list[str] | None = None) -> Signature:
    """Of these scores, (calls,) or (batches, calls)."""
    rows = np.minimum(np.atleast_2d(np.asarray(rows, dtype=np.float64)), 1.0)
    modules = modules or [f"m{i}" for i in range(rows.shape[1])]
    calls = [Call(f"{module}:relu[{i}]", module, "relu", i, False, (4,), 1) for i, module in enumerate(modules)]
    return Signature(calls, rows, batch_sizes=[512] * len(rows))


def blocks(count: int) -> list[str]:
    """The calls of a ResNet: one of the stem, two of each block."""
    return ["relu", *(f"layer1.{block}.relu" for block in range(count) for _ in range(2))]


def network(name: str, seed: int, scores: np.ndarray, start: np.ndarray | None = None, **pools: np.ndarray) -> Trained:
    modules = blocks((len(scores) - 1) // 2) if name.startswith("resnet") else None
    found = {(END, "spatial"): signature(scores, modules)}
    found[START, "spatial"] = signature(scores if start is None else start, modules)
    found[END, "trailing"] = signature(pools.get("trailing", scores), modules)
    found[START, "trailing"] = found[START, "spatial"]
    year = SETTINGS[name.partition(" ")[0]].year
    return Trained(name, seed, year, "convolutional", 1, 10, 1.0, 0.9, {}, found, found[END, "spatial"])


def decade(scores: Callable[[str, int], np.ndarray], seeds: int = 3, **options: Callable[[str, int], np.ndarray]):
    """Every architecture, ``scores(name, seed)`` each; ``start`` and ``trailing`` as functions too."""
    return {
        name: {s: network(name, s, scores(name, s), **{key: of(name, s) for key, of in options.items()})
               for s in range(seeds)}
        for name in SETTINGS
    }  # fmt: skip
