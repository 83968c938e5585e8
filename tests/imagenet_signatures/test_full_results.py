"""What is installed is what a full run packs; a planted error is refused in a sentence, and nothing is installed."""

import functools
import hashlib
import json
import operator
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from torchvision.models import get_model_weights

from affscore import Signature
from affscore.companions import MEASURES
from affscore_book.imagenet_signatures.finding import before_training
from affscore_study.imagenet_signatures import full_results
from affscore_study.imagenet_signatures.full_results import (
    MANIFEST,
    SCHEMA,
    install,
    read_full,
)

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
PICTURES = {"dataset": "imagenette", "source": "image files", "images": 3925, "sha256": "5" * 64}
NETWORKS = ("mnasnet0_5", "swin_t")
FILES = ("mnasnet0_5.spatial.json", "swin_t.trailing.json", "swin_t.spatial.json")


@pytest.fixture(scope="module")
def starts():
    return {pool: before_training(FOLDER, pool=pool) for pool in ("spatial", "trailing")}


def as_measured(start: Signature, network: str, pool: str) -> Signature:
    """A stored signature as if a full run had given it: seven batches of 512."""
    weights = get_model_weights(network).IMAGENET1K_V1
    digits = weights.url.rpartition("-")[2].removesuffix(".pth")
    about = {
        "model": network,
        "weights": {"source": weights.url, "weights": str(weights), "sha256": digits.ljust(64, "0")},
        "request": {"dataset": PICTURES, "batch_size": 512, "seed": 0},
        "data": PICTURES | {"skipped": []},
        "precision": "full",
        "device": "a GPU",
    }
    rows, measures = start.scores[0] + 0.001 * np.arange(-3, 4)[:, None], {}
    if pool == "spatial":
        measures = {name: np.tile(start.companions.get(name, start.scores)[0], (7, 1)) for name in MEASURES}
    return Signature(start.calls, rows, pool=pool, batch_sizes=[512] * 7, provenance=about, companions=measures)


@pytest.fixture(scope="module")
def sound(starts, tmp_path_factory):
    """The files of a sound packed file."""
    tmp_path = tmp_path_factory.mktemp("sound")
    found = {}
    for name in FILES:
        network, pool, _ = name.split(".")
        as_measured(starts[pool][network], network, pool).save(tmp_path / name)
        found[name] = (tmp_path / name).read_bytes()
    return found


def packed(contents: dict[str, bytes], file: Path, **changes) -> Path:
    """Write them with a manifest that fits, but for the changes."""
    files = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items() if name in FILES}
    manifest = {"schema": SCHEMA, "dataset": PICTURES, "device": "a GPU", "files": files} | changes
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in {**contents, MANIFEST: json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    return file


@pytest.fixture
def place(tmp_path, monkeypatch, starts):
    """A folder to install to; the networks before training are those of the book."""
    monkeypatch.setattr(full_results, "before_training", lambda folder, pool="spatial": starts[pool])
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def test_a_sound_file_is_installed_and_read_back(sound, place, starts, tmp_path):
    assert read_full(place) is None
    path = install(packed(sound, tmp_path / "x.zip"), place)
    assert path == place / "full" / "imagenette.json"
    results = read_full(place)
    assert repr(results) == "2 of 36 pretrained networks on imagenette, 7 batches of 512, by a GPU"
    for pool, networks in results.signatures.items():
        assert list(networks) == list(NETWORKS)
        for name, found in networks.items():
            kept = starts[pool][name]
            np.testing.assert_allclose(found.mean, kept.scores[0], atol=1e-6)
            assert [call.name for call in found.calls] == [call.name for call in kept.calls]
    assert results.std["swin_t"] == pytest.approx(0.002, abs=1e-6)  # of seven numbers in steps of 0.001
    for name, values in results.signatures["spatial"]["swin_t"].companions.items():
        start = starts["spatial"]["swin_t"]
        np.testing.assert_allclose(values[0], start.companions.get(name, start.scores)[0], atol=1e-6)
    path.with_name("imagenet.json").write_text(path.read_text().replace("imagenette", "imagenet"))
    assert read_full(place).data == "imagenet"


def edited(*keys, value):
    """Change what these keys lead to in the JSON of one signature."""

    def plant(contents):
        content = json.loads(contents["mnasnet0_5.spatial.json"])
        functools.reduce(operator.getitem, keys[:-1], content)[keys[-1]] = value
        contents["mnasnet0_5.spatial.json"] = json.dumps(content).encode()

    return plant


def cut(contents):
    contents["swin_t.spatial.json"] = contents["swin_t.spatial.json"][:-300]


def other_network(contents):
    contents["mnasnet0_5.spatial.json"] = contents["swin_t.spatial.json"]


def refused(file, place, message):
    """Nothing is installed, and one sentence says why."""
    with pytest.raises(ValueError, match=message) as error:
        install(file, place)
    assert "\n" not in str(error.value) and str(error.value).endswith(".") and list(place.iterdir()) == []


@pytest.mark.parametrize(("plant", "message"), [
    (cut, "swin_t.spatial.json is not complete JSON"),
    (other_network, "model is 'swin_t'; it should be 'mnasnet0_5'"),
    (edited("calls", 3, "shape", 0, value=1), "is not .* of torchvision's architecture"),
    (edited("batch_sizes", 2, value=500), "images in its batches is 3572"),
    (edited("covariance", value="empirical"), "covariance is 'empirical'"),
    (edited("companions", value={}), "companion measures is"),
    (edited("provenance", "request", "batch_size", value=64), "batch size is 64; it should be 512"),
    (edited("provenance", "request", "dataset", value={}), "data set is {}"),
    (edited("provenance", "weights", "sha256", value="0" * 64), "not torchvision's"),
    (edited("provenance", "weights", "source", value="mine.pth"), "weights is 'mine.pth'"),
    (edited("provenance", value={}), "it lacks 'data'"),
    (lambda contents: contents.update({"../evil.py": b"1"}), "'../evil.py' does not belong there"),
    (lambda contents: contents.pop("swin_t.trailing.json"), "swin_t lacks the pool trailing"),
    (lambda contents: contents.pop("swin_t.spatial.json"), "swin_t lacks the pool spatial"),
    (dict.clear, "holds no signature"),
])  # fmt: skip
def test_a_planted_error_is_refused_and_nothing_is_installed(sound, place, tmp_path, plant, message):
    contents = dict(sound)
    plant(contents)
    refused(packed(contents, tmp_path / "x.zip"), place, message)


@pytest.mark.parametrize(("changes", "message"), [
    ({"files": {}}, "lists other files"),
    ({"files": dict.fromkeys(FILES, "0" * 64)}, "has another checksum than the manifest says"),
    ({"schema": "x"}, "schema is 'x'"),
    ({"dataset": {"dataset": "../elsewhere"}}, "data set is '../elsewhere'; it should be one of"),
])  # fmt: skip
def test_a_manifest_that_does_not_fit_is_refused(sound, place, tmp_path, changes, message):
    refused(packed(sound, tmp_path / "x.zip", **changes), place, message)


def bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("swin_t.spatial.json", b" " * (full_results.LARGEST + 1))


def deep(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MANIFEST, "[" * 100_000)


def test_what_is_no_sound_zip_ends_in_a_sentence(sound, place, tmp_path):
    """Too large, too deep, with eight bits of a sound one changed, cut off; and no file at all."""
    file = tmp_path / "x.zip"
    for make, message in ((bomb, "has 64000001 bytes"), (deep, "recursion")):
        make(file)
        refused(file, place, message)
    data = packed(sound, file).read_bytes()
    for seed in range(5):
        damaged, generator = bytearray(data), np.random.default_rng(seed)
        for at in generator.integers(len(data), size=8):
            damaged[at] ^= 1 << int(generator.integers(8))
        file.write_bytes(bytes(damaged))
        refused(file, place, "is not installed")
    file.write_bytes(data[:-100])
    refused(file, place, "is not installed: File is not a zip file")
    with pytest.raises(FileNotFoundError):
        install(tmp_path / "nowhere.zip", place)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_what_is_no_regular_file_is_refused_and_never_read(place, tmp_path, make):
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.zip"
    make(file)
    with pytest.raises(OSError, match=r"is a device or a pipe|is a folder"):
        install(file, place)
