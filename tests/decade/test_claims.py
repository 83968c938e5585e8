"""Claims agree with a decade that is as the source says, disagree with its contrary, and are open in between.

Silverman's test, on which some rest, tells two modes from one and rarely finds two where there is one.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from planted_decade import CALLS, as_they_say, decade, finish, network, noise, signature, start, upside_down, verdicts

from affscore_book.decade.collection import END, START
from affscore_study.decade import claims, history
from affscore_study.decade.modes import critical_bandwidth, modes_power, one_mode


def followed(networks):
    """VGG11 rises before it falls along its training, and the change of VGG16 along its calls has a hump."""
    for seed, each in networks["vgg11"].items():
        found = {**each.signatures, ("step 5", "spatial"): signature(np.full(CALLS, 0.97))}
        networks["vgg11"][seed] = replace(each, signatures=found, validation={START: 0.1, "step 5": 0.2, END: 0.9})
    hump = 0.3 + 0.3 * np.sin(np.linspace(0, np.pi, CALLS))
    for seed, each in networks["vgg16"].items():
        found = {**each.signatures, (END, "spatial"): signature(hump + noise("hump", seed))}
        networks["vgg16"][seed] = replace(each, signatures=found)
    return networks


WIDE = np.array([start("wide", seed) for seed in range(3)])


@pytest.mark.parametrize("table", [history.vit_claims, claims.residual_claims], ids=lambda table: table.__name__)
def test_planted_decades_agree_disagree_or_are_undecided(table):
    """A decade made as the source describes agrees, its contrary disagrees, and a mixture is undecided."""
    assert set(verdicts(table(decade(as_they_say, start=start)))) == {"agrees"}
    assert set(verdicts(table(decade(upside_down, start=finish)))) == {"disagrees"}
    # All scores moved together to a hundredth of their size: their order stays, and nothing counts.
    assert "agrees" not in verdicts(table(decade(lambda name, seed: 0.6 + (as_they_say(name, seed) - 0.6) / 100)))

    def torn(name: str, seed: int) -> np.ndarray:
        return as_they_say(name, seed) if seed else upside_down(name, seed)

    assert "undecided" in verdicts(table(decade(torn)))


def test_a_gap_that_is_there_without_skips_is_not_theirs():
    def same(name: str, seed: int) -> np.ndarray:
        return as_they_say("resnet18" if name == "resnet18_no_skips" else name, seed)

    (gap, _), (means, _) = (of(decade(same)) for of in (claims.residual_claims, claims.own_residual_claims))
    assert means.ours == pytest.approx(0, abs=1e-12) and "without" in means.what and means.verdict != "held"
    assert gap.verdict == "agrees"


def test_depth_rows():
    steep = np.insert(np.zeros(CALLS - 1), CALLS - 1, 0.3)
    changes = {"vgg11": 0.1, "vgg16": 0.1, "resnet34": 0.2, "resnet18": 0.2, "vit_8": steep}

    def scores(name: str, seed: int) -> np.ndarray:
        return 0.5 + changes.get(name, 0.0) + noise(name, seed, 0.002)

    for told in ("agrees", "disagrees"):
        assert verdicts(claims.depth_claims(decade(scores))) == [told] * 4 + ["not run here"] + [told] * 2
        changes.update({"vgg11": -0.1, "resnet34": -0.2, "resnet18": -0.2, "vit_8": np.linspace(-0.1, 0.1, CALLS)})
    changes.update({"resnet18": 0.2})
    assert verdicts(claims.depth_claims(decade(scores)))[1:3] == ["depends on the depth"] * 2


@pytest.mark.parametrize("n", [12, 33])
def test_two_clusters_have_two_modes_and_one_seldom_has(n):
    random = np.random.default_rng(n)
    values = np.concatenate([random.normal(0.6, 0.03, n // 2), random.normal(0.95, 0.02, n - n // 2)])
    assert one_mode(values, draws=100) <= 0.05
    found = [one_mode(random.normal(size=n), draws=40) for _ in range(20)]
    assert np.mean(np.array(found) <= 0.05) <= 0.15


def test_power_grows_with_sample_and_distance_of_modes():
    """The power of the test of modes grows with the sample and with the distance between the modes."""
    assert modes_power(9, 4.0, 10) < modes_power(60, 6.0, 10) and modes_power(60, 6.0, 10) >= 0.8
    assert modes_power(20, 0.0, 10) < 0.3  # one mode


def test_the_critical_bandwidth_moves_and_scales_with_the_sample():
    """Two far pairs are two points: their density at half the distance has one mode."""
    values = np.random.default_rng(0).normal(size=15)
    assert critical_bandwidth(3 * values + 7) == pytest.approx(3 * critical_bandwidth(values), rel=0.01)
    assert critical_bandwidth(np.array([0, 1e-9, 1, 1 + 1e-9])) == pytest.approx(0.5, abs=0.005)


def test_few_values_are_refused():
    with pytest.raises(ValueError, match="values has 3 different numbers"):
        one_mode(np.array([1.0, 2, 3, 3]))


def test_modes_count_where_the_test_has_power(monkeypatch):
    """Modes count where the test is strong enough to find them.

    All ResNets but one have two modes, and so do about half of the other networks.
    """
    asked: list[int] = []

    def power(n: int, apart: float, samples: int) -> float:
        asked.append(n)
        return strength

    def scores(name: str, seed: int) -> np.ndarray:
        two = name != "resnet10" if name.startswith("resnet") else sum(map(ord, name)) % 2
        return np.full(30 if name == "swin" else CALLS, 0.9 if two else 0.5)

    monkeypatch.setattr(claims, "modes_power", power)
    monkeypatch.setattr(claims, "one_mode", lambda values: 0.01 if values[0] == 0.9 else 0.3)
    for strength, verdict in ((0.9, "disagrees"), (0.7, "not shown")):
        residual, others = claims.modes_claims(decade(scores, seeds=2))
        assert residual.ours == pytest.approx(2 / 3) and 0.2 < others.ours < 0.8
        assert others.verdict == verdict and f"{strength}" in others.what
        assert math.isnan(others.interval[0]) == math.isnan(residual.interval[0]) == (strength < 0.8)
    assert asked == [CALLS] * 4


def test_claims_on_the_beginning_hold_as_described():
    """A training made as the source describes holds, and one that falls from start to end does not."""
    rows = claims.beginning_claims(followed(decade(as_they_say, start=start)), WIDE)
    assert set(verdicts(rows)) == {"agrees", "held"}

    def falling(name: str, seed: int) -> np.ndarray:
        return np.linspace(0.9, 0.8, CALLS) - (0.1 + 0.01 * seed) * np.arange(CALLS) / CALLS

    networks = decade(falling, start=lambda name, seed: np.linspace(0.9, 0.8, CALLS))
    for seed, each in networks["vgg11"].items():
        networks["vgg11"][seed] = replace(each, validation={START: 0.1, END: 0.9})
    along, calls = claims.beginning_claims(networks, WIDE)[-2:]
    assert along.ours == 0 and calls.ours == pytest.approx(0, abs=1e-12)
    assert "agrees" not in (along.verdict, calls.verdict)


def test_the_turn_of_a_sequence():
    random = np.random.default_rng(0)
    for _ in range(20):
        values = random.normal(size=9)
        pairs = [(values[j] - values[i]) for i in range(9) for j in range(i, 9)]
        assert claims.turn(values) == pytest.approx(min(max(pairs), -min(pairs)))
        assert claims.turn(np.sort(values)) == claims.turn(-np.sort(values)) == 0


def test_the_width_of_the_start_is_beside_it():
    rows = claims.beginning_claims(followed(decade(as_they_say, start=finish)), WIDE)
    assert verdicts(rows[:4]) == ["depends on the width"] * 4
    assert [round(row.ours) for row in rows[:2]] == [-1, 1]


def test_summed_distance_grows_with_calls_and_mean_does_not():
    """A distance that is a sum over calls grows with their number, and the other one does not."""
    short, long = (
        [network(name, 0, np.full(calls, level)) for name, level in (("vgg11", 0.5), ("vgg13", 0.6))]
        for calls in (9, 36)
    )
    summed, even = claims.DISTANCES.values()
    assert summed(*long) == pytest.approx(2 * summed(*short)) and even(*long) == pytest.approx(even(*short))


def test_two_modes_are_needed_only_with_skips(monkeypatch):
    """Two modes are asked for with skip connections, and none without.

    Two means that are far apart with skips are not enough: the test of modes has to find them, and to be able to.
    """
    strength, two = 0.9, {"resnet18"}

    def scores(name: str, seed: int) -> np.ndarray:
        return np.full(CALLS, 0.9 if name in two else 0.5) + 1e-3 * seed

    def said() -> str:
        return claims.skip_modes_claim(decade(scores)).verdict

    monkeypatch.setattr(claims, "modes_power", lambda n, apart, samples: strength)
    monkeypatch.setattr(claims, "one_mode", lambda values: 0.01 if values[0] > 0.8 else 0.3)
    assert said() == "not shown", "all seeds give one value"
    monkeypatch.setattr(claims, "one_mode", lambda values: 0.01 if 0.8 < values[0] < 0.9015 else 0.3)
    assert said() == "undecided"
    two.clear()
    two.add("resnet18_no_skips")
    assert claims.skip_modes_claim(decade(scores)).ours < 0
    strength = 0.5
    assert said() == "not shown", "the test is too weak"
