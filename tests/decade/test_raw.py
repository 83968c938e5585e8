"""Rows on single signatures agree with a decade that is as the source says, and disagree with its contrary."""

from dataclasses import replace

import numpy as np
import pytest
from planted_decade import CALLS, decade, noise, verdicts

from affscore_book.decade.networks import SETTINGS
from affscore_study.decade import raw
from affscore_study.decade.claims import PLAIN

UP = np.linspace(0, 1, CALLS)


#: By network, the lowest and the highest score.
AS_THEY_SAY = {
    **{name: (0.5, 0.9 + 0.01 * (setting.year - 2014)) for name, setting in SETTINGS.items()},
    **{name: (0.6, 0.6 + 0.02 * at) for at, name in enumerate(PLAIN)},
    "googlenet": (0.6, 0.9), "inception_v3": (0.5, 0.95), "swin": (0.6, 0.61), "convnext": (0.6, 0.66),
    "vit_8": (0.05, 0.07), "vit_4": (0.05, 0.07),
}  # fmt: skip
#: Wide stacks, maxima that fall, Swin and ConvNeXt far from all but ResNets, ViTs in the middle.
CONTRARY = {
    **{name: (0.5, 0.95 - 0.02 * (setting.year - 2012)) for name, setting in SETTINGS.items()},
    **{name: (0.2, 0.99 - 0.02 * at) for at, name in enumerate(PLAIN)},
    **dict.fromkeys(raw.RESNETS, (0.3, 0.5)), "googlenet": (0.3, 0.99), "swin": (0.03, 0.04), "convnext": (0.03, 0.04),
}  # fmt: skip


def ramp(name: str, seed: int, ends: dict[str, tuple[float, float]]) -> np.ndarray:
    """From the lowest score to the highest; early networks have more calls the wider their ranges, but for two."""
    low, high = ends[name]
    scores = low + (high - low) * UP + noise(name, seed, 0.002)
    if ends is AS_THEY_SAY and name == "convnext":
        scores[-1] = 0.95
    if name not in raw.PRE_RESIDUAL:
        return scores
    calls = CALLS + (0, 1, 3, 2, 4, 5, 6, 7, 8)[raw.PRE_RESIDUAL.index(name)]
    return np.interp(np.linspace(0, 1, calls), UP, scores)


def planted(ends, between: float, told: float):
    """``between`` is added to the transitions; accuracy falls or rises with the range, as ``told`` says."""
    networks = decade(lambda name, seed: ramp(name, seed, ends))
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
    rows = claims(planted(AS_THEY_SAY, 0.1, 0.05))
    assert set(verdicts(rows)) == {"agrees"} and all(row.interval for row in rows)
    assert set(verdicts(claims(planted(CONTRARY, -0.1, -0.05)))) == {"disagrees"}


def test_tails():
    heavy = np.insert(np.full(CALLS - 2, 0.5), [0, 5], [0.1, 0.9])

    def scores(name: str, seed: int) -> np.ndarray:
        return (heavy if name in ("swin", "convnext") else 0.5 + 0.2 * UP) + noise(name, seed, 0.002)

    assert verdicts(raw.tail_claims(decade(scores))) == ["agrees"] * 2
    swapped = {"swin": "alexnet", "alexnet": "swin", "convnext": "vgg16", "vgg16": "convnext"}
    rows = raw.tail_claims(decade(lambda name, seed: scores(swapped.get(name, name), seed)))
    assert verdicts(rows) == ["disagrees"] * 2
