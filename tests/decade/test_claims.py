"""Each claim agrees with a decade that is as the source says, disagrees with its contrary, and is open in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted import decade, network

from affscore_book.decade import claims
from affscore_book.decade.networks import SETTINGS

CALLS = 13
#: What is added to all scores of a network.
RISING = {name: 0.02 * (setting.year - 2012) for name, setting in SETTINGS.items()}


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
            scores[2::2] = {"resnet10": 0.95, "resnet18": 0.965, "resnet34": 0.98}[name] + noise(name, seed, 0.001)[
                2::2
            ]
    if name == "densenet40":
        scores = 0.6 + noise(name, seed)
    return scores


def upside_down(name: str, seed: int) -> np.ndarray:
    return 1.2 - as_they_say(name, seed)


def start(name: str, seed: int) -> np.ndarray:
    return np.linspace(0.8, 0.99, CALLS) + noise(name, seed, 0.001)


def finish(name: str, seed: int) -> np.ndarray:
    return np.linspace(0.5, 0.2, CALLS) + noise(name, seed, 0.001)


TABLES = [
    claims.history_claims,
    claims.vit_claims,
    claims.residual_claims,
    claims.beginning_claims,
    claims.modes_claims,
]


def verdicts(table, networks) -> list[str]:
    return [claim.verdict for claim in table(networks)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_a_decade_as_the_source_describes_it_agrees(table):
    found = table(decade(as_they_say, start=start))
    assert {claim.what: claim.verdict for claim in found} == {claim.what: "agrees" for claim in found}


@pytest.mark.parametrize("table", TABLES[:4], ids=lambda table: table.__name__)
def test_its_contrary_disagrees(table):
    found = table(decade(upside_down, start=finish))
    verdicts = {claim.what: claim.verdict for claim in found}
    # A distance and a range do not know up from down; a trained network can still be below such a start.
    open_rows = ("GoogLeNet's range", "distance from AlexNet", "trained VGG16 less its start")
    told = {what: v for what, v in verdicts.items() if not any(part in what for part in open_rows)}
    assert told == dict.fromkeys(told, "disagrees")


@pytest.mark.parametrize("table", [claims.vit_claims, claims.residual_claims], ids=lambda table: table.__name__)
def test_seeds_that_disagree_leave_a_sentence_open(table):
    def torn(name: str, seed: int) -> np.ndarray:
        return as_they_say(name, seed) if seed else upside_down(name, seed)

    assert "undecided" in verdicts(table, decade(torn))


def test_the_pools_are_asked_apart():
    found = claims.vit_claims(decade(as_they_say, trailing=upside_down))
    assert [claim.verdict for claim in found] == ["disagrees", "agrees"]
    assert ["trailing" in claim.what for claim in found] == [True, False]


def test_one_vit_above_another_network_is_enough_against_it():
    found = claims.vit_claims(decade(lambda name, seed: as_they_say(name, seed) + 0.6 * (name == "vit_4")))
    assert [claim.verdict for claim in found] == ["disagrees"] * 2


def test_a_gap_that_is_there_without_skips_is_not_theirs():
    def same(name: str, seed: int) -> np.ndarray:
        return as_they_say("resnet18" if name == "resnet18_no_skips" else name, seed)

    found = {claim.what: claim for claim in claims.residual_claims(decade(same))}
    assert found["that gap, with skips less without"].ours == pytest.approx(0, abs=1e-12)
    assert found["after the addition less inside the block, ResNet18"].verdict == "agrees"


def test_depth_rows():
    rising = np.linspace(-0.1, 0.1, CALLS)
    changes = {"alexnet": 0.1, "resnet34": 0.2, "vit_4": rising}

    def scores(name: str, seed: int) -> np.ndarray:
        return 0.5 + changes.get(name, 0.0) + noise(name, seed, 0.002)

    assert verdicts(claims.depth_claims, decade(scores)) == ["agrees"] * 4
    changes.update({"alexnet": -0.1, "resnet34": -0.2, "vit_4": -rising, "vgg16": 0.1})
    assert verdicts(claims.depth_claims, decade(scores)) == ["disagrees"] * 4


def test_networks_without_labels_and_without_skips_are_no_architectures():
    networks = decade(as_they_say, start=start)
    low = {s: network("resnet18 simclr", s, np.full(CALLS, 0.1)) for s in range(3)}
    more = networks | {"resnet18 simclr": low}
    for table in (claims.history_claims, claims.vit_claims):
        assert [claim.ours for claim in table(more)] == [claim.ours for claim in table(networks)]


def test_dead_calls_are_left_out():
    def dead(name: str, seed: int) -> np.ndarray:
        scores = as_they_say(name, seed)
        return np.insert(scores, 1, np.nan) if name == "alexnet" else scores

    one, other = (claims.history_claims(decade(scores)) for scores in (as_they_say, dead))
    assert [claim.ours for claim in one] == pytest.approx([claim.ours for claim in other])


def test_a_rise_that_training_makes_and_one_that_was_there_before():
    def rising(name: str, seed: int) -> np.ndarray:
        return 0.5 + RISING[name] + noise(name, seed, 1e-3)

    found = claims.trend_claims(decade(rising, start=finish))
    assert [each.verdict for each in found] == ["held"] * 5, found
    assert all(each.seen and each.kind == "own" for each in found)
    made, *_ = claims.trend_claims(decade(as_they_say, start=rising))
    assert made.ours < 0 and made.verdict == "failed"


def test_a_rise_of_the_gates_alone_is_found():
    def level(name: str, seed: int) -> np.ndarray:
        scores = 0.6 + noise(name, seed)
        scores[::2] += RISING[name]  # the gates
        return scores

    networks = decade(level, start=finish)
    for seeds in networks.values():
        for each in seeds.values():
            for found in each.signatures.values():
                found.calls[::2] = [replace(call, gate=True) for call in found.calls[::2]]
    made, family, plain, *normed = claims.trend_claims(networks)
    assert made.verdict == family.verdict == "held" and plain.verdict != "held" and abs(plain.ours) < 0.5
    assert all(each.verdict != "held" for each in normed)


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_a_network_are_one_family(seed):
    pairs = np.random.default_rng(seed).standard_normal((7, 2)) + np.arange(7)[:, None] / 3
    alone = claims.rank_correlation(pairs)
    copied = claims.rank_correlation(np.repeat(pairs, 3, axis=0), np.repeat(list("abcdefg"), 3))
    np.testing.assert_allclose(copied, alone, rtol=0, atol=1e-12)
    careless = claims.rank_correlation(np.repeat(pairs, 3, axis=0))
    assert careless.mean == pytest.approx(alone.mean) and careless.low > alone.low
