"""Batches, seeds, pictures and tasks: planted changes are found in their rows."""

import math

import numpy as np
import pytest
from planted_decade import CALLS, decade, network, verdicts

from affscore_book.decade.collection import on_other_pictures
from affscore_book.decade.equal import Equal
from affscore_book.kit.statistics import leaving_out
from affscore_study.decade import robustness
from affscore_study.decade.claims import DISTANCES


def noise(seed: int, size: float = 0.01) -> np.ndarray:
    return size * np.random.default_rng(seed).normal(size=CALLS)


def further(change: float = 0.0, std: float = 0.005, **moved: float):
    found = {}
    for i, name in enumerate(("alexnet", "vit_8", "convnext", "resnet18")):
        scores = 0.7 + noise(i, 0.1)
        sizes = {size: {"mean": scores + change * {128: 1, 512: 0.4, 1024: 0}[size] + noise(size + i, 1e-4),
                        "std": np.full(CALLS, std * (1 + 0.05 * i))} for size in (128, 512, 1024)}  # fmt: skip
        shift = dict.fromkeys(("digits", "photographs", "shuffled", "noise"), 0.0) | moved
        pictures = {
            kind: np.stack([scores + value + noise(k + i, 1e-3) for k in range(3)]) for kind, value in shift.items()
        }
        for size, values in sizes.items():
            values["unshrunk"] = values["mean"] - (0.1 if size == 128 else 0)
        maps = {f"m{k}": {"1": 0.6, "2": 0.62, "4": 0.65, "all": 0.6 + k / 10 + i / 1000} for k in (1, 2)}
        maps["last"] = {"1": 0.6, "2": 0.6, "all": 0.6}
        found[name] = {"sizes": sizes, "pictures": pictures, "maps": maps if i < 3 else {}}
    return found


def positions(value: float):
    """One position a channel has ``value`` more than the average."""
    found = {}
    for i, name in enumerate(("alexnet", "vit_8", "convnext")):
        scores = {"m1": 0.6 + value + i / 1000, "m2": 0.6 + value, "last": 0.6 + value}
        found[name] = Equal({}, scores, np.zeros((0, 0)))
    return found


def test_maps():
    table = robustness.map_table(further(), positions(0.05))
    assert [list(table[key]) for key in ("network", "maps")] == [["alexnet", "vit_8", "convnext"], [2, 2, 2]]
    assert table["flattened"] == pytest.approx([0.75, 0.751, 0.752]) and table["4 x 4"] == pytest.approx([0.65] * 3)
    assert table["one position"] == pytest.approx([0.65, 0.6505, 0.651])
    flattened, one, shrunk = robustness.map_claims(further(), positions(0.05))
    assert verdicts([flattened, one, shrunk]) == ["disagrees", "failed", "held"]
    assert flattened.ours == pytest.approx(math.sqrt(0.05 / 3), rel=0.02)  # of .1, .2 and 0
    assert one.ours == pytest.approx(0.05, abs=1e-3) and shrunk.ours == pytest.approx(0.1, abs=0.01)
    rows = robustness.map_claims(further(change=0.1), positions(0.001))  # shrinkage has the larger change
    assert verdicts(rows[1:]) == ["held", "failed"]


@pytest.mark.parametrize(("change", "std", "told"), [
    (0.01, 0.01, ["agrees", "agrees"]), (0.1, 0.01, ["disagrees", "agrees"]), (0.0, 0.04, ["agrees", "disagrees"]),
    (0.0, 0.001, ["agrees", "disagrees"]),
])  # fmt: skip
def test_batches(change, std, told):
    rows = robustness.batch_claims(further(change, std))
    assert verdicts(rows) == told
    assert "resnet18" in rows[1].what  # the largest
    assert rows[0].ours == pytest.approx(change, abs=1e-3) and rows[1].ours == pytest.approx(1.075 * std)


@pytest.mark.parametrize(("size", "verdict"), [(0.002, "agrees"), (0.1, "disagrees")])
def test_seeds(size, verdict):
    for row in robustness.seed_claims(decade(lambda name, seed: 0.7 + noise(seed, size), seeds=9)):
        assert row.verdict == verdict and "9 seeds" in row.what
        assert row.ours == pytest.approx(np.sqrt(2) * size, rel=0.4)


def test_pictures_near_and_far():
    near = robustness.data_claims(further(digits=0.05, photographs=0.05, shuffled=0.1, noise=0.3))
    assert verdicts(near) == ["agrees", "agrees", "held"]
    far = robustness.data_claims(further(digits=0.3, photographs=0.3, shuffled=0.3, noise=0.1))
    assert verdicts(far) == ["disagrees", "disagrees", "failed"]


def test_other_pictures_are_a_row_of_the_ladder():
    give = on_other_pictures(further(digits=0.3, photographs=-0.3))
    networks = decade(lambda name, seed: 0.7 + noise(seed, 0.01))
    found = [rows for seeds in networks.values() if (rows := give(seeds[0]))]
    assert len(found) == 4 and give(networks["vgg11"][0]) == []
    for own, digits, photographs in found:
        assert np.mean(digits - own) == pytest.approx(0.3, abs=0.02)
        assert np.mean(photographs - own) == pytest.approx(-0.3, abs=0.02)


def tasks(between: float, within: float, foreign: float = 0.1):
    others = ("alexnet", "vgg11", "vgg13", "vgg16", "convnext")
    found = {name: {0: network(name, 0, 0.7 + noise(50 + i, foreign))} for i, name in enumerate(others)}
    for t, name in enumerate(("resnet18", "resnet18 rotation", "resnet18 simclr", "resnet18 autoencoder")):
        found[name] = {s: network(name, s, 0.7 + noise(t, between) + noise(100 * t + s, within))
                       for s in range(3 if t else 9)}  # fmt: skip
    return found


@pytest.mark.parametrize(("between", "within", "told"), [
    (0.1, 0.002, ["agrees", "held", "disagrees"]), (0.0, 0.1, ["disagrees", "not shown", "agrees"]),
])  # fmt: skip
def test_tasks_that_a_tree_finds_and_tasks_that_it_does_not(between, within, told):
    """Seeds that differ much make two tasks differ, too: that is no change by the task."""
    rows = robustness.task_claims(tasks(between, within), draws=100)
    assert verdicts(rows) == told and "12 networks" in rows[0].what and (rows[0].ours == 1) == (between > within)
    assert rows[2].ours == pytest.approx(math.sqrt(2) * between, rel=0.5, abs=0.01)


def test_the_nearest_architecture():
    """Tasks that change little keep their architecture's signature nearest, those that change much do not."""
    near = robustness.retrieval_claims(tasks(0.01, 0.002, 0.3))
    assert [row.ours for row in near] == [1, 1] and {row.verdict for row in near} == {"not shown"}  # no interval
    far = robustness.retrieval_claims(tasks(0.3, 0.002, 0.02))
    assert all(row.ours < 0.5 and row.verdict != "held" for row in far)
    for of in DISTANCES.values():
        found = robustness.nearest_architectures(tasks(0.01, 0.002, 0.3), of)
        assert found["simclr"] == ["resnet18"] * 3 and len(found["labels"]) == 3 + 5
        assert found["labels"][-3:] == ["resnet18"] * 3  # each beside another seed, not itself


def compared(networks, size: float):
    for t, seeds in enumerate(networks.values()):
        for one in seeds.values():
            for k, measure in enumerate(("cka", "norm", "sparsity_after", "sparsity_before", "entropy_change")):
                moved = size * ((-1) ** t + 0.02 * np.cos(t + k))
                one.end.companions[measure] = np.full((1, CALLS), 2.0 + moved)
    return networks


def test_concentration_needs_other_measures_to_spread_more():
    """Scores are concentrated only if the other measures spread more.

    Three seeds of a task are not three results: with equal seeds the interval is as wide as with one each.
    """
    rows = robustness.spread_of_tasks_claims(compared(tasks(0.0005, 5e-6), 0.01))
    assert [row.source for row in rows] == ["CVPR 2025, Table 3"] * 5 and rows[1].verdict == "agrees"
    spread = robustness.spread_of_tasks_claims(compared(tasks(0.05, 5e-4), 1e-5))
    assert all(row.ours < 0 and row.verdict != "agrees" for row in spread[1:3])
    low, high = robustness.spread_of_tasks_claims(compared(tasks(0.05, 1e-6), 0.01))[0].interval
    groups = robustness.taught(tasks(0.05, 1e-6))
    means = np.array([networks[0].scores.mean() for networks in groups.values()])
    alone = leaving_out(lambda kept: float(np.repeat(means[kept], 3).std(ddof=1)), len(means))
    assert (low, high) == pytest.approx((alone.low, alone.high), abs=1e-4)
