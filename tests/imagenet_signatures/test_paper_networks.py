"""The trained networks of the paper: what is stored, what it says, and a part that is computed again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from affscore import Signature
from affscore.suite.compare import companion_correlations
from affscore_book.imagenet_signatures import paper_networks as module
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, Pair

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


def flat(signature, inside, last):
    """A signature like this one, with one score inside the blocks and another behind the additions."""
    scores = np.where(module.places(signature)["last in its block"], last, inside)
    scores = scores + 1e-9 * np.arange(len(scores))  # a test of modes wants different numbers
    return Signature(signature.calls, scores[None], companions=signature.companions, batch_sizes=[64])


def seen(pairs, here):
    (row,) = [row for row in module.seen_in([pairs, pairs]).rows() if row["here"] == here]
    return row["seen"], row["number"]


def test_blocks_can_be_without_a_separation(pairs):
    def made(gap):
        return pairs | {"resnet152": Pair(flat(pairs["resnet152"].trained, 0.8, 0.8 + gap), pairs["resnet152"].start)}

    what = "ResNet-152: after the additions − inside"
    assert seen(made(0.1), what) == ("seen", pytest.approx(0.1))
    assert seen(made(0.0), what)[0] == seen(made(-0.1), what)[0] == "not seen"
    verdicts = [module.appendix_d_claims([made(gap), made(gap)])[1].verdict for gap in (0.1, 0.0)]
    assert verdicts == ["agrees", "disagrees"]
    mixed = [made(0.1), made(0.0)]
    assert module.appendix_d_claims(mixed)[1].verdict == "undecided"
    (row,) = [row for row in module.seen_in(mixed).rows() if row["here"] == what]
    assert row["seen"] == "in some draws" and row["lowest"] == pytest.approx(0, abs=1e-6)
    assert row["highest"] == pytest.approx(0.1)


def test_a_network_can_be_far_from_1_behind_its_additions(pairs):
    def made(last):
        return pairs | {"resnet152": Pair(flat(pairs["resnet152"].trained, 0.5, last), pairs["resnet152"].start)}

    what = "ResNet-152: after the additions"
    for last, looked, said in ((0.97, "seen", "agrees"), (0.9, "not seen", "disagrees")):
        assert seen(made(last), what)[0] == looked
        claim = module.appendix_d_claims([made(last), made(last)])[0]
        assert claim.verdict == said and claim.interval is None, "draws of crops are no networks"
    assert module.appendix_d_claims([made(0.97), made(0.9)])[0].verdict == "undecided"


def test_a_deeper_network_can_be_farther_from_1(pairs):
    deep, less = (pairs[name].trained for name in ("resnet152", "resnet50"))
    turned = pairs | {
        "resnet152": Pair(flat(deep, 0.5, 0.8), pairs["resnet152"].start),
        "resnet50": Pair(flat(less, 0.5, 0.9), pairs["resnet50"].start),
    }
    assert seen(turned, "after the additions, ResNet-152 − ResNet-50") == ("not seen", pytest.approx(-0.1))


def test_training_can_make_a_network_more_linear(pairs):
    turned = pairs | {"vgg16": Pair(*reversed(pairs["vgg16"]))}
    assert seen(turned, "mean score, VGG-16, trained − before")[0] == "not seen"
    assert seen(turned, "rank correlation of call and score, VGG-16 before")[0] == "not seen"
    assert seen(pairs, "mean score, VGG-16, trained − before")[0] == "seen"


def test_scores_of_one_kind_have_one_mode(pairs):
    what = "ResNet-152: p-value of one mode (Silverman)"
    deep = pairs["resnet152"].trained
    noise = np.random.default_rng(0).normal(scale=0.01, size=deep.scores.shape)
    for last, verdict in ((0.9, "seen"), (0.5, "not seen")):
        made = flat(deep, 0.5, last)
        made.scores[:] += noise
        assert seen(pairs | {"resnet152": Pair(made, deep)}, what)[0] == verdict


def test_correlations_are_judged_by_the_printed_ones(pairs, monkeypatch):
    own = companion_correlations({"vgg16": pairs["vgg16"].trained}).row("vgg16")
    near = tuple(own[measure] + 0.09 for measure in module.HEADINGS.values())
    far = tuple(value + 0.02 for value in near)
    for printed, verdict in ((near, "seen"), (far, "not seen")):
        monkeypatch.setitem(module.TABLE_2, "vgg16", printed)
        rows = [row for row in module.table_2_seen([pairs]).rows() if row["network"] == "VGG-16"]
        assert {row["seen"] for row in rows} == {verdict} and len(rows) == 5


def test_each_network_has_its_first_row_and_those_of_other_crops():
    table = module.other_inputs(FOLDER)
    rows = table.rows()
    assert [row["network"] for row in rows if row["crops"] == "ten photographs"] == list(PAPER_NETWORKS.values())
    assert all(row["r2"] == pytest.approx(1) for row in rows if row["crops"] == "ten photographs")
    again = (".calibrated.photographs.1", ".calibrated.photographs.2", ".random.photographs.1", ".random.photographs.2")
    assert len(rows) == sum(not path.stem.endswith(again) for path in FILES)
    assert len(module.time_table(module.paper_networks(FOLDER)).rows()) == 3


def test_the_input_of_each_network_is_the_one_that_fits():
    names, statistics, edges = module.input_tables(FOLDER)
    assert [row["class"] for row in names.rows() if row["input"] == "in [0, 1]"][:2] == ["Egyptian cat", "espresso"]
    for row in statistics.rows():
        assert (0.5 < row["spread ratio"] < 2) == (row["input"] == "in [0, 1]")
    assert len(edges.rows()) == 3
