"""The stored decade, and one whose signatures are chosen by the test."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from affscore.calls import Call
from affscore.signatures import Signature
from affscore_book.decade.collection import END, START, Trained, load_decade
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.decade.networks import SETTINGS

FOLDER = Path(__file__).parents[2] / "book" / "data" / "decade"
stored = cache(lambda: load_decade(FOLDER))
CALLS = 13
#: What is added to all scores of a network.
RISING = {name: 0.02 * (setting.year - 2012) for name, setting in SETTINGS.items()}


def verdicts(rows) -> list[str]:
    return [row.verdict for row in rows]


def noise(name: str, seed: int, size: float = 0.01) -> np.ndarray:
    return size * np.random.default_rng([sum(map(ord, name)), seed]).normal(size=CALLS)


def as_they_say(name: str, seed: int) -> np.ndarray:
    """Levels rise to 2019, ViTs lie below all, GoogLeNet is wide, EfficientNet skewed; additions are near 1."""
    scores = 0.55 + RISING[name] + noise(name, seed)
    spread = np.linspace(-1, 1, CALLS)
    if name.startswith("vit"):
        return 0.2 + 0.05 * spread + noise(name, seed, 0.002)
    if name in ("swin", "convnext", "alexnet"):
        return 0.56 + noise(name, seed)
    if name.startswith("vgg"):
        return 0.55 + noise(name, seed, 0.005)
    if name == "googlenet":
        return scores + 0.2 * spread
    if name == "efficientnet":
        return scores + 0.1 * np.log(np.linspace(0.05, 1, CALLS))
    if name.startswith("resnet"):
        scores = 0.6 + noise(name, seed, 0.004)
        if not name.endswith("no_skips"):
            scores[2::2] = {"resnet10": 0.95, "resnet18": 0.94, "resnet34": 0.98}[name] + noise(name, seed, 0.001)[2::2]
    return scores


def upside_down(name: str, seed: int) -> np.ndarray:
    return 1.2 - as_they_say(name, seed)


def start(name: str, seed: int) -> np.ndarray:
    scores = np.linspace(0.8, 0.95, CALLS) + noise(name, seed, 0.01)
    scores[-1] = 0.98 + noise(name, seed, 0.002)[-1]
    return scores


def finish(name: str, seed: int) -> np.ndarray:
    return np.linspace(0.5, 0.2, CALLS) + noise(name, seed, 0.02)


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
    if "raw" in pools:
        found["raw start", "spatial"] = signature(pools["raw"], modules)
    year = SETTINGS[name.partition(" ")[0]].year
    return Trained(name, seed, year, 1, 10, 1.0, 0.9, {}, found, found[END, "spatial"])


def decade(scores: Callable[[str, int], np.ndarray], seeds: int = 3, **options: Callable[[str, int], np.ndarray]):
    """Every architecture, ``scores(name, seed)`` each; ``start``, ``raw`` and ``trailing`` as functions too."""
    return {
        name: {s: network(name, s, scores(name, s), **{key: of(name, s) for key, of in options.items()})
               for s in range(seeds)}
        for name in SETTINGS
    }  # fmt: skip


def equal(scores: Callable[[str, int], np.ndarray]) -> dict[str, Equal]:
    """The same scores with few channels, of the first seed."""
    return {name: Equal({(END, count): scores(name, 0) for count in CHANNELS}, {}, np.zeros((0, 0)))
            for name in SETTINGS}  # fmt: skip
