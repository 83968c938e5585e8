"""Suites: every network of a list, what is done skipped if it is what is asked for, what fails listed."""

import errno
import json
import re
import shutil

import numpy as np
import pytest
import torch
from image_files import noise_images
from small_hub import SENTENCES, image_folder, text_folder
from small_run import unfinished
from torch import nn
from torchvision import models
from torchvision.transforms.v2.functional import pil_to_tensor

from affscore import Signature, signature
from affscore.settings import Settings
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import LoadedModel, available_models, weights_fingerprint
from affscore.zoo.names import WEIGHTS
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.architectures import facts
from affscore_study.suite import suites as suite
from affscore_study.suite.command import SUITES
from affscore_study.suite.suites import SuiteError, run_suite

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
    """Section 4 counts them by family; Figure 16 has 36. Every one can be loaded with its weights."""
    counted = {
        "AlexNet": 1, "VGG": 4, "GoogLeNet": 1, "Inception": 1, "ResNet": 5, "DenseNet": 4, "MNASNet": 4,
        "EfficientNet": 4, "ViT": 5, "Swin": 3, "ConvNeXt": 4,
    }  # fmt: skip
    families = [facts(name).family for name in PAPER]
    assert {family: families.count(family) for family in families} == counted
    assert len(set(PAPER)) == sum(counted.values()) == 36
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


def test_what_is_done_is_skipped_and_what_is_begun_goes_on(loaded, tmp_path, monkeypatch, capsys):
    """Numbers may be NumPy's. The data are read once to know what is finished."""
    run_suite(NAMES[:2], tmp_path, **OPTIONS)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
    unfinished(tmp_path, 2, NAMES[1])
    loaded.clear()
    calls, real = [], suite.fingerprint
    monkeypatch.setattr(suite, "fingerprint", lambda *place: calls.append(place) or real(*place))
    numbers = {"batch_size": np.int64(6), "batches": np.int64(3), "seed": np.uint8(0), "progress": True}
    assert run_suite(NAMES, tmp_path, **(OPTIONS | numbers)) == []
    assert loaded == [(name, "random") for name in NAMES[1:]] and len(calls) == 1
    assert {path: path.read_bytes() for path in before} == before
    err = capsys.readouterr().err
    assert "alexnet (1 of 3): finished before, with the same weights, data and settings.\n" in err
    assert set(re.findall(r"(\w+) \(\d of 3\): 100%.* 3/3 ", err)) == set(NAMES[1:])
    assert run_suite(NAMES, tmp_path, **OPTIONS) == [] and capsys.readouterr().err == ""


def test_unfinished_file_with_a_final_name_is_finished(loaded, tmp_path):
    """An unfinished file under the name of a finished one is finished, however much of it lies beside it."""
    run_suite(NAMES[:2], tmp_path, **OPTIONS)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
    partials = [path.with_name(f"{path.name}.partial") for path in before]
    for path, partial in zip(before, partials, strict=True):
        unfinished(tmp_path, 2, path.stem)
        partial.rename(path)
    loaded.clear()
    path, (partial, _) = next(iter(before)), partials
    shutil.copy(path, partial)
    content = json.loads(partial.read_text())
    partial.write_text(json.dumps(content | {key: content[key][:1] for key in ("scores", "batch_sizes")}))
    assert run_suite(NAMES[:2], tmp_path, **OPTIONS) == []
    assert {path: path.read_bytes() for path in tmp_path.glob("*.json*")} == before
    assert loaded == [(name, "random") for name in NAMES[:2]]


@pytest.fixture
def folders(tmp_path):
    """Two folders of images with the same base name, the same files' names and the same sizes."""
    for i, place in enumerate("AB"):
        (tmp_path / place).mkdir()
        folder = noise_images(tmp_path / place / "val", [f"{k}.bmp" for k in range(18)], 8, 8)
        image = folder / "7.bmp"
        image.write_bytes(image.read_bytes()[:-1] + bytes([i]))
        (tmp_path / place / "mine.pth").write_text(f"weights {place}")
    return [tmp_path / place / "val" for place in "AB"]


@pytest.mark.filterwarnings("ignore:imagenette. .* has 18 images")
def test_other_data_or_weights_of_one_name_are_refused(loaded, tmp_path, folders):
    """A result of other data or other weights under the same name is refused.

    The files of the other data have the same sizes and names. A result of unchanged data in another place is finished.
    """
    for i, (option, named) in enumerate((
        (lambda folder: {"dataset": str(folder)}, "dataset.sha256"),
        (lambda folder: {"dataset": "imagenette", "root": str(folder.parent)}, "dataset.sha256"),
        (lambda folder: {"weights": folder.parent / "mine.pth"}, "weights.sha256"),
    )):  # fmt: skip
        out, (first, then) = tmp_path / f"out{i}", [OPTIONS | option(folder) for folder in folders]
        moved = shutil.copytree(folders[0].parent, tmp_path / f"moved{i}") / "val"
        loaded.clear()
        for options in (first, OPTIONS | option(moved)):
            assert run_suite(NAMES[:1], out, **options) == []
        before = (out / "alexnet.json").read_bytes()
        (failure,) = run_suite(NAMES[:1], out, **then)
        assert f"alexnet.json is of another run: {named} is '" in failure.reason
        assert failure.reason.count(" there and ") == 1
        assert len(loaded) == 1 and (out / "alexnet.json").read_bytes() == before
    assert run_suite(NAMES[:1], out, restart=True, **then) == []
    assert (out / "alexnet.json.old1").read_bytes() == before != (out / "alexnet.json").read_bytes()


def test_a_finished_signature_of_other_settings_is_a_failure(loaded, tmp_path):
    run_suite(NAMES[:1], tmp_path, **OPTIONS)
    before = (tmp_path / "alexnet.json").read_bytes()
    loaded.clear()
    for changed, named in (
        ({"batch_size": 5}, "batch_size is 6 there and 5 here"),
        ({"batches": 2}, "batches is 3 there and 2 here"),
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"weights": None}, "weights is 'random' there and None here"),
        ({"dataset": "photographs"}, "dataset is 'random' there and 'photographs' here"),
        ({"settings": Settings(pool="trailing")}, "pool is 'spatial' there and 'trailing' here"),
        ({"settings": Settings(companions=["norm"])}, "companions is [] there and ['norm'] here"),
    ):
        (failure,) = run_suite(NAMES[:1], tmp_path, **(OPTIONS | changed))
        assert "is of another run" in failure.reason and named in failure.reason
        assert loaded == [] and (tmp_path / "alexnet.json").read_bytes() == before


def test_what_an_older_version_or_the_other_command_stored(loaded, tmp_path):
    """A setting that was not there had its default value; without a checksum of the data nothing is known."""
    run_suite(NAMES[:1], tmp_path, **OPTIONS)
    path = tmp_path / "alexnet.json"
    content = json.loads(path.read_text())
    del content["provenance"]["request"]["channels_last"]
    path.write_text(json.dumps(content))
    assert run_suite(NAMES[:1], tmp_path, **OPTIONS) == [] and len(loaded) == 1
    del content["provenance"]["request"]
    path.write_text(json.dumps(content))
    (failure,) = run_suite(NAMES[:1], tmp_path, **OPTIONS)
    assert "alexnet.json has no checksum of its data" in failure.reason
    assert "Move it away, or start again with --restart" in failure.reason


def test_suite_continues_and_retries_only_failures(loaded, tmp_path, monkeypatch, capsys):
    """A suite continues after a failure, and the next run does only what failed.

    A bug in one network is named as such.
    """
    real = suite.load_model

    def load(name, **options):
        net = real(name, **options)
        if name == NAMES[1]:
            net.model.append(nn.Linear(3, 1))  # does not fit
        if name == NAMES[2]:
            raise ZeroDivisionError("planted")
        return net

    with monkeypatch.context() as patch:
        patch.setattr(suite, "load_model", load)
        failures = run_suite(NAMES, tmp_path, **(OPTIONS | {"progress": True}))
    assert failures == [(NAMES[1], failures[0].reason), (NAMES[2], "ZeroDivisionError: planted")]
    assert all(part in failures[0].reason for part in ("batch 0", "RuntimeError", "0 of 3 batches are kept"))
    assert f"affscore: {NAMES[1]} failed: " in capsys.readouterr().err
    assert [path.stem for path in tmp_path.glob("*.json")] == [NAMES[0]]
    loaded.clear()
    assert run_suite(NAMES, tmp_path, **OPTIONS) == []
    assert [name for name, _ in loaded] == NAMES[1:]


def test_what_concerns_all_networks_stops_the_suite(loaded, tmp_path):
    out, lines, file = tmp_path / "out", tmp_path / "lines.txt", tmp_path / "file"
    lines.write_text(SENTENCES)
    file.write_text("mine")
    for names, folder, changed, words in (
        (["alexnet", "resnet_18", "x"], out, {}, "there is no model 'resnet_18', 'x'"),
        (["hf:a/tiny", "hf:b/tiny"], out, {}, r"hf:a/tiny and hf:b/tiny would both be written to hf-tiny\.json"),
        (NAMES, file, {}, r"out: .*file is a file; it should be a folder"),
        (NAMES, out, {"dataset": "imagenet", "root": tmp_path / "no"}, r"imagenet is not in .*no.*image-net\.org"),
        (NAMES, out, {"batch_size": 1}, "batch_size is 1"),
        ([f"hf:{image_folder(tmp_path / 'tiny')}"], out, {"dataset": f"text:{lines}"}, "it should be images"),
    ):
        with pytest.raises((SuiteError, OSError), match=words):
            run_suite(names, folder, **(OPTIONS | changed))
    assert len(loaded) == 2 and not out.exists() and file.read_text() == "mine"


@pytest.mark.parametrize(("number", "stops"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.ENOENT, False)])
def test_a_full_disk_stops_the_suite(loaded, tmp_path, monkeypatch, number, stops):
    def fail(*_, **__):
        error = OSError("planted")
        error.errno = number
        raise error

    loaded.clear()
    monkeypatch.setattr(suite, "run", fail)
    if stops:
        with pytest.raises(OSError, match="planted"):
            run_suite(NAMES, tmp_path, **OPTIONS)
        assert len(loaded) == 1
    else:
        assert [failure.model for failure in run_suite(NAMES, tmp_path, **OPTIONS)] == NAMES


def test_weights_of_the_network_without_the_usual_set(loaded, tmp_path):
    for weights, expected in ((None, "IMAGENET1K_SWAG_E2E_V1"), ("random", "random")):
        run_suite(["vit_h_14"], tmp_path / str(weights), **(OPTIONS | {"weights": weights}))
        assert loaded.pop() == ("vit_h_14", expected)


def test_networks_of_text_side_by_side(tmp_path):
    """One that cannot be had fails alone; what is done is skipped, also after the folder has moved."""
    (tmp_path / "lines.txt").write_text(SENTENCES)
    folders = [text_folder(tmp_path / "nets" / kind, kind) for kind in ("BertModel", "GPT2Model")]
    names, out = [f"hf:{folder}" for folder in folders], tmp_path / "out"
    options = {"dataset": f"text:{tmp_path / 'lines.txt'}", "batch_size": 3, "progress": False}
    assert run_suite([*names, "timm:nothing"], out, **options)[0].reason.startswith("name: timm has no model 'nothing'")
    files = {path: path.stat().st_mtime_ns for path in out.glob("*.json")}
    assert sorted(path.name for path in files) == ["hf-BertModel.json", "hf-GPT2Model.json"]
    found = Signature.load(out / "hf-GPT2Model.json")
    assert found.provenance["model"] == "hf:GPT2Model" and found.provenance["data"]["texts"] == 6
    moved = shutil.move(tmp_path / "nets", tmp_path / "moved")
    names = [f"hf:{moved / folder.name}" for folder in folders]
    assert run_suite(names, out, **options) == []
    assert {path: path.stat().st_mtime_ns for path in files} == files
    # Another network in a folder of the same name is not taken for it.
    for file, old, new in (("config.json", '"gelu"', '"relu"'), ("tokenizer.json", "cat", "dog")):
        path = moved / "BertModel" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        assert "weights.description_sha256" in run_suite(names[:1], out, **options)[0].reason
        path.write_text(text)
    text_folder(moved / "GPT2Model", "GPT2Model", seed=1)
    assert "weights.sha256" in run_suite(names[1:], out, **options)[0].reason
    (tmp_path / "lines.txt").write_text(SENTENCES.replace("cat", "dog"))
    assert "dataset.sha256" in run_suite(names[:1], out, **options)[0].reason


def dangling(path):
    path.symlink_to("nowhere")


def circular(path):
    path.symlink_to(path)


@pytest.mark.parametrize(("make", "says"), [
    (dangling, "is a link that leads nowhere; it should be a folder."),
    (circular, "is a link that leads nowhere; it should be a folder."),
    (lambda path: path.symlink_to("/sys"), "cannot write to the folder"),
    (lambda path: path.symlink_to("/proc/self"), "cannot write to the folder"),
])  # fmt: skip
def test_unwritable_folder_is_refused_before_loading(loaded, tmp_path, make, says):
    """A folder that cannot be written is refused before any network is loaded."""
    out = tmp_path / str(len(list(tmp_path.iterdir())))
    make(out)
    with pytest.raises(SuiteError, match=rf"^out: .*{re.escape(says)}"):
        run_suite(NAMES, out, **OPTIONS)
    assert loaded == []


def test_a_finished_suite_needs_no_folder_that_can_be_written(loaded, tmp_path, monkeypatch):
    run_suite(NAMES[:1], tmp_path, **OPTIONS)
    monkeypatch.setattr(suite, "check_folder", None)
    assert run_suite(NAMES[:1], tmp_path, **OPTIONS) == []
