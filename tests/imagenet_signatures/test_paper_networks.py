"""The trained networks of the paper: what is stored, what it says, and a part that is computed again."""

import json
from pathlib import Path

import numpy as np
import pytest
from scripts import load_script

from affscore import Signature
from affscore_book.imagenet_signatures.calls import places
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, paper_networks
from affscore_study.imagenet_signatures import paper_tables as module
from affscore_study.imagenet_signatures.trained import ends

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
FILES = sorted((FOLDER / "paper").glob("*.*.*.*.json"))
PLACES = {"resnet152": 50, "resnet50": 16}


@pytest.fixture(scope="module")
def script():
    return load_script(FOLDER / "make_paper.py")


@pytest.fixture(scope="module")
def draws():
    return [paper_networks(FOLDER, draw) for draw in range(module.CROP_DRAWS)]


def test_a_part_computed_again_agrees_with_what_is_stored(script):
    np.testing.assert_allclose(script.small(), json.loads((FOLDER / "paper" / "small.json").read_text()), atol=1e-3)


@pytest.mark.parametrize("path", FILES)
def test_stored_files_name_their_origin(path, script):
    """The stored files are those of the script and say where they come from."""
    name, state, data, draw = path.stem.split(".")
    found = Signature.load(path)
    about = found.provenance
    assert found.batch_sizes == [script.IMAGES] and np.isfinite(found.scores).all() and found.companions
    assert about["pretrained"] == (state in ("trained", "renormed")) and about["licence"]
    assert about["data"]["dataset"] == data and about["model"] == name
    assert (len(about["sha256"]) == 64) if about["pretrained"] else (about["seed"] == int(draw))
    assert np.all(found.scores < found.companions["twin"] + 0.01)


def test_plan_is_stored_in_full_and_draws_differ(script, draws):
    """Everything in the plan is stored, and each draw is of other crops."""
    stored = {tuple(path.stem.split(".")) for path in FILES}
    assert stored == {(name, state, data, str(draw)) for name, state, data, draw in script.ORDER}
    for name in PAPER_NETWORKS:
        first, *others = (each[name].trained.scores for each in draws)
        assert all(0 < abs(scores - first).max() < 0.2 for scores in others)
        trained, start = draws[0][name]
        assert [call.name for call in trained.calls] == [call.name for call in start.calls]


def test_blocks_are_split_as_the_architecture_has_them(draws):
    for name, blocks in PLACES.items():
        trained = draws[0][name].trained
        inside, last = places(trained).values()
        assert last.sum() == blocks and inside.sum() == 2 * blocks
        assert ends(trained) == pytest.approx((trained.mean[inside].mean(), trained.mean[3::3].mean()))


def test_each_network_has_its_first_row_and_those_of_other_crops():
    rows = module.other_inputs(FOLDER).rows()
    own = {row["network"]: row["r2"] for row in rows if row["crops"] == "ten photographs"}
    assert own == pytest.approx(dict.fromkeys(PAPER_NETWORKS.values(), 1))
    again = (".calibrated.photographs.1", ".calibrated.photographs.2", ".random.photographs.1", ".random.photographs.2")
    assert len(rows) == sum(not path.stem.endswith(again) for path in FILES)


def test_input_fits_each_network_and_signature_takes_longer(draws):
    """Each network has the input that fits, and a signature takes longer than a forward pass."""
    _, statistics, _ = module.input_tables(FOLDER)
    for row in statistics.rows():
        assert (0.5 < row["spread ratio"] < 2) == (row["input"] == "in [0, 1]")
    assert all(row["ratio"] > 1 for row in module.time_table(draws).rows())


@pytest.mark.parametrize("state", ["trained", "calibrated"])
def test_width_control_changes_wide_calls_only(state):
    """The control of width repeats the stored scores and changes only the wide calls."""
    found = module.equal_width_scores(FOLDER, state)
    stored = Signature.load(FOLDER / "paper" / f"resnet152.{state}.photographs.0.json")
    np.testing.assert_allclose(found["all"], stored.mean, atol=1e-3)
    np.testing.assert_allclose(found["all_twin"], stored.companions["twin"].mean(axis=0), atol=1e-3)
    narrow = np.array([call.shape[0] == 64 for call in stored.calls])
    assert sum(narrow) == 7
    np.testing.assert_allclose(found["few"][narrow], found["all"][narrow], atol=1e-4)
    assert abs(found["few"] - found["all"])[~narrow].max() > 0.01
    shown = {"trained": "trained", "calibrated": "before training"}[state]
    row = next(row for row in module.width_table(FOLDER).rows() if row["ResNet-152"] == shown)  # of all channels
    assert (row["inside"], row["after"]) == pytest.approx(ends(stored), abs=1e-3)
    assert row["difference"] == pytest.approx(row["after"] - row["inside"])
