"""Runs that are killed or fail go on and end with the bits of one left alone; no file of another run is touched."""

import resource
from dataclasses import replace

import numpy as np
import pytest
import torch
from image_files import noise_images
from small_run import BATCHES, SETTINGS, Watched, data, files, network, run, unfinished
from torch import nn

from affscore import Signature, signature
from affscore.zoo.datasets import load_dataset
from affscore_study.suite import requests, runs
from affscore_study.suite.requests import RunError
from affscore_study.suite.runs import progress_of

PARTIAL = "small.json.partial"


@pytest.fixture(autouse=True)
def every_batch(monkeypatch):
    """The file is written after each batch, however fast these small ones are."""
    monkeypatch.setattr(runs, "PAUSE", 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that was left alone."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder)
    return folder


def stopped(folder, at, error=OSError, **options):
    """Run until batch ``at``, which fails; gives the error."""

    def fail(k):
        if k == at:
            raise error("planted")

    with pytest.raises((RunError, KeyboardInterrupt)) as caught:
        run(folder, Watched(data(), fail), **options)
    return caught.value


def test_run_gives_what_signature_gives(whole, tmp_path):
    """Oracle: affscore.signature, which keeps nothing. The dead call makes NaN part of it."""
    expected = signature(network(), data(), companions=True)
    found = Signature.load(whole / "small.json")
    assert np.isnan(found.scores[:, -1]).all() and not np.isnan(found.scores[:, :-1]).any()
    assert np.array_equal(found.scores, expected.scores, equal_nan=True)
    assert found.companions.keys() == expected.companions.keys()
    for name, values in expected.companions.items():
        assert np.array_equal(found.companions[name], values, equal_nan=True)
    assert found.calls == expected.calls and found.excluded == expected.excluded
    assert found.batch_sizes == expected.batch_sizes
    assert progress_of(whole) == {"small": (BATCHES, BATCHES)} and list(files(whole)) == ["small.json"]
    run(tmp_path)
    assert files(tmp_path) == files(whole)  # nothing depends on the time


def test_finished_run_runs_nothing_again(whole, monkeypatch):
    before, seen = files(whole), []
    monkeypatch.setattr(runs, "batch_results", None)
    run(whole, progress=seen.append)
    assert seen == [BATCHES] and files(whole) == before


@pytest.mark.parametrize(("at", "kind"), [(1, OSError), (BATCHES - 1, OSError), (6, KeyboardInterrupt)])
def test_stopped_run_keeps_the_finished_batches(whole, tmp_path, at, kind):
    """A run that fails or is interrupted keeps the batches that are finished."""
    folder = tmp_path / str(at)
    error = stopped(folder, at, kind)
    done, _ = progress_of(folder)["small"]
    assert f"{done} of {BATCHES} batches are kept in {folder / PARTIAL}" in str(error)
    if kind is OSError:
        assert done == at and f"batch {at} " in str(error) and "planted" in str(error)
    else:
        assert at - 2 <= done <= at and isinstance(error, kind) and str(error).startswith("interrupted. ")
    assert list(files(folder)) == [PARTIAL]
    seen = []
    run(folder, progress=seen.append)
    assert files(folder) == files(whole) and seen == [done] + [1] * (BATCHES - done)


@pytest.mark.parametrize("room", [0, 300])
def test_full_disk_keeps_what_is_finished(whole, tmp_path, room):
    """The system stops the write: no file may grow beyond ``room`` bytes."""
    folder = tmp_path / str(room)
    stopped(folder, 4)
    before = files(folder)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        with pytest.raises(OSError, match="cannot be written") as caught:
            run(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    text = str(caught.value)
    assert "4 of 10 batches are kept" in text and str(folder) in text and "too large" in text
    assert files(folder) == before
    run(folder)
    assert files(folder) == files(whole)


def as_tensor(image):
    return torch.from_numpy(np.array(image, dtype=np.float32).transpose(2, 0, 1))


def test_resumed_run_lists_unreadable_images_once(tmp_path, recwarn):
    """Unreadable images are listed with their batch, and finished batches are not read again."""
    images = noise_images(tmp_path / "images", [f"{i:02}.bmp" for i in range(24)], 8, 8)
    for i in (3, 17):
        (images / f"{i:02}.bmp").write_bytes(b"broken")
    model, read = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), []

    def load():
        return load_dataset(images, preprocess=lambda image: read.append(image) or as_tensor(image), batch_size=6)

    batches = load()
    whole = runs.run(model, batches, tmp_path / "a", "small")
    sizes, skipped = [], []
    for k in range(4):
        alone = load()
        sizes.append(len(alone[k]))
        skipped += alone.skipped
    assert whole.batch_sizes == sizes and whole.provenance["data"]["skipped"] == skipped
    assert sorted(image["file"] for image in skipped) == ["03.bmp", "17.bmp"]
    # Resumed with the very object that has met the images already.
    before = files(tmp_path / "a")
    unfinished(tmp_path / "a", 1)
    read.clear()
    runs.run(model, batches, tmp_path / "a", "small")
    assert files(tmp_path / "a") == before and len(read) == sum(sizes[1:])
    # Other pixels in a file of the same name and size are other data, finished or not.
    pixels = bytearray((images / "05.bmp").read_bytes())
    pixels[-1] ^= 1
    (images / "05.bmp").write_bytes(pixels)
    for finished in (True, False):
        if not finished:
            unfinished(tmp_path / "a", 1)
        with pytest.raises(RunError, match=r"another run: provenance\.data\.sha256 is '\w+' there and '\w+' here\."):
            runs.run(model, load(), tmp_path / "a", "small")


def spoil_weight(options, monkeypatch):
    options["model"][0].weight.data[-1, -1] += 1e-7


def spoil_data(options, monkeypatch):
    options["batches"][0][-1, -1] += 1e-6


def spoil_versions(options, monkeypatch):
    monkeypatch.setattr(requests, "versions", lambda: {"affscore": "0.0.1"})


def spoil_threads(options, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 17)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)  # or 17 would be restored for real


def option(**changed):
    return lambda options, monkeypatch: options.update(changed)


def setting(**changed):
    return option(settings=replace(SETTINGS, **changed))


def test_other_settings_are_refused_by_name(tmp_path, monkeypatch):
    stopped(tmp_path, 2)
    before = files(tmp_path)
    for spoil, named in (
        (setting(pool="trailing"), "pool is 'spatial' there and 'trailing' here"),
        (setting(covariance="empirical"), "covariance is 'ledoit_wolf' there and 'empirical' here"),
        (setting(companions=["cka"]), "companions is"),
        (setting(micro_batch=5), "provenance.micro_batch is None there and 5 here"),
        (setting(precision="bf16"), "provenance.precision is 'full' there and 'bf16' here"),
        (setting(channels_last=True), "provenance.channels_last is False there and True here"),
        (setting(channel_axis={"1:relu[0]": 1}), "provenance.channel_axis is None there and {'1:relu[0]': 1} here"),
        (option(provenance={"model": "other"}), "provenance.model is 'Sequential' there and 'other' here"),
        (option(batches=data(BATCHES + 1)[: BATCHES - 1]), "batches is 10 there and 9 here"),
        (spoil_weight, "provenance.weights_sha256 is"),
        (spoil_data, "provenance.data.first_batch_sha256 is"),
        (spoil_versions, "provenance.versions.affscore is"),
        (spoil_threads, "provenance.threads is"),
    ):
        options = {"model": network(), "batches": data(), "settings": SETTINGS}
        with monkeypatch.context() as patch:
            spoil(options, patch)
            with pytest.raises(RunError) as caught:
                runs.run(folder=tmp_path, name="small", **options)
        text = str(caught.value)
        assert named in text and text.endswith(".")
        assert "versions" in named or text.count(" there and ") == 1  # and nothing else
        assert files(tmp_path) == before


@pytest.mark.parametrize(("options", "message"), [
    ({"name": ""}, "name is ''"),
    ({"name": ".."}, "name is '..'"),
    ({"name": "a/b"}, "name is 'a/b'"),
    ({"batches": iter(data())}, "batches is a .*iterator; it should be a sequence"),
    ({"batches": data()[0]}, "batches is a Tensor; it should be a sequence of batches"),
    ({"batches": dict(enumerate(data()))}, "batches is a dict; it should be a sequence of batches"),
    ({"batches": []}, "batches is empty"),
])  # fmt: skip
def test_bad_arguments(tmp_path, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        runs.run(**{"model": network(), "batches": data(), "folder": tmp_path, "name": "small"} | options)


class Sloped(nn.Module):
    """With a parameter of its own that stands in no weight and in no description."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return nn.functional.leaky_relu(x, self.slope)


@pytest.mark.parametrize(("one", "other"), [
    (nn.LeakyReLU(0.01), nn.LeakyReLU(0.9)),
    (nn.LayerNorm(6, eps=1e-5), nn.LayerNorm(6, eps=1e-2)),
    (nn.ReLU(), nn.GELU()),
    (Sloped(0.01), Sloped(0.9)),
])  # fmt: skip
def test_another_network_with_the_same_weights_is_refused(tmp_path, one, other):
    def network(part):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 6), part, nn.ReLU())

    runs.run(network(one), data(2), tmp_path, type(one).__name__)
    with pytest.raises(RunError, match="network_sha256"):
        runs.run(network(other), data(2), tmp_path, type(one).__name__)


def test_run_in_pieces_equals_one_run(whole, tmp_path):
    """A run in pieces equals one run, and each batch is measured once.

    However long a network takes, a piece costs loading and the one batch during which it ends, but no finished batch.
    """
    for at in (3, 6, 9):
        stopped(tmp_path, at)
    read = []
    run(tmp_path, Watched(data(), read.append))
    assert read == [0, 9] and files(tmp_path) == files(whole)


def test_fast_batches_are_written_together(whole, tmp_path, monkeypatch):
    """Fast batches are written together, and all of them are written when the run stops."""
    monkeypatch.setattr(runs, "PAUSE", 1000)
    saved = []
    save = Signature.save
    monkeypatch.setattr(Signature, "save", lambda self, path: saved.append(len(self.scores)) or save(self, path))
    stopped(tmp_path, 6)
    assert saved == [1, 6]
    run(tmp_path)
    assert saved == [1, 6, 7, BATCHES] and files(tmp_path) == files(whole)


@pytest.mark.parametrize(("other", "restart", "ends"), [
    (SETTINGS, False, True), (SETTINGS, False, False), (SETTINGS, True, False),
    (replace(SETTINGS, pool="trailing"), True, True),
])  # fmt: skip
def test_second_process_to_write_stops(tmp_path, other, restart, ends):
    """If two processes measure one network, the second one to write stops.

    The other begins while the first, which has found two batches, measures its third; nothing of either is lost.
    """

    def meddle(k):
        if k == 2:
            options = {"settings": other, "restart": restart}
            run(tmp_path, **options) if ends else stopped(tmp_path, 5, **options)
            there.update(files(tmp_path))

    stopped(tmp_path, 2)
    before, there = files(tmp_path), {}
    with pytest.raises(RunError, match=r"by another process, which measures this network too|is of another run: pool"):
        run(tmp_path, Watched(data(), meddle))
    assert files(tmp_path) == there and ("small.json" in there) == ends
    assert not restart or there[f"{PARTIAL}.old1"] == before[PARTIAL]


def test_other_signature_is_kept_or_renamed(whole, tmp_path):
    """A finished signature of another run is not overwritten; on request it is renamed."""
    run(tmp_path)
    before = (tmp_path / "small.json").read_bytes()
    with pytest.raises(RunError, match="is of another run: pool is 'spatial' there and 'trailing' here"):
        run(tmp_path, settings=replace(SETTINGS, pool="trailing"))
    assert files(tmp_path) == files(whole)
    for number in (1, 2):
        run(tmp_path, restart=True)
        assert (tmp_path / f"small.json.old{number}").read_bytes() == before


@pytest.mark.parametrize("change", [
    lambda data: data.replace(b'"batch_sizes"', b'"sizes"'),
    lambda data: data[:-9],
    lambda data: b"",
])  # fmt: skip
def test_a_damaged_file_is_an_error_and_stays_as_it_is(tmp_path, change):
    path = tmp_path / PARTIAL
    path.unlink(missing_ok=True)  # as the message says
    stopped(tmp_path, 2)
    path.write_bytes(change(path.read_bytes()))
    before = files(tmp_path)
    with pytest.raises(RunError, match=r"small\.json\.partial .*Put it back from a copy, or remove it\."):
        run(tmp_path)
    assert files(tmp_path) == before
