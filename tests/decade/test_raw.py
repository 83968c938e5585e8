"""Rows on single signatures agree with a decade that is as the source says, and disagree with its contrary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted import CALLS, decade, noise, verdicts

from affscore_book.decade import raw
from affscore_book.decade.claims import PLAIN
from affscore_book.decade.networks import SETTINGS

UP = np.linspace(0, 1, CALLS)


def top(name: str) -> float:
    return 0.9 + 0.01 * (SETTINGS[name].year - 2014)


def deep(name: str, scores: np.ndarray) -> np.ndarray:
    """Early networks have different numbers of calls, nearly in the order of their ranges."""
    if name not in raw.PRE_RESIDUAL:
        return scores
    calls = CALLS + (0, 1, 3, 2, 4, 5, 6, 7, 8)[raw.PRE_RESIDUAL.index(name)]
    return np.interp(np.linspace(0, 1, calls), UP, scores)


def as_they_say(name: str, seed: int) -> np.ndarray:
    scores = 0.5 + (top(name) - 0.5) * UP
    if name in PLAIN:
        scores = 0.6 + 0.02 * PLAIN.index(name) * UP
    elif name == "googlenet":
        scores = 0.6 + 0.3 * UP
    elif name == "inception_v3":
        scores = 0.5 + 0.45 * UP
    elif name == "swin":
        scores = 0.6 + 0.01 * UP
    elif name == "convnext":
        scores = 0.6 + 0.06 * UP
        scores[-1] = 0.95
    elif name.startswith("vit"):
        scores = 0.05 + 0.02 * UP
    return deep(name, scores + noise(name, seed, 0.002))


def contrary(name: str, seed: int) -> np.ndarray:
    """Wide stacks, maxima that fall, Swin and ConvNeXt far from all, ViTs in the middle."""
    scores = 0.5 + (0.45 - 0.02 * (SETTINGS[name].year - 2012)) * UP
    if name in PLAIN:
        scores = 0.2 + (0.79 - 0.02 * PLAIN.index(name)) * (UP > 0 if name == "alexnet" else UP)
    elif name == "googlenet":
        scores = 0.3 + 0.65 * UP
        scores[-1] = 0.99
    elif name in ("swin", "convnext"):
        scores = 0.03 + 0.01 * UP
    return deep(name, scores + noise(name, seed, 0.002))


def planted(scores, between: float, told: float):
    """``between`` is added to the transitions; accuracy falls or rises with the range, as ``told`` says."""
    networks = decade(scores)
    for name, seeds in networks.items():
        for seed, each in seeds.items():
            if name.startswith("densenet"):
                each.end.calls[:] = [
                    replace(call, module="features.transition1" if i % 4 == 3 else "features.denselayer1")
                    for i, call in enumerate(each.end.calls)
                ]
                each.end.scores[:, 3::4] = each.end.scores.mean() + between
            accuracy = 0.9 + told * (float(np.ptp(each.scores)) + 0.03 * (name == "vgg13"))
            seeds[seed] = replace(each, accuracy=accuracy)
    return networks


@pytest.mark.parametrize("claims", [raw.spread_claims, raw.likeness_claims], ids=lambda claims: claims.__name__)
def test_both_ways(claims):
    rows = claims(planted(as_they_say, 0.1, 0.05))
    assert set(verdicts(rows)) == {"agrees"} and all(row.seen and row.interval for row in rows)
    assert set(verdicts(claims(planted(contrary, -0.1, -0.05)))) == {"disagrees"}


def test_tails():
    heavy = np.insert(np.full(CALLS - 2, 0.5), [0, 5], [0.1, 0.9])

    def scores(name: str, seed: int) -> np.ndarray:
        return (heavy if name in ("swin", "convnext") else 0.5 + 0.2 * UP) + noise(name, seed, 0.002)

    assert verdicts(raw.tail_claims(decade(scores))) == ["agrees"] * 2
    swapped = {"swin": "alexnet", "alexnet": "swin", "convnext": "vgg16", "vgg16": "convnext"}
    rows = raw.tail_claims(decade(lambda name, seed: scores(swapped.get(name, name), seed)))
    assert verdicts(rows) == ["disagrees"] * 2 and not any(row.seen for row in rows)
