"""Suites: every network of a list, what is done skipped, what fails listed; and what a suite costs."""

import errno
import time

import numpy as np
import pytest
import torch
from torch import nn
from torchvision import models

from affscore import Signature, signature
from affscore.settings import Settings
from affscore.suite import suites as suite
from affscore.suite.architectures import facts
from affscore.suite.suites import (
    PAPER,
    REPRESENTATIVES,
    SUITES,
    WEIGHTS,
    SuiteError,
    estimate,
    measure_speed,
    run_suite,
)
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import LoadedModel, available_models

NAMES = ["alexnet", "vgg11", "resnet18"]
OPTIONS = {"dataset": "random", "batch_size": 6, "batches": 3, "weights": "random", "progress": False}


def small(name, *, weights=None, seed=0):
    """A small network under the name of a large one."""
    torch.manual_seed(len(name))
    return LoadedModel(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Tanh()).eval(),
        lambda image: torch.zeros(3, 8, 8), name, str(weights), {"model": name, "weights": str(weights)}, 8,
    )  # fmt: skip


@pytest.fixture
def loaded(monkeypatch):
    """The networks that were loaded, (name, weights); small ones stand in for them."""
    calls = []

    def load(name, **options):
        calls.append((name, options["weights"]))
        return small(name, **options)

    monkeypatch.setattr(suite, "load_model", load)
    return calls


def test_the_papers_architectures():
    """Section 4 counts them by family; Figure 16 has 36."""
    counted = {
        "AlexNet": 1, "VGG": 4, "GoogLeNet": 1, "Inception": 1, "ResNet": 5, "DenseNet": 4, "MNASNet": 4,
        "EfficientNet": 4, "ViT": 5, "Swin": 3, "ConvNeXt": 4,
    }  # fmt: skip
    families = [facts(name).family for name in PAPER]
    assert {family: families.count(family) for family in families} == counted
    assert len(set(PAPER)) == sum(counted.values()) == 36
    assert {facts(name).family for name in REPRESENTATIVES} == set(counted)


def test_every_network_of_a_suite_can_be_loaded_with_its_weights():
    assert set(SUITES["paper"]) | set(SUITES["lites"]) <= set(available_models())
    for name in PAPER:
        names = [entry.name for entry in models.get_model_weights(name)]
        assert WEIGHTS.get(name, "IMAGENET1K_V1") in names
        assert name not in WEIGHTS or "IMAGENET1K_V1" not in names


def test_each_signature_is_what_signature_gives(loaded, tmp_path):
    assert run_suite(NAMES, tmp_path, settings=Settings(companions=["cka"]), **OPTIONS) == []
    for name in NAMES:
        found = Signature.load(tmp_path / f"{name}.json")
        net = small(name)
        batches = load_dataset("random", preprocess=net.preprocess, batch_size=6, batches=3)
        expected = signature(net.model, batches, companions=["cka"])
        assert np.array_equal(found.scores, expected.scores)
        assert np.array_equal(found.companions["cka"], expected.companions["cka"])
        assert found.provenance["model"] == name and found.provenance["weights"]["weights"] == "random"
        assert found.provenance["data"]["dataset"] == "random"
    assert loaded == [(name, "random") for name in NAMES]


def test_what_is_done_is_skipped(loaded, tmp_path):
    run_suite(NAMES[:2], tmp_path, **OPTIONS)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    loaded.clear()
    assert run_suite(NAMES, tmp_path, **OPTIONS) == []
    assert loaded == [(NAMES[2], "random")]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_suite_goes_on_after_a_failure_and_later_does_only_that(loaded, tmp_path, monkeypatch, capsys):
    real = suite.load_model

    def load(name, **options):
        net = real(name, **options)
        if name == NAMES[1]:
            net.model.append(nn.Linear(3, 1))  # does not fit
        return net

    with monkeypatch.context() as patch:
        patch.setattr(suite, "load_model", load)
        failures = run_suite(NAMES, tmp_path, **(OPTIONS | {"progress": True}))
    assert [failure.model for failure in failures] == [NAMES[1]]
    assert "batch 0" in failures[0].reason and "RuntimeError" in failures[0].reason
    assert "0 of 3 batches are kept" in failures[0].reason
    err = capsys.readouterr().err
    assert f"affscore: {NAMES[1]} failed: " in err and err.count("3/3 ") == 2
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted([NAMES[0], NAMES[2]])
    loaded.clear()
    assert run_suite(NAMES, tmp_path, **OPTIONS) == []
    assert [name for name, _ in loaded] == [NAMES[1]]


def test_records_of_other_weights_are_not_gone_on_with(loaded, tmp_path, monkeypatch):
    real = suite.load_model

    def load(name, **options):
        net = real(name, **options)
        net.model[0].weight.data *= 2
        return net

    with monkeypatch.context() as patch:
        patch.setattr(suite, "load_model", load)
        assert run_suite(NAMES[:1], tmp_path, **OPTIONS) == []
    (tmp_path / f"{NAMES[0]}.json").unlink()
    assert "weights_sha256" in run_suite(NAMES[:1], tmp_path, **OPTIONS)[0].reason
    assert run_suite(NAMES[:1], tmp_path, restart=True, **OPTIONS) == []


def test_a_bug_in_one_network_is_named_as_such(tmp_path, monkeypatch):
    def bug(*_, **__):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(suite, "load_model", bug)
    assert run_suite(["alexnet"], tmp_path, **OPTIONS) == [("alexnet", "ZeroDivisionError: planted")]


def test_no_network_for_the_weights(tmp_path, monkeypatch):
    """Really loaded: nothing listens where the proxy should be."""
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    (failure,) = run_suite(["squeezenet1_1"], tmp_path, **(OPTIONS | {"weights": None}))
    assert "cannot be had from https://" in failure.reason and "Put the file from that address at" in failure.reason


def test_missing_data_stop_the_suite(loaded, tmp_path):
    with pytest.raises(SuiteError, match=r"imagenet is not in .*nowhere.*image-net\.org"):
        run_suite(NAMES, tmp_path, **(OPTIONS | {"dataset": "imagenet", "root": tmp_path / "nowhere"}))
    assert len(loaded) == 1 and not list(tmp_path.glob("**/*.json*"))


def test_unknown_names_stop_the_suite_before_any_work(loaded, tmp_path):
    with pytest.raises(SuiteError, match="there is no model 'resnet_18', 'x'"):
        run_suite(["alexnet", "resnet_18", "x"], tmp_path, **OPTIONS)
    assert loaded == []


@pytest.mark.parametrize(("number", "stops"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.ENOENT, False)])
def test_a_full_disk_stops_the_suite(loaded, tmp_path, monkeypatch, number, stops):
    def fail(*_, **__):
        error = OSError("planted")
        error.errno = number
        raise error

    monkeypatch.setattr(suite, "run", fail)
    if stops:
        with pytest.raises(OSError, match="planted"):
            run_suite(NAMES, tmp_path, **OPTIONS)
        assert len(loaded) == 1
    else:
        assert [failure.model for failure in run_suite(NAMES, tmp_path, **OPTIONS)] == NAMES


@pytest.mark.parametrize(("changed", "named"), [
    ({"batch_size": 5}, "batch_size is 6 there and 5 here"),
    ({"batches": 2}, "batches is 3 there and 2 here"),
    ({"seed": 1}, "seed is 0 there and 1 here"),
    ({"weights": None}, "weights is 'random' there and None here"),
    ({"dataset": "photographs"}, "dataset is 'random' there and 'photographs' here"),
    ({"settings": Settings(pool="trailing")}, "pool is 'spatial' there and 'trailing' here"),
    ({"settings": Settings(companions=["norm"])}, "companions is [] there and ['norm'] here"),
])  # fmt: skip
def test_a_finished_signature_of_other_settings_is_a_failure(loaded, tmp_path, changed, named):
    run_suite(NAMES[:1], tmp_path, **OPTIONS)
    before = (tmp_path / "alexnet.json").read_bytes()
    loaded.clear()
    (failure,) = run_suite(NAMES[:1], tmp_path, **(OPTIONS | changed))
    assert "is the signature of another run" in failure.reason and named in failure.reason
    assert loaded == [] and (tmp_path / "alexnet.json").read_bytes() == before


def test_weights_of_the_network_without_the_usual_set(loaded, tmp_path):
    for weights, expected in ((None, "IMAGENET1K_SWAG_E2E_V1"), ("random", "random")):
        run_suite(["vit_h_14"], tmp_path / str(weights), **(OPTIONS | {"weights": weights}))
        assert loaded.pop() == ("vit_h_14", expected)


def cost(name, weights="IMAGENET1K_V1"):
    return models.get_model_weights(name)[weights].meta["_ops"]


def test_hours_follow_from_operations_and_speed():
    """Oracle: torchvision's metadata. At 36,000 images an hour's worth is ten images a second."""
    table = estimate({"resnet18": 10.0}, ["resnet18", "resnet50", "vgg11"], images=36_000)
    expected = [1, cost("resnet50") / cost("resnet18"), cost("vgg11") / cost("resnet18")]
    np.testing.assert_allclose(table["hours"], [*expected, sum(expected)], rtol=1e-12)
    np.testing.assert_allclose(table["images per second"][:3], [10 / value for value in expected], rtol=1e-12)
    half = estimate({"resnet18": 10.0}, ["resnet18", "resnet50", "vgg11"], images=36_000, processes=2)
    np.testing.assert_allclose(half["hours"], table["hours"] / 2, rtol=1e-12)


def test_the_most_similar_measured_network_counts():
    speed = dict.fromkeys(["alexnet", "resnet18", "resnet152", "vit_b_32"], 1.0)
    names = ["alexnet", "resnet50", "resnet101", "vgg16", "vit_h_14", "densenet121", "densenet161"]
    assert list(estimate(speed, names)["measured"][:-1]) == [
        "alexnet", "resnet18", "resnet152", "alexnet", "vit_b_32", "resnet18", "resnet152",
    ]  # fmt: skip
    # swin_b has neither its family nor its group among them: the nearest in operations is resnet152.
    assert estimate(speed, ["swin_b"])["measured"][0] == "resnet152"


def test_whole_paper():
    table = estimate(dict.fromkeys(REPRESENTATIVES, 100.0))
    assert list(table["model"]) == [*PAPER, "all"]
    assert table.row("all")["hours"] == pytest.approx(sum(table["hours"][:-1]), rel=1e-12)
    assert table.row("vit_h_14")["GFLOPS"] == cost("vit_h_14", "IMAGENET1K_SWAG_E2E_V1")
    assert table.row("inception_v3")["images per second"] == pytest.approx(100, rel=1e-12)


@pytest.mark.parametrize(("arguments", "options", "message"), [
    (({},), {}, "speed is {}"),
    (({"resnet18": 0.0},), {}, "speed is"),
    (({"resnet18": float("nan")},), {}, "speed is"),
    (({"resnet18": 1.0},), {"images": 0}, "images is 0"),
    (({"resnet18": 1.0},), {"processes": 0}, "processes is 0"),
    (({"resnet18": 1.0}, ["mine"]), {}, "cost of 'mine' is not known"),
    (({"mine": 1.0},), {}, "cost of 'mine' is not known"),
])  # fmt: skip
def test_bad_estimates(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        estimate(*arguments, **options)


def test_speed_is_that_of_the_forward_pass(monkeypatch):
    """A network that sleeps passes no more images a second than its sleep allows; its first pass does not count."""
    seen = []

    class Slow(nn.Module):
        def forward(self, x):
            seen.append((tuple(x.shape), torch.is_autocast_enabled("cpu"), torch.is_grad_enabled(),
                         x.is_contiguous(memory_format=torch.channels_last)))  # fmt: skip
            time.sleep(0.5 if len(seen) == 1 else 0.01)

    monkeypatch.setattr(suite, "load_model", lambda name, weights: LoadedModel(Slow(), None, name, "", {}, 8))
    speed = measure_speed(["any"], images=4, precision="bf16", channels_last=True)
    assert 4 / 0.5 < speed["any"] <= 4 / 0.01
    assert set(seen) == {((4, 3, 8, 8), True, False, True)}
    seen.clear()
    measure_speed(["any"], images=4)
    assert set(seen) == {((4, 3, 8, 8), False, False, False)}
