"""What may be compared: settings that differ, folders, bad files, dead networks, and the kind of weights."""

import numpy as np
import pytest
from made_signatures import made, published, random_scores

from affscore.zoo.models import load_model
from affscore_study.suite.comparable import (
    collect,
    conditions,
    load_signatures,
    names_of,
    weights_kind,
)
from affscore_study.suite.compare import (
    companion_correlations,
    density_curves,
    history,
    statistics,
)
from affscore_study.suite.distances import distances


@pytest.mark.parametrize(("change", "key"), [
    ({"pool": "trailing"}, "pool"),
    ({"covariance": "empirical"}, "covariance"),
    ({"size": 128}, "batch size"),
    ({"data": {"dataset": "cifar10"}}, "data"),
    ({"data": "cifar10"}, "data"),
    ({"calls": "layer3.*"}, "calls"),
])  # fmt: skip
def test_signatures_of_different_settings_are_refused(change, key):
    signatures = {"a": made(random_scores(0, 1, 5)), "b": made(random_scores(1, 1, 5), **change)}
    assert conditions(signatures["a"])[key] != conditions(signatures["b"])[key]
    for function in (distances, statistics, history, density_curves, companion_correlations):
        with pytest.raises(ValueError, match=f"differ in their {key}: .*not comparable; pick those of one {key}"):
            function(signatures)
    assert collect(signatures, without=key) == signatures


def test_other_things_in_place_of_signatures_are_named():
    with pytest.raises(TypeError, match="signatures is a list; it should be a mapping"):
        statistics([made([[0.5]])])
    with pytest.raises(TypeError, match=r"signatures\['a'\] is a ndarray; it should be a Signature"):
        statistics({"a": np.ones(3)})
    with pytest.raises(ValueError, match="signatures holds 1; it should hold at least 2"):
        distances({"a": made([[0.5]])})
    with pytest.raises(ValueError, match="signatures holds 0"):
        statistics({})


def test_folders_are_read_and_their_bad_files_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_signatures(tmp_path / "none")
    with pytest.raises(ValueError, match=r"holds no signature \(0 JSON files"):
        load_signatures(tmp_path)
    two = published("vgg11", random_scores(1, 2, 5))
    published("alexnet", random_scores(0, 2, 4)).save(tmp_path / "1.json")
    two.save(tmp_path / "2.json")
    (tmp_path / "3.json").write_text((tmp_path / "1.json").read_text()[:-40])
    found, unreadable = load_signatures(tmp_path)
    assert list(found) == ["alexnet", "vgg11"] and found["vgg11"].scores.tolist() == two.scores.tolist()
    assert [item["file"] for item in unreadable] == ["3.json"] and "not complete JSON" in unreadable[0]["reason"]


def test_unfinished_file_with_a_final_name_is_left_out(tmp_path):
    """An unfinished file under the name of a finished one is left out, with the reason."""
    made(random_scores(0, 2, 5), unfinished_of=40).save(tmp_path / "a.json")
    made(random_scores(0, 2, 5)).save(tmp_path / "b.json")
    found, unreadable = load_signatures(tmp_path)
    reason = "it is unfinished: 2 of 40 batches; run its suite again to finish it."
    assert len(found) == 1 and unreadable == [{"file": "a.json", "reason": reason}]


@pytest.mark.parametrize(("files", "names"), [
    ({"1": "alexnet", "2": "alexnet random", "3": "vgg11"}, ["alexnet pretrained", "alexnet random", "vgg11"]),
    ({"1": "vgg13", "2": "vgg13", "3": "vgg11"}, ["1", "2", "vgg11"]),
    ({"a": "z", "y": "m", "z": "m"}, ["z pretrained", "y", "z.json"]),  # a file with the name of another's model
])  # fmt: skip
def test_names_stay_short_and_different(files, names):
    signatures = {}
    for file, model in files.items():
        model, _, kind = model.partition(" ")
        signatures[file] = published(model, [0.5], kind or "pretrained")
    assert names_of(signatures) == names


@pytest.mark.parametrize(("provenance", "kind"), [
    ({"weights": {"kind": "random", "weights": "random initialisation, seed 1"}}, "random"),
    ({"weights": {"kind": "pretrained", "weights": "pretrained, someone/vit-random-erasing"}}, "pretrained"),
    ({"weights": {"kind": "file", "weights": "from imagenet_finetuned.pth"}}, "unknown"),
    ({"weights": "from random_crop_resnet.pth"}, "unknown"),
    ({"kind": "random", "weights": "imagenet"}, "random"),
    ({}, "unknown"),
    ({"weights": "trained on Fashion-MNIST", "pretrained": True}, "pretrained"),
    ({"weights": "ImageNet statistics, nothing learnt", "pretrained": False}, "random"),
])  # fmt: skip
def test_weights_are_told_apart(provenance, kind):
    assert weights_kind(made([0.5], **provenance)) == kind


def test_weights_of_real_models_are_told_apart():
    for name, weights, kind in (("efficientnet_lite0", None, "pretrained"), ("resnet18", "random", "random")):
        net = load_model(name, weights=weights)
        for provenance in (net.provenance, {"weights": net.provenance}):
            assert weights_kind(made([0.5], **provenance)) == kind
