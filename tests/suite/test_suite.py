"""Suites: every network of a list, what is done skipped if it is what is asked for, what fails listed."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from image_files import noise_images
from small_hub import SENTENCES, image_folder, text_folder
from small_run import files, unfinished
from torch import nn
from torchvision import models
from torchvision.transforms.v2.functional import pil_to_tensor

from affscore import Signature, signature
from affscore.settings import Settings
from affscore.suite import suites as suite
from affscore.suite.architectures import facts
from affscore.suite.suites import PAPER, SUITES, WEIGHTS, SuiteError, run_suite
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import LoadedModel, available_models, weights_fingerprint

NAMES = ["alexnet", "vgg11", "resnet18"]
OPTIONS = {"dataset": "random", "batch_size": 6, "batches": 3, "weights": "random", "progress": False}


def small(name, *, weights=None, seed=0):
    """A small network under the name of a large one."""
    torch.manual_seed(len(name))
    return LoadedModel(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Tanh()).eval(),
        lambda image: pil_to_tensor(image.resize((8, 8))) / 255, name, str(weights),
        {"model": name, **weights_fingerprint(name, weights, seed)}, 8,
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
        assert found.provenance["model"] == name and found.provenance["weights"]["seed"] == 0
        assert found.provenance["data"]["dataset"] == "random"
    assert loaded == [(name, "random") for name in NAMES]


def test_what_is_done_is_skipped(loaded, tmp_path):
    run_suite(NAMES[:2], tmp_path, **OPTIONS)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    loaded.clear()
    assert run_suite(NAMES, tmp_path, **OPTIONS) == []
    assert loaded == [(NAMES[2], "random")]
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.fixture
def folders(tmp_path):
    """Two folders of images with the same base name, the same files' names and the same sizes."""
    for i, place in enumerate("AB"):
        folder = noise_images(tmp_path / place, [], 8, 8)
        noise_images(folder / "val", [f"{k}.bmp" for k in range(18)], 8, 8)
        image = folder / "val" / "7.bmp"
        image.write_bytes(image.read_bytes()[:-1] + bytes([i]))
    return [tmp_path / place / "val" for place in "AB"]


def other_folder(tmp_path, folders):
    return [{"dataset": str(folder)} for folder in folders], "dataset.sha256"


def changed_folder(tmp_path, folders):
    return [{"dataset": str(folders[0])}, lambda: shutil.copy(folders[1] / "7.bmp", folders[0])], "dataset.sha256"


def other_root(tmp_path, folders):
    return [{"dataset": "imagenette", "root": str(folder.parent)} for folder in folders], "dataset.sha256"


def other_weights(tmp_path, folders):
    paths = [folder.parent / "mine.pth" for folder in folders]
    for path in paths:
        path.write_text(str(path))
    return [{"weights": path} for path in paths], "weights.sha256"


def replaced_weights(tmp_path, folders):
    path = tmp_path / "mine.pth"
    path.write_text("before")
    return [{"weights": str(path)}, lambda: path.write_text("after")], "weights.sha256"


@pytest.mark.filterwarnings("ignore:imagenette. .* has 18 images")
@pytest.mark.parametrize("make", [other_folder, changed_folder, other_root, other_weights, replaced_weights])
def test_a_result_of_other_data_or_weights_of_the_same_name_is_refused(loaded, tmp_path, folders, make):
    """Byte for byte as large and under the same names. What is as it was is finished."""
    (first, then), named = make(tmp_path, folders)
    out = tmp_path / "out"
    for _ in range(2):
        assert run_suite(NAMES[:1], out, **(OPTIONS | first)) == []
    assert len(loaded) == 1
    before = (out / "alexnet.json").read_bytes()
    if callable(then):
        then = then() and first
    (failure,) = run_suite(NAMES[:1], out, **(OPTIONS | then))
    assert f"alexnet.json is of another run: {named} is '" in failure.reason
    assert failure.reason.count(" there and ") == 1
    assert len(loaded) == 1 and (out / "alexnet.json").read_bytes() == before
    assert run_suite(NAMES[:1], out, restart=True, **(OPTIONS | then)) == []
    assert (out / "alexnet.json.old1").read_bytes() == before != (out / "alexnet.json").read_bytes()


def test_the_same_data_and_weights_in_another_place_are_the_same(loaded, tmp_path, folders):
    moved = tmp_path / "moved" / "val"
    shutil.copytree(folders[0], moved)
    for place in (folders[0], moved):
        (place.parent / "mine.pth").write_text("weights")
        options = {"dataset": str(place), "weights": str(place.parent / "mine.pth")}
        assert run_suite(NAMES[:1], tmp_path / "out", **(OPTIONS | options)) == []
    assert len(loaded) == 1


def test_data_are_read_once_to_know_what_is_finished(loaded, tmp_path, monkeypatch, folders):
    options = OPTIONS | {"dataset": str(folders[0])}
    run_suite(NAMES, tmp_path / "out", **options)
    calls, real = [], suite.fingerprint
    monkeypatch.setattr(suite, "fingerprint", lambda *place: calls.append(place) or real(*place))
    monkeypatch.setattr(suite, "load_dataset", None)
    assert run_suite(NAMES, tmp_path / "out", **options) == []
    assert len(calls) == 1 and len(loaded) == 3


def test_what_is_finished_or_gone_on_with_is_said(loaded, tmp_path, capsys):
    run_suite(NAMES[:2], tmp_path, **OPTIONS)
    unfinished(tmp_path, 2, NAMES[1])
    capsys.readouterr()
    shutil.copytree(tmp_path, tmp_path / "quiet")
    run_suite(NAMES[:2], tmp_path / "quiet", **OPTIONS)
    assert capsys.readouterr().err == ""
    run_suite(NAMES[:2], tmp_path, **(OPTIONS | {"progress": True}))
    err = capsys.readouterr().err
    same = "same weights (seeded initialisation, seed 0), data (random), settings."
    assert f"alexnet (1 of 2): Finished before: {same}\n" in err
    assert "Resuming after 2 of 3 batches: same network, weights (sha256 " in err
    assert ", data (random, seed 0), settings" in err


@pytest.mark.parametrize("request_of_old", [
    None, {"dataset": "random", "weights": "random", "batch_size": 6, "batches": 3, "seed": 0},
])  # fmt: skip
def test_a_result_without_checksums_is_refused_in_a_sentence(loaded, tmp_path, request_of_old):
    run_suite(NAMES[:1], tmp_path, **OPTIONS)
    path = tmp_path / "alexnet.json"
    content = json.loads(path.read_text())
    content["provenance"]["request"] = request_of_old
    path.write_text(json.dumps(content))
    (failure,) = run_suite(NAMES[:1], tmp_path, **OPTIONS)
    assert "alexnet.json has no checksum of its data" in failure.reason
    assert "Move it away, or start again with --restart" in failure.reason
    assert run_suite(NAMES[:1], tmp_path, restart=True, **OPTIONS) == []


def test_numbers_may_be_numpys(loaded, tmp_path):
    assert run_suite(NAMES[:1], tmp_path, **OPTIONS) == []
    numbers = {key: np.int64(OPTIONS[key]) for key in ("batch_size", "batches")} | {"seed": np.uint8(0)}
    assert run_suite(NAMES[:2], tmp_path, **(OPTIONS | numbers)) == []
    assert [name for name, _ in loaded] == NAMES[:2]


def test_a_folder_that_is_a_file_is_named(loaded, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SuiteError, match=r"out: .*out is a file; it should be a folder"):
        run_suite(NAMES, tmp_path / "out", **OPTIONS)
    assert loaded == [] and (tmp_path / "out").read_text() == "mine"


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
    assert f"affscore: {NAMES[1]} failed: " in err
    assert set(re.findall(r"(\w+) \(\d of 3\): 100%.* 3/3 ", err)) == {NAMES[0], NAMES[2]}
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted([NAMES[0], NAMES[2]])
    loaded.clear()
    assert run_suite(NAMES, tmp_path, **OPTIONS) == []
    assert [name for name, _ in loaded] == [NAMES[1]]


def test_batches_of_other_weights_are_not_gone_on_with(loaded, tmp_path, monkeypatch):
    real = suite.load_model

    def load(name, **options):
        net = real(name, **options)
        net.model[0].weight.data *= 2
        return net

    with monkeypatch.context() as patch:
        patch.setattr(suite, "load_model", load)
        assert run_suite(NAMES[:1], tmp_path, **OPTIONS) == []
    unfinished(tmp_path, 2, NAMES[0])
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
    assert "cannot be downloaded from https://" in failure.reason and "Put the file from that" in failure.reason


def test_missing_data_stop_the_suite(loaded, tmp_path):
    with pytest.raises(OSError, match=r"imagenet is not in .*nowhere.*image-net\.org"):
        run_suite(NAMES, tmp_path, **(OPTIONS | {"dataset": "imagenet", "root": tmp_path / "nowhere"}))
    with pytest.raises(SuiteError, match="batch_size is 1"):
        run_suite(NAMES, tmp_path, **(OPTIONS | {"batch_size": 1}))
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
    assert "is of another run" in failure.reason and named in failure.reason
    assert loaded == [] and (tmp_path / "alexnet.json").read_bytes() == before


def test_processes_that_share_a_list_measure_each_network_once(loaded, tmp_path, monkeypatch):
    """The second one is to do what the first one leaves; what both find wrong, both refuse."""
    monkeypatch.setattr(suite, "by_turns", lambda work: work())
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        assert run_suite(NAMES, tmp_path, shared=True, **OPTIONS) == []
    assert [name for name, _ in loaded] == ["alexnet", "resnet18", "vgg11"]
    with pytest.raises(SuiteError, match="there is no model 'x'"):
        run_suite(["x", *NAMES[:1]], tmp_path, shared=True, **OPTIONS)


@pytest.mark.weekly
def test_two_processes_of_torchrun(tmp_path):
    """A network that cannot be had ends no process; the others have the bits of a run without torchrun."""
    names = ["squeezenet1_1", "mnasnet0_5", "timm:nothing", "shufflenet_v2_x0_5"]
    command = ["affscore", "suite", "--models", ",".join(names), "--weights", "random", "--dataset", "random"]
    command += ["--batch-size", "4", "--batches", "2", "--device", "cpu", "--out"]
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    printed = []
    for place in ("two", "one"):
        asked = [sys.executable, "-m", *(launcher if place == "two" else []), *command, str(tmp_path / place)]
        threads = os.environ | {"OMP_NUM_THREADS": "1"}  # as torchrun sets it
        done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False, env=threads)
        assert done.returncode == 1, done.stderr
        printed.append(sorted(line for line in done.stdout.splitlines() if "signatures" in line or "Failed" in line))
    failed, *numbers = sorted(printed[0], key=lambda line: "Failed" not in line)
    assert failed.startswith("Process 0 of 2: Failed: timm:nothing: ")
    assert [line.rpartition(" in ")[0] for line in numbers] == [
        "Process 0 of 2: 1 of 2 signatures are", "Process 1 of 2: 2 of 2 signatures are",
    ]  # fmt: skip
    assert files(tmp_path / "two") == files(tmp_path / "one") and len(files(tmp_path / "two")) == 3


def test_weights_of_the_network_without_the_usual_set(loaded, tmp_path):
    for weights, expected in ((None, "IMAGENET1K_SWAG_E2E_V1"), ("random", "random")):
        run_suite(["vit_h_14"], tmp_path / str(weights), **(OPTIONS | {"weights": weights}))
        assert loaded.pop() == ("vit_h_14", expected)


def test_networks_of_text_side_by_side(tmp_path):
    """One of images among them fails alone; what is done is skipped, also after the folder has moved."""
    (tmp_path / "lines.txt").write_text(SENTENCES)
    folders = [text_folder(tmp_path / "nets" / kind, kind) for kind in ("BertModel", "GPT2Model")]
    names, out = [f"hf:{folder}" for folder in folders], tmp_path / "out"
    options = {"dataset": f"text:{tmp_path / 'lines.txt'}", "batch_size": 3, "progress": False}
    assert run_suite([*names, "timm:nothing"], out, **options)[0].reason.startswith("name: timm has no model 'nothing'")
    files = {path: path.stat().st_mtime_ns for path in out.glob("*.json")}
    assert sorted(path.name for path in files) == ["hf-BertModel.json", "hf-GPT2Model.json"]
    found = Signature.load(out / "hf-GPT2Model.json")
    assert found.provenance["model"] == "hf:GPT2Model" and found.provenance["data"]["texts"] == 6
    shutil.move(tmp_path / "nets", tmp_path / "moved")
    assert run_suite([name.replace("nets", "moved") for name in names], out, **options) == []
    assert {path: path.stat().st_mtime_ns for path in files} == files
    text_folder(tmp_path / "moved" / "GPT2Model", "GPT2Model", seed=1)
    (failure,) = run_suite([names[1].replace("nets", "moved")], out, **options)
    assert "weights.sha256" in failure.reason
    (tmp_path / "lines.txt").write_text(SENTENCES.replace("cat", "dog"))
    (failure,) = run_suite([names[0].replace("nets", "moved")], out, **options)
    assert "dataset.sha256" in failure.reason


@pytest.mark.parametrize(
    ("file", "old", "new"), [("config.json", '"gelu"', '"relu"'), ("tokenizer.json", "cat", "dog")]
)
def test_another_network_in_a_folder_of_the_same_name_is_not_taken_for_it(tmp_path, file, old, new):
    (tmp_path / "lines.txt").write_text(SENTENCES)
    options = {"dataset": f"text:{tmp_path / 'lines.txt'}", "batch_size": 3, "weights": "random", "progress": False}
    folders = [text_folder(tmp_path / parent / "tiny") for parent in "ab"]
    text = (folders[1] / file).read_text()
    assert old in text
    (folders[1] / file).write_text(text.replace(old, new))
    names, out = [f"hf:{folder}" for folder in folders], tmp_path / "out"
    with pytest.raises(SuiteError, match=r"would both be written to hf-tiny\.json"):
        run_suite(names, out, **options)
    assert run_suite(names[:1], out, **options) == []
    (failure,) = run_suite(names[1:], out, **options)
    assert "weights.description_sha256" in failure.reason


def test_a_result_from_before_a_setting_was_there_stays_valid(tmp_path):
    options = {"dataset": "random", "batch_size": 4, "weights": "random", "progress": False}
    assert run_suite(["alexnet"], tmp_path, **options) == []
    path = tmp_path / "alexnet.json"
    content = json.loads(path.read_text())
    del content["provenance"]["request"]["channels_last"]
    path.write_text(json.dumps(content))
    assert run_suite(["alexnet"], tmp_path, **options) == []
    (failure,) = run_suite(["alexnet"], tmp_path, **options, settings=Settings(pool="trailing"))
    assert "pool is 'spatial' there" in failure.reason


def test_data_that_a_network_cannot_take_ends_the_suite(tmp_path):
    (tmp_path / "lines.txt").write_text(SENTENCES)
    name = f"hf:{image_folder(tmp_path / 'tiny')}"
    with pytest.raises(SuiteError, match="is not what this network takes; it should be images"):
        run_suite([name], tmp_path / "out", dataset=f"text:{tmp_path / 'lines.txt'}", batch_size=3, progress=False)
