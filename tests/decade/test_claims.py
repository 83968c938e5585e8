"""Claims agree with a decade that is as the source says, disagree with its contrary, and are open in between."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from planted import CALLS, as_they_say, decade, finish, network, noise, signature, start, upside_down

from affscore_book.decade import claims, history
from affscore_book.decade.collection import END, START
from affscore_book.decade.modes import modes_power


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


def beginnings(networks):
    return claims.beginning_claims(followed(networks), WIDE)


TABLES = [history.vit_claims, claims.residual_claims, beginnings]


def verdicts(table, networks) -> list[str]:
    return [claim.verdict for claim in table(networks)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_a_decade_as_the_source_describes_it_agrees(table):
    found = [claim for claim in table(decade(as_they_say, start=start)) if not claim.needs]
    assert {claim.what for claim in found if claim.verdict not in ("agrees", "held")} == set()


@pytest.mark.parametrize("table", TABLES[:2], ids=lambda table: table.__name__)
def test_its_contrary_disagrees(table):
    found = [claim for claim in table(decade(upside_down, start=finish)) if not claim.needs]
    assert {claim.what: claim.verdict for claim in found} == {claim.what: "disagrees" for claim in found}


@pytest.mark.parametrize("table", TABLES[:2], ids=lambda table: table.__name__)
def test_a_difference_below_the_floor_is_none(table):
    """All scores are moved together to a hundredth of their size: their order stays, and nothing counts."""
    found = table(decade(lambda name, seed: 0.6 + (as_they_say(name, seed) - 0.6) / 100))
    assert "agrees" not in {claim.verdict for claim in found}


@pytest.mark.parametrize("table", TABLES[:2], ids=lambda table: table.__name__)
def test_seeds_that_disagree_leave_a_sentence_open(table):
    def torn(name: str, seed: int) -> np.ndarray:
        return as_they_say(name, seed) if seed else upside_down(name, seed)

    assert "undecided" in verdicts(table, decade(torn))


def test_a_gap_that_is_there_without_skips_is_not_theirs():
    def same(name: str, seed: int) -> np.ndarray:
        return as_they_say("resnet18" if name == "resnet18_no_skips" else name, seed)

    theirs, gap, deeper = claims.residual_claims(decade(same))
    assert theirs.ours == pytest.approx(0, abs=1e-12) and "without" in theirs.what and theirs.verdict != "agrees"
    assert gap.verdict == "agrees"
    assert "ResNet18" in deeper.what  # as wide as ResNet34; ResNet10 is wider


def test_depth_rows():
    rising = np.linspace(-0.1, 0.1, CALLS)
    steep = np.insert(np.zeros(CALLS - 1), CALLS - 1, 0.3)
    changes = {"vgg11": 0.1, "vgg16": 0.1, "resnet34": 0.2, "vit_8": steep}

    def scores(name: str, seed: int) -> np.ndarray:
        return 0.5 + changes.get(name, 0.0) + noise(name, seed, 0.002)

    told = ["agrees"] * 3 + ["not run here"] + ["agrees"] * 2
    assert verdicts(claims.depth_claims, decade(scores)) == told
    changes.update({"vgg11": -0.1, "resnet34": -0.2, "vit_8": rising})
    told = ["disagrees"] * 3 + ["not run here"] + ["disagrees"] * 2
    assert verdicts(claims.depth_claims, decade(scores)) == told


def test_modes_are_not_denied_by_a_test_that_would_not_find_them():
    """Twelve and more calls of one mode each: the power is too small, and the shares of 0 say nothing."""
    for claim in claims.modes_claims(decade(as_they_say, seeds=2), samples=10):
        assert claim.verdict == "undecided" and "power of the test" in claim.what and math.isnan(claim.interval[0])
    assert modes_power(9, 4.0, 12) < modes_power(60, 6.0, 12) and modes_power(60, 6.0, 12) >= 0.8
    assert modes_power(20, 0.0, 20) < 0.3  # one mode


@pytest.mark.parametrize(("power", "verdict"), [(0.9, "disagrees"), (0.7, "undecided")])
def test_modes_that_half_of_the_networks_have_count_where_the_test_is_strong(power, verdict):
    def many(name: str, seed: int) -> np.ndarray:
        apart = 0.5 if sum(map(ord, name)) % 2 else 0.0
        return np.where(np.arange(61) < 30, 0.4, 0.4 + apart) + np.random.default_rng(len(name)).normal(0, 0.03, 61)

    def strong(n: int, apart: float, samples: int) -> float:
        return power

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "modes_power", strong)
        residual, others = claims.modes_claims(decade(many, seeds=2))
    assert others.verdict == verdict and 0.2 < others.ours < 0.8 and f"{power}" in others.what
    assert 0 <= residual.ours <= 1


def test_training_that_bends_all_the_way_is_monotone():
    def falling(name: str, seed: int) -> np.ndarray:
        return np.linspace(0.9, 0.8, CALLS) - (0.1 + 0.01 * seed) * np.arange(CALLS) / CALLS

    networks = decade(falling, start=lambda name, seed: np.linspace(0.9, 0.8, CALLS))
    for seed, each in networks["vgg11"].items():
        networks["vgg11"][seed] = replace(each, validation={START: 0.1, END: 0.9})
    along, calls = claims.beginning_claims(networks, WIDE)[-2:]
    assert (
        along.ours == 0 and "agrees" not in (along.verdict, calls.verdict) and calls.ours == pytest.approx(0, abs=1e-12)
    )


def test_the_turn_of_a_sequence():
    random = np.random.default_rng(0)
    for _ in range(20):
        values = random.normal(size=9)
        pairs = [(values[j] - values[i]) for i in range(9) for j in range(i, 9)]
        assert claims.turn(values) == pytest.approx(min(max(pairs), -min(pairs)))
        assert claims.turn(np.sort(values)) == claims.turn(-np.sort(values)) == 0


def test_the_width_of_the_start_is_beside_it():
    rows = claims.beginning_claims(followed(decade(as_they_say, start=finish)), WIDE)
    assert [row.verdict for row in rows[:4]] == ["depends on the width"] * 4
    assert [round(row.ours) for row in rows[:2]] == [-1, 1]


def test_eleven_families_are_left_out_whole():
    names = list(claims.architectures(decade(as_they_say)))
    kept: list[set[str]] = []

    def seen(rows: np.ndarray) -> float:
        kept.append({names[row] for row in rows})
        return float(len(rows))

    claims.by_family(seen, names)
    gone = sorted((sorted(set(names) - some) for some in kept[1:]), key=len)
    assert len(gone) == 11 and kept[0] == set(names) and sum(map(len, gone)) == 22
    assert gone[-1] == ["vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn"]


def test_a_distance_that_sums_over_calls_grows_with_them_and_the_other_does_not():
    short, long = (
        [network(name, 0, np.full(calls, level)) for name, level in (("vgg11", 0.5), ("vgg13", 0.6))]
        for calls in (9, 36)
    )
    summed, even = claims.DISTANCES.values()
    assert summed(*long) == pytest.approx(2 * summed(*short)) and even(*long) == pytest.approx(even(*short))


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_a_network_are_one_family(seed):
    pairs = np.random.default_rng(seed).standard_normal((7, 2)) + np.arange(7)[:, None] / 3
    alone = claims.rank_correlation(pairs)
    copied = claims.rank_correlation(np.repeat(pairs, 3, axis=0), np.repeat(list("abcdefg"), 3))
    np.testing.assert_allclose(copied, alone, rtol=0, atol=1e-12)
    careless = claims.rank_correlation(np.repeat(pairs, 3, axis=0))
    assert careless.mean == pytest.approx(alone.mean) and careless.low > alone.low
