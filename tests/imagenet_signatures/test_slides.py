"""The control of a slide's sentence can go either way, and its unit is the architecture."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from affscore_book.decade.collection import END, load_decade
from affscore_book.imagenet_signatures.slides import deeper_with_norm

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


def test_deeper_networks_can_be_more_or_less_linear_than_one_with_norm(decade):
    deep = ("resnet34", "densenet40", "efficientnet")
    for step, said in ((0.2, "held"), (0.01, "failed"), (-0.2, "failed")):
        nets = planted(decade, lambda name, _, calls, step=step: np.full(calls, 0.6 + step * (name in deep)))
        assert deeper_with_norm(nets).verdict == said


def test_the_unit_is_the_architecture_and_not_the_seed(decade):
    """Three architectures that part do not decide, however many seeds agree in each."""
    level = {"resnet34": 0.6, "densenet40": 0.7, "efficientnet": 0.8, "vgg16_bn": 0.6}
    nets = planted(decade, lambda name, _, calls: np.full(calls, level.get(name, 0.5)))
    assert deeper_with_norm(nets).ours == pytest.approx(0.1, abs=0.01)
    assert deeper_with_norm(nets).verdict == "undecided"
