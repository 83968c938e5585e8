"""The stored stitched networks: read as penalties, of the committed networks, and what damages them."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from affscore_book.kit.networks import load_network
from affscore_book.kit.statistics import over_pairs, student_interval
from affscore_book.stitching.study import load_stitching

BOOK = Path(__file__).parents[2] / "book"
NETWORKS = BOOK / "data" / "networks"


def stored(**changes):
    """A file of book/data/stitching/make.py with two pairs of two networks."""

    def record(i, j, reestimated, **more):
        names = {"bottom": f"myrtle_{i}", "top": f"myrtle_{j}", "layer": "relu1", "channels": 4}
        return names | {"stitch": "full", "fit": "closed form", "reestimated": reestimated} | more

    content = {
        "settings": {"dataset": "none", "images": {"test": 10}},
        "made_with": {},
        "networks": {"myrtle_0": {"accuracy": 0.8}, "myrtle_1": {"accuracy": 0.9}},
        "tasks": {
            "closed: a": [record(0, 1, 0.85), record(0, 1, 0.45, stitch="g_relu")],
            "closed: b": [record(1, 0, 0.75), record(1, 0, 0.8, stitch="g_relu")],
            "alpha: a": [record(0, 1, 0.2, stitch="g_relu", alpha=1.0), record(0, 1, 0.3, stitch="lasso", strength=1)],
            "signature: a": [{"network": "myrtle_1", "layer": "relu1", "scores": [0.5, 0.75]}],
        },
    }
    return json.dumps(content | changes)


def test_the_stored_results_are_read_as_penalties(tmp_path):
    file = tmp_path / "stitching.json"
    file.write_text(stored(), encoding="utf-8")
    study = load_stitching(file)
    table = study.table("myrtle", "relu1", "full")
    assert np.isnan(table.diagonal()).all()
    assert table[0, 1] == pytest.approx(0) and table[1, 0] == pytest.approx(10)
    assert study.penalty("myrtle", "relu1", "full").mean == pytest.approx(5)
    assert study.penalty("myrtle", ["relu1"], "full") == pytest.approx((5, math.nan, math.nan), nan_ok=True)
    assert study.table("myrtle", "relu1", "g_relu", alpha=1.0)[0, 1] == pytest.approx(65)
    assert study.table("myrtle", "relu1", "g_relu")[0, 1] == pytest.approx(40)  # not the one with an alpha
    assert study.pairs() == {"myrtle, alpha": 1, "myrtle, closed": 2}
    assert study.stitches("myrtle", "closed form") == ["full", "g_relu", "lasso"]
    assert study.stitches("plain20", "learned") == []
    assert study.layer_scores("myrtle")[1].tolist() == [0.625] and np.isnan(study.layer_scores("myrtle")[0, 0])
    with pytest.raises(ValueError, match="no record of resnet20"):
        study.table("resnet20", "relu1", "full")
    with pytest.raises(ValueError, match="no record of myrtle"):
        study.table("myrtle", "relu1", "lasso")  # a sweep is found by its value only
    with pytest.raises(ValueError, match="no scores of resnet20"):
        study.layer_scores("resnet20")


@pytest.mark.parametrize("text", ["", "{}", stored()[:-9], "[1]", stored(networks={"myrtle_0": 3})])
def test_a_damaged_file_is_named(text, tmp_path):
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.json is not a complete file"):
        load_stitching(tmp_path / "x.json")


def stages(costs):
    """The content of a file: three networks with penalties by layer, and scores that rise with depth."""
    layers = [f"block{1 + i}.relu1" for i in range(len(costs))]
    tasks = {}
    for i, j in itertools.permutations(range(3), 2):
        names = {"bottom": f"plain_{i}", "top": f"plain_{j}", "stitch": "g_relu", "fit": "closed form"}
        tasks[f"closed: {i} {j}"] = [
            names | {"layer": layer, "reestimated": 0.9 - cost / 100} for layer, cost in zip(layers, costs, strict=True)
        ]
    for i in range(3):
        named = [{"network": f"plain_{i}", "layer": layer, "scores": [k / 10]} for k, layer in enumerate(layers)]
        tasks[f"signature: {i}"] = named
    return stored(tasks=tasks, networks={f"plain_{i}": {"accuracy": 0.9} for i in range(3)})


def test_rank_correlation_is_over_layers_with_stage_interval(tmp_path):
    """The rank correlation is over layers, and its interval is over stages.

    The three networks are equal: an interval over networks would have no width.
    """
    file = tmp_path / "x.json"
    for costs, mean, within in (
        ((1, 2, 3, 4, 5, 6, 7, 8, 9), 1.0, [1, 1, 1]),
        ((9, 8, 7, 6, 5, 4, 3, 2, 1), -1.0, [-1, -1, -1]),
    ):
        file.write_text(stages(costs), encoding="utf-8")
        found, parts = load_stitching(file).rank_correlation("plain")
        assert found == pytest.approx((mean, math.nan, math.nan), nan_ok=True) and parts == pytest.approx(within)
    file.write_text(stages((7, 8, 9, 5, 4, 6, 3, 2, 1)), encoding="utf-8")
    found, parts = load_stitching(file).rank_correlation("plain")
    assert parts == pytest.approx([1, 0.5, -1]) and found.mean == pytest.approx(-0.8833, abs=1e-4)
    # Rank minus place of the layers that are left without the first, the second and the third stage, by hand.
    without = [1 - 6 * sum(d * d for d in gaps) / 210
               for gaps in ((4, 2, 3, -1, -3, -5), (3, 3, 3, -1, -3, -5), (3, 3, 3, -2, -4, -3))]  # fmt: skip
    spread = math.sqrt(2 / 3 * sum((value - np.mean(without)) ** 2 for value in without))
    ends = found.mean - 4.30265 * spread, found.mean + 4.30265 * spread
    assert (found.low, found.high) == pytest.approx(np.clip(ends, -1, 1), abs=1e-4)


@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_pairs_in_a_cycle_leave_out_networks(alike):
    """The interval of four pairs in a cycle leaves out networks, whatever the halves of a network share.

    A pair's value is an effect of its first network and one of its second; those of a network may be the same.
    """
    draw, truth = np.random.default_rng(0), 5.0
    held = {"networks": 0, "pairs": 0}
    for _ in range(800):
        first = draw.normal(size=4)
        second = alike * first + (1 - alike) * draw.normal(size=4)
        table = np.full((4, 4), np.nan)
        for i in range(4):
            table[i, (i + 1) % 4] = truth + first[i] + second[(i + 1) % 4]
        pairs = student_interval(table[~np.isnan(table)])
        for name, found in (("networks", over_pairs(table)), ("pairs", pairs)):
            held[name] += found.low <= truth <= found.high
    assert held["networks"] / 800 > 0.93
    assert held["pairs"] / 800 < 0.83 if alike else held["pairs"] / 800 > 0.93


def test_the_books_results_are_of_the_committed_networks():
    """Every accuracy is of all 10,000 test images, and the networks are there with theirs."""
    content = json.loads((BOOK / "data" / "stitching" / "study.json").read_text())
    for record in load_stitching(BOOK / "data" / "stitching" / "study.json").records:
        right = 10_000 * record["reestimated"]
        assert 0 <= right <= 10_000 and right == pytest.approx(round(right)) and record["bottom"] in content["networks"]
    for name, about in content["networks"].items():
        assert about["accuracy"] == load_network(NETWORKS / f"{name}.safetensors")[1]["accuracy"]
