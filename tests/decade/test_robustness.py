"""Batches, seeds, pictures and tasks: planted changes are found in their rows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from planted import decade, network

from affscore_book.decade import robustness
from affscore_book.decade.variance import difference_table

CALLS = 13


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


def test_maps():
    table = robustness.map_table(further())
    assert [list(table[key]) for key in ("network", "maps")] == [["alexnet", "vit_8", "convnext"], [2, 2, 2]]
    assert table["flattened"] == pytest.approx([0.75, 0.751, 0.752]) and table["4 x 4"] == pytest.approx([0.65] * 3)
    averaged, shrunk = robustness.map_claims(further())
    assert averaged.verdict == "disagrees"
    assert averaged.ours == pytest.approx(math.sqrt(0.05 / 3), rel=0.02)  # of .1, .2 and 0
    assert shrunk.verdict == "agrees" and shrunk.ours == pytest.approx(0.1, abs=0.01)
    (wrong,) = robustness.map_claims(further(change=0.1))[1:]  # with shrinkage the planted change is the larger one
    assert wrong.verdict != "agrees"


@pytest.mark.parametrize(("change", "std", "verdicts"), [
    (0.01, 0.005, ["agrees", "agrees"]), (0.1, 0.005, ["disagrees", "agrees"]), (0.0, 0.04, ["agrees", "disagrees"]),
])  # fmt: skip
def test_batches(change, std, verdicts):
    rows = robustness.batch_claims(further(change, std))
    assert [row.verdict for row in rows] == verdicts
    assert rows[0].ours == pytest.approx(change, abs=1e-3) and rows[1].ours == pytest.approx(1.075 * std)


@pytest.mark.parametrize(("size", "verdict"), [(0.002, "agrees"), (0.1, "disagrees")])
def test_seeds(size, verdict):
    networks = decade(lambda name, seed: 0.7 + noise(seed, size), seeds=9)
    for row in robustness.seed_claims(networks):
        assert (
            row.verdict == verdict and row.ours == pytest.approx(np.sqrt(2) * size, rel=0.4) and "9 seeds" in row.what
        )


def test_pictures_near_and_far():
    near = robustness.data_claims(further(digits=0.05, photographs=0.05, shuffled=0.1, noise=0.3))
    assert [row.verdict for row in near] == ["agrees", "agrees", "held"]
    far = robustness.data_claims(further(digits=0.3, photographs=0.3, shuffled=0.3, noise=0.1))
    assert [row.verdict for row in far] == ["disagrees", "disagrees", "failed"]


def test_other_pictures_are_a_row_of_the_ladder():
    found = further(digits=0.3, photographs=-0.3)
    give = robustness.on_other_pictures(found)
    networks = decade(lambda name, seed: 0.7 + noise(seed, 0.01))
    table = difference_table(networks, {"pictures": give})
    row = table.row("pictures")
    assert row["architectures"] == 4 and row["difference"] == pytest.approx(
        math.sqrt((0.09 + 0.09 + 0.36) / 3), rel=0.05
    )
    assert give(networks["vgg11"][0]) == []


def tasks(between: float, within: float, foreign: float = 0.1):
    others = ("alexnet", "vgg11", "vgg13", "vgg16", "convnext")
    found = {name: {0: network(name, 0, 0.7 + noise(50 + i, foreign))} for i, name in enumerate(others)}
    for t, name in enumerate(("resnet18", "resnet18 rotation", "resnet18 simclr", "resnet18 autoencoder")):
        found[name] = {s: network(name, s, 0.7 + noise(t, between) + noise(100 * t + s, within))
                       for s in range(3 if t else 9)}  # fmt: skip
    return found


def test_tasks_that_a_tree_finds_and_tasks_that_it_does_not():
    clear = robustness.task_claims(tasks(0.1, 0.002), draws=100)
    assert [row.verdict for row in clear[:2]] == ["agrees", "held"] and clear[0].ours == 1
    assert "12 networks" in clear[0].what
    mixed = robustness.task_claims(tasks(0.0, 0.1), draws=100)
    assert [row.verdict for row in mixed[:2]] == ["disagrees", "failed"]


@pytest.mark.parametrize(("between", "verdict"), [(0.001, "agrees"), (0.1, "disagrees")])
def test_how_far_another_task_is(between, verdict):
    row = robustness.task_claims(tasks(between, 0.002), draws=10)[3]
    assert row.verdict == verdict and row.ours == pytest.approx(math.sqrt(2) * between, rel=0.5, abs=0.003)


@pytest.mark.parametrize(("foreign", "verdict"), [(0.3, "held"), (0.03, "failed")])
def test_another_task_beside_another_architecture(foreign, verdict):
    assert robustness.task_claims(tasks(0.1, 0.002, foreign), draws=10)[4].verdict == verdict


@pytest.mark.parametrize(("size", "verdict"), [(0.001, "agrees"), (3.0, "disagrees")])
def test_one_level_for_all_tasks(size, verdict):
    assert robustness.task_claims(tasks(size, size), draws=10)[2].verdict == verdict


def test_stored_measures_come_back_and_damaged_ones_do_not(tmp_path):
    with pytest.raises(FileNotFoundError, match="no further measures"):
        robustness.load_further(tmp_path)
    file = tmp_path / "further" / "vgg11.json"
    file.parent.mkdir()
    content = {"sizes": {"512": {"mean": [0.5, None], "std": [0.1, 0.1]}}, "pictures": {"noise": [[0.2, 0.3]]}}
    file.write_text(json.dumps(content))
    found = robustness.load_further(tmp_path)["vgg11"]
    assert found["sizes"][512]["mean"][0] == 0.5 and np.isnan(found["sizes"][512]["mean"][1])
    assert found["pictures"]["noise"].shape == (1, 2)
    file.write_text(json.dumps(content)[:-5])
    with pytest.raises(ValueError, match=r"vgg11\.json is not a complete file"):
        robustness.load_further(tmp_path)
