"""The history: a planted rise is found, and what it is made of decides whether it is still there without it."""

from dataclasses import replace

import numpy as np
import pytest
from planted_decade import (
    CALLS,
    RISING,
    as_they_say,
    decade,
    equal,
    finish,
    network,
    noise,
    start,
    upside_down,
    verdicts,
)
from scipy import stats

from affscore_book.decade.collection import architectures
from affscore_book.decade.networks import SETTINGS
from affscore_study.decade import history

NORMED = {name for name in SETTINGS if name not in ("alexnet", "vgg11", "vgg13", "vgg16")}


def rising(name: str, seed: int) -> np.ndarray:
    return 0.3 + 3 * RISING[name] + noise(name, seed, 1e-3)


def flat(name: str, seed: int) -> np.ndarray:
    return 0.7 + noise(name, seed, 0.05)


def test_a_decade_as_the_source_describes_it_and_its_contrary():
    assert set(verdicts(history.history_claims(decade(as_they_say, start=start)))) <= {"agrees", "undecided"}
    turned = [row for row in history.history_claims(decade(upside_down)) if "skewness" in row.what]
    assert verdicts(turned) == ["disagrees"]
    for scores, verdict in ((rising, "agrees"), (lambda name, seed: 1.2 - rising(name, seed), "disagrees")):
        networks, few = decade(scores), equal(scores)
        assert verdicts(history.rise_claims(networks, few)) == [verdict] * 2
        rows = history.era_claims(networks, few)[:-2]
        assert {row.verdict for row in rows if "range" not in row.what} == {verdict}


def test_the_rise_has_the_interval_of_its_families():
    """Beside a jackknife by hand."""
    networks = decade(flat)
    early = [name for name in architectures(networks) if SETTINGS[name].year < 2020]
    table = np.array([
        (SETTINGS[name].year, np.mean([flat(name, seed).mean() for seed in range(3)])) for name in early
    ])  # fmt: skip
    families = np.array([name.replace("googlenet", "inception_v3").rstrip("_bnv0123456789") for name in early])
    without = [stats.spearmanr(*table[families != one].T).statistic for one in np.unique(families)]
    half = stats.t.ppf(0.975, 7) * np.sqrt(7 * np.var(without))
    row = history.rise_claims(networks, equal(flat))[0]
    assert row.ours == pytest.approx(stats.spearmanr(*table.T).statistic)
    assert row.interval == pytest.approx((max(row.ours - half, -1), min(row.ours + half, 1)))


def test_deeper_networks_beside_early_ones():
    for step, verdict in ((0.2, "agrees"), (-0.2, "disagrees"), (0.01, "disagrees")):

        def level(name: str, seed: int, step: float = step) -> np.ndarray:
            return 0.6 + step * (name in history.DEEPER) + noise(name, seed, 0.002)

        whole, few = history.era_claims(decade(level), equal(level))[-2:]
        assert verdicts([whole, few]) == [verdict] * 2 and whole.ours == pytest.approx(step, abs=0.002)


def test_rise_by_channel_number_vanishes_at_equal_numbers():
    """A rise that comes from the number of channels vanishes with equal numbers."""
    assert verdicts(history.rise_claims(decade(rising), equal(flat))) == ["agrees", "undecided"]
    rows = history.trend_claims(decade(rising), equal(flat))
    assert {row.verdict for row in rows if "random channels" in row.what} == {"undecided"}


def test_the_two_starts_are_beside_each_other():
    """A rise that the raw start has and the start with norm set has not."""
    rows = {row.what: row for row in history.trend_claims(decade(rising, start=finish, raw=rising), equal(rising))}
    before = [row for what, row in rows.items() if "before training (" in what and "− before" not in what]
    assert verdicts(before) == ["held", "undecided"]
    assert before[0].ours > 0.9 > 0.5 > before[1].ours
    assert verdicts(row for what, row in rows.items() if "trained − before" in what) == ["not shown", "held"] * 2
    found = history.trend_claims(decade(rising, start=finish), equal(rising))  # without a raw start it is both
    raw, normed = ([row.ours for row in found if start in row.what] for start in ("the raw", "norm set"))
    assert raw == normed


def test_a_rise_of_the_gates_alone_is_found():
    def level(name: str, seed: int) -> np.ndarray:
        scores = 0.6 + noise(name, seed)
        scores[::2] += RISING[name]  # the gates
        return scores

    networks = decade(level, start=finish)
    for each in (each for seeds in networks.values() for each in seeds.values()):
        for found in each.signatures.values():
            found.calls[::2] = [replace(call, gate=True) for call in found.calls[::2]]
    rows = {row.what: row for row in history.trend_claims(networks, equal(level))}
    without = [row for what, row in rows.items() if "gate calls left out" in what]
    assert len(without) == 6 and all(row.verdict != "held" and abs(row.ours) < 0.6 for row in without)
    assert all(row.verdict == "held" for what, row in rows.items() if "networks with norm (" in what)


def test_a_rise_that_norm_makes_is_gone_without_it():
    def low(name: str, seed: int) -> np.ndarray:
        return (0.8 if name in NORMED else 0.4) + noise(name, seed, 0.05)

    networks, few = decade(low), equal(low)
    assert history.rise_claims(networks, few)[0].ours > 0.3
    rows = [row for row in history.trend_claims(networks, few) if "networks with norm (" in row.what]
    assert len(rows) == 3 and all(abs(row.ours) < 0.5 and row.verdict != "held" for row in rows)


def test_the_way_back_is_asked_with_equal_channels():
    def back(name: str, seed: int) -> np.ndarray:
        return (0.5 if name in ("swin", "convnext") else 0.8) + noise(name, seed)

    both = history.trend_claims(decade(back), equal(back))[-2:]
    assert verdicts(both) == ["held"] * 2 and both[0].ours == pytest.approx(-0.3, abs=0.02)
    assert verdicts(history.trend_claims(decade(back), equal(flat))[-2:]) == ["held", "undecided"]


def test_both_vits_are_asked_for_by_both_pools():
    found = history.vit_claims(decade(as_they_say, trailing=upside_down))
    assert verdicts(found) == ["depends on the pool"] * 2
    assert ["trailing" in claim.what for claim in found] == [False, True] and found[0].ours < 0 < found[1].ours
    one_above = decade(lambda name, seed: as_they_say(name, seed) + 0.6 * (name == "vit_4"))
    assert verdicts(history.vit_claims(one_above)) == ["disagrees"] * 2


def test_variants_of_a_network_are_no_architectures():
    """Networks without labels or without skip connections do not count as architectures."""
    networks = decade(as_they_say, start=start)
    low = {s: network("resnet18 simclr", s, np.full(CALLS, 0.1)) for s in range(3)}
    for table in (history.history_claims, history.vit_claims):
        found = table(networks | {"resnet18 simclr": low})
        assert [claim.ours for claim in found] == [claim.ours for claim in table(networks)]


def test_dead_calls_are_left_out():
    def dead(name: str, seed: int) -> np.ndarray:
        scores = as_they_say(name, seed)
        return np.insert(scores, 1, np.nan) if name == "alexnet" else scores

    for table in (lambda networks, few: history.history_claims(networks), history.rise_claims):
        one, other = (table(decade(scores), equal(scores)) for scores in (as_they_say, dead))
        assert [claim.ours for claim in one] == pytest.approx([claim.ours for claim in other])
