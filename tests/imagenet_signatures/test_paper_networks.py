"""The trained networks of the paper: what is stored, what it says, and a part that is computed again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from affscore import Signature
from affscore_book.imagenet_signatures import paper_networks as module
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
FILES = sorted((FOLDER / "paper").glob("*.*.*.*.json"))
PLACES = {"resnet152": 50, "resnet50": 16}


@pytest.fixture(scope="module")
def script():
    """book/data/imagenet_signatures/make_paper.py as a module."""
    spec = importlib.util.spec_from_file_location("paper_script", FOLDER / "make_paper.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    yield found
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def pairs():
    return module.paper_networks(FOLDER)


@pytest.fixture(scope="module")
def draws():
    return [module.paper_networks(FOLDER, draw) for draw in range(module.CROP_DRAWS)]


def test_a_part_computed_again_agrees_with_what_is_stored(script):
    np.testing.assert_allclose(script.small(), json.loads((FOLDER / "paper" / "small.json").read_text()), atol=1e-3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stored_files_are_of_the_script_and_say_where_they_come_from(path, script):
    name, state, data, draw = path.stem.split(".")
    assert (name, state, data, int(draw)) in script.ORDER
    found = Signature.load(path)
    about = found.provenance
    assert found.batch_sizes == [script.IMAGES] and np.isfinite(found.scores).all() and found.companions
    assert about["pretrained"] == (state in ("trained", "renormed")) and about["licence"]
    assert about["data"]["dataset"] == data and about["model"] == name
    assert (len(about["sha256"]) == 64) if about["pretrained"] else (about["seed"] == int(draw))
    assert np.all(found.scores < found.companions["twin"] + 0.01)


def test_trained_and_start_have_the_same_calls_and_as_many_images(pairs):
    assert list(pairs) == list(PAPER_NETWORKS)
    for name, (trained, start) in pairs.items():
        assert [call.name for call in trained.calls] == [call.name for call in start.calls]
        assert trained.batch_sizes == start.batch_sizes
        assert trained.provenance["pretrained"] and not start.provenance["pretrained"]
        assert ("batch norm set" in start.provenance["weights"]) == ("resnet" in name)


def test_everything_of_the_plan_is_stored(script):
    stored = {tuple(path.stem.split(".")) for path in FILES}
    assert stored == {(name, state, data, str(draw)) for name, state, data, draw in script.ORDER}


def test_draws_are_of_other_crops(draws):
    for name in PAPER_NETWORKS:
        first, *others = (each[name].trained.scores for each in draws)
        assert all(0 < abs(scores - first).max() < 0.2 for scores in others)


def test_blocks_are_split_as_the_architecture_has_them(pairs):
    for name, blocks in PLACES.items():
        inside, last = module.places(pairs[name].trained).values()
        assert last.sum() == blocks and inside.sum() == 2 * blocks
        mean = pairs[name].trained.mean
        assert module.ends(pairs[name].trained) == pytest.approx((mean[inside].mean(), mean[3::3].mean()))


def test_each_network_has_its_first_row_and_those_of_other_crops():
    table = module.other_inputs(FOLDER)
    rows = table.rows()
    assert [row["network"] for row in rows if row["crops"] == "ten photographs"] == list(PAPER_NETWORKS.values())
    assert all(row["r2"] == pytest.approx(1) for row in rows if row["crops"] == "ten photographs")
    again = (".calibrated.photographs.1", ".calibrated.photographs.2", ".random.photographs.1", ".random.photographs.2")
    assert len(rows) == sum(not path.stem.endswith(again) for path in FILES)


def test_the_input_of_each_network_is_the_one_that_fits():
    names, statistics, edges = module.input_tables(FOLDER)
    assert [row["class"] for row in names.rows() if row["input"] == "in [0, 1]"][:2] == ["Egyptian cat", "espresso"]
    for row in statistics.rows():
        assert (0.5 < row["spread ratio"] < 2) == (row["input"] == "in [0, 1]")
    assert len(edges.rows()) == 3


def test_a_signature_takes_longer_than_its_forward_pass(draws):
    table = module.time_table(draws)
    assert [row["network"] for row in table.rows()] == list(PAPER_NETWORKS.values())
    for name, row in zip(PAPER_NETWORKS, table.rows(), strict=True):
        spent = sorted(pairs[name].trained.provenance["cpu_seconds_an_image"]["forward"] for pairs in draws)
        assert row["forward pass, min"] == pytest.approx(spent[1] * 512 / 60)
        assert row["ratio"] == pytest.approx(row["signature, min"] / row["forward pass, min"]) and row["ratio"] > 1


@pytest.mark.parametrize("state", ["trained", "calibrated"])
def test_with_all_channels_the_control_of_width_repeats_the_stored_scores(state):
    found = module.equal_width_scores(FOLDER, state)
    stored = Signature.load(FOLDER / "paper" / f"resnet152.{state}.photographs.0.json")
    np.testing.assert_allclose(found["all"], stored.mean, atol=1e-3)
    np.testing.assert_allclose(found["all_twin"], stored.companions["twin"].mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("state", ["trained", "calibrated"])
def test_calls_of_64_channels_score_the_same_with_64_of_them(state):
    found = module.equal_width_scores(FOLDER, state)
    calls = Signature.load(FOLDER / "paper" / f"resnet152.{state}.photographs.0.json").calls
    narrow = [call.shape[0] == 64 for call in calls]
    assert sum(narrow) == 7
    np.testing.assert_allclose(found["few"][narrow], found["all"][narrow], atol=1e-4)
    assert abs(found["few"] - found["all"])[~np.array(narrow)].max() > 0.01


def test_the_difference_is_that_of_the_two_means():
    rows = module.width_table(FOLDER).rows()
    assert [(row["ResNet-152"], row["channels"]) for row in rows] == [
        (state, kept) for state in ("before training", "trained") for kept in ("all", "64")
    ]
    assert all(row["difference"] == pytest.approx(row["after"] - row["inside"]) for row in rows)
    ends = module.ends(module.paper_networks(FOLDER)["resnet152"].trained)
    assert (rows[2]["inside"], rows[2]["after"]) == pytest.approx(ends, abs=1e-3)
