"""The slides' two sentences can go either way, and are asked of the stored networks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from affscore_book.decade.collection import END, load_decade
from affscore_book.imagenet_signatures.slides import slides_claims

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "decade"


@pytest.fixture(scope="module")
def decade():
    return load_decade(STORED)


def planted(decade, scores):
    """The same networks with other trained scores: ``scores`` takes the name, the network and how many calls it has."""

    def changed(name, network):
        found = network.signatures[END, "spatial"]
        own = 1e-3 * (len(name) % 5 + network.seed * (1 + len(name) % 3))  # no two are the same
        rows = np.array([scores(name, network, len(found.calls)) + own * np.linspace(0, 1, len(found.calls))])
        return dataclasses.replace(network, signatures={(END, "spatial"): dataclasses.replace(found, scores=rows)})

    return {name: {seed: changed(name, each) for seed, each in seeds.items()} for name, seeds in decade.items()}


def verdicts(decade):
    return [claim.verdict for claim in slides_claims(decade)]


def age(network):
    return (network.year - 2012) / 10


def test_rows_say_what_decides_them(decade):
    rows = slides_claims(decade)
    assert [claim.source.partition(", ")[2] for claim in rows] == 2 * ["Deeper Networks"] + 3 * [
        "Neural architectures, before ViTs"
    ]
    assert all(claim.seen and claim.interval is not None and claim.kind == "source" for claim in rows)


def test_deeper_networks_can_be_more_or_less_linear(decade):
    deep = ("resnet34", "densenet40", "efficientnet")
    for step, said in ((0.2, "agrees"), (0.01, "disagrees"), (-0.2, "disagrees")):
        nets = planted(decade, lambda name, _, calls, step=step: np.full(calls, 0.6 + step * (name in deep)))
        assert verdicts(nets)[:2] == [said] * 2
    level = dict.fromkeys(deep, 0.8) | {"vgg16_bn": 0.9}
    nets = planted(decade, lambda name, _, calls: np.full(calls, level.get(name, 0.6)))
    assert verdicts(nets)[:2] == ["depends on batch norm"] * 2


def test_scores_can_rise_and_their_range_fall(decade):
    def scores(_, network, calls):
        return 0.3 + 0.5 * age(network) + 0.4 * (1 - age(network)) * np.linspace(-1, 1, calls)

    assert verdicts(planted(decade, scores))[2:] == ["agrees", "agrees", "disagrees"]
