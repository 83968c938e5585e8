"""Runs that are killed or fail go on and end with the bits of one left alone; no file of another run is touched."""

import hashlib
import json
import resource
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from grids import each
from image_files import noise_images
from small_run import BATCHES, SETTINGS, Noted, data, files, network, run, unfinished
from torch import nn

from affscore import Signature, signature
from affscore.settings import Settings
from affscore.suite import requests, runs
from affscore.suite.requests import RunError, differences, weights_checksum
from affscore.suite.runs import progress_of
from affscore.zoo.datasets import load_dataset

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


class Meddled(list):
    """Batches; before one of them is had, something else is done."""

    def __init__(self, batches, at, meddle):
        super().__init__(batches)
        self.at, self.meddle = at, meddle

    def __getitem__(self, k):
        if k == self.at:
            self.meddle()
        return super().__getitem__(k)


def stopped(folder, at, error=OSError, **options):
    """Run until batch ``at``, which fails; gives the error."""

    def fail():
        raise error("planted")

    with pytest.raises((RunError, KeyboardInterrupt)) as caught:
        runs.run(network(), Meddled(data(), at, fail), folder, "small", settings=SETTINGS, **options)
    return caught.value


def test_run_gives_what_signature_gives(whole):
    """Oracle: affscore.signature, which knows nothing of records. The dead call makes NaN part of it."""
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


def test_nothing_in_the_files_depends_on_when_they_were_made(whole, tmp_path):
    run(tmp_path)
    assert files(tmp_path) == files(whole)


def test_finished_run_runs_nothing_again(whole, monkeypatch):
    def again(*_, **__):
        raise AssertionError("the network ran again")

    before = files(whole)
    monkeypatch.setattr(runs, "batch_results", again)
    seen = []
    run(whole, progress=seen.append)
    assert seen == [BATCHES] and files(whole) == before


def test_going_on_says_what_was_compared(whole, tmp_path):
    first = hashlib.sha256(b" torch.float32 (16, 6)\n" + data()[0].numpy().tobytes()).hexdigest()
    sums = weights_checksum(network())[:12], first[:12]
    same = "same network, weights (sha256 {}), data (first_batch_sha256 {}), settings".format(*sums)
    said = []
    run(whole, say=said.append)
    assert said == [f"Finished before: {same}, versions."]
    stopped(tmp_path, 3, say=said.append)
    assert len(said) == 1  # there was nothing before
    run(tmp_path, say=said.append)
    assert said[1:] == [f"Resuming after 3 of 10 batches: {same}, versions."]


@pytest.mark.parametrize("finished", [True, False])
def test_data_of_the_same_names_and_sizes_are_other_data(tmp_path, finished):
    """Uncompressed images, of which one gets another pixel."""
    folder = noise_images(tmp_path / "images", [f"{i}.bmp" for i in range(8)], 8, 8)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())

    def load():
        return load_dataset(folder, preprocess=as_tensor, batch_size=4)

    runs.run(model, load(), tmp_path, "small")
    if not finished:
        unfinished(tmp_path, 1)
    before, image = files(tmp_path), folder / "5.bmp"
    pixels = bytearray(image.read_bytes())
    pixels[-1] ^= 1
    image.write_bytes(pixels)
    with pytest.raises(RunError, match=r"is of another run: provenance\.data\.sha256 is '\w+' there and '\w+' here\."):
        runs.run(model, load(), tmp_path, "small")
    assert files(tmp_path) == before


@pytest.mark.parametrize("at", [1, 4, BATCHES - 1])
def test_failed_batch_keeps_those_before_it(whole, tmp_path, at):
    error = stopped(tmp_path, at)
    assert f"batch {at} " in str(error) and "planted" in str(error)
    assert f"{at} of {BATCHES} batches are kept in {tmp_path / PARTIAL}" in str(error)
    assert progress_of(tmp_path) == {"small": (at, BATCHES)}
    assert not (tmp_path / "small.json").exists()
    run(tmp_path)
    assert files(tmp_path) == files(whole)


def test_interruption_by_the_keyboard_keeps_what_is_finished(whole, tmp_path):
    error = stopped(tmp_path, 6, KeyboardInterrupt)
    assert isinstance(error, KeyboardInterrupt) and str(error).startswith("interrupted. ")
    done, _ = progress_of(tmp_path)["small"]
    assert 6 - 2 <= done <= 6 and f"{done} of {BATCHES} batches are kept" in str(error)
    run(tmp_path)
    assert files(tmp_path) == files(whole)


@pytest.mark.parametrize("room", [0, 300])
def test_full_disk_keeps_what_is_finished(whole, tmp_path, room):
    """The system stops the write: no file may grow beyond ``room`` bytes."""
    stopped(tmp_path, 4)
    before = files(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        with pytest.raises(OSError, match="cannot be written") as caught:
            run(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    text = str(caught.value)
    assert "4 of 10 batches are kept" in text and str(tmp_path) in text and "too large" in text
    assert files(tmp_path) == before
    run(tmp_path)
    assert files(tmp_path) == files(whole)


@pytest.fixture
def images(tmp_path):
    """A folder of 24 images."""
    return noise_images(tmp_path / "images", [f"{i:02}.png" for i in range(24)], 8, 8)


def as_tensor(image):
    return torch.from_numpy(np.array(image, dtype=np.float32).transpose(2, 0, 1))


def test_unreadable_images_are_skipped_and_listed_with_their_batch(images, tmp_path, recwarn):
    for i in (3, 17):
        (images / f"{i:02}.png").write_bytes(b"broken")
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())

    def load():
        return load_dataset(images, preprocess=as_tensor, batch_size=6)

    whole = runs.run(model, load(), tmp_path / "a", "small")
    batches = load()
    whole_again = runs.run(model, batches, tmp_path / "b", "small")
    sizes, skipped = [], []
    for k in range(4):
        alone = load()
        sizes.append(len(alone[k]))
        skipped += alone.skipped
    assert whole.batch_sizes == sizes and whole.provenance["data"]["skipped"] == skipped
    assert sorted(image["file"] for image in whole.provenance["data"]["skipped"]) == ["03.png", "17.png"]
    assert sum(whole.batch_sizes) == 22
    # Resumed with the very object that has met the images already.
    unfinished(tmp_path / "b", 1)
    runs.run(model, batches, tmp_path / "b", "small")
    assert files(tmp_path / "a") == files(tmp_path / "b") and np.array_equal(whole.scores, whole_again.scores)


def spoil_weight(options, monkeypatch):
    options["model"][0].weight.data[0, 0] += 1e-7


def spoil_data(options, monkeypatch):
    options["batches"][0][0, 0] += 1e-6


def spoil_versions(options, monkeypatch):
    monkeypatch.setattr(requests, "versions", lambda: {"affscore": "0.0.1"})


def spoil_threads(options, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 17)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)  # or 17 would be restored for real


def set_option(**changed):
    return lambda options, monkeypatch: options.update(changed)


def set_settings(**changed):
    return lambda options, monkeypatch: options.update(settings=replace(SETTINGS, **changed))


@pytest.mark.parametrize(("spoil", "named"), [
    (set_settings(pool="trailing"), "pool is 'spatial' there and 'trailing' here"),
    (set_settings(covariance="empirical"), "covariance is 'ledoit_wolf' there and 'empirical' here"),
    (set_settings(companions=["cka"]), "companions is"),
    (set_settings(micro_batch=5), "provenance.micro_batch is None there and 5 here"),
    (set_settings(precision="bf16"), "provenance.precision is 'full' there and 'bf16' here"),
    (set_settings(channels_last=True), "provenance.channels_last is False there and True here"),
    (set_settings(channel_axis={"1:relu[0]": 1}), "provenance.channel_axis is None there and {'1:relu[0]': 1} here"),
    (set_option(provenance={"model": "other"}), "provenance.model is 'Sequential' there and 'other' here"),
    (set_option(batches=data(BATCHES + 1)[:BATCHES - 1]), "batches is 10 there and 9 here"),
    (spoil_weight, "provenance.weights_sha256 is"),
    (spoil_data, "provenance.data.first_batch_sha256 is"),
    (spoil_versions, "provenance.versions.affscore is"),
    (spoil_threads, "provenance.threads is"),
])  # fmt: skip
def test_other_settings_are_refused_by_name(tmp_path, monkeypatch, spoil, named):
    stopped(tmp_path, 2)
    before = files(tmp_path)
    options = {"model": network(), "batches": data(), "settings": SETTINGS}
    spoil(options, monkeypatch)
    with pytest.raises(RunError) as caught:
        runs.run(folder=tmp_path, name="small", **options)
    text = str(caught.value)
    assert named in text and text.endswith(".")
    if "versions" not in named:
        assert text.count(" there and ") == 1  # and nothing else
    assert files(tmp_path) == before
    # Begun anew on request, with the old records kept.
    runs.run(folder=tmp_path, name="small", restart=True, **options)
    assert {f"{name}.old1": data for name, data in before.items()}.items() <= files(tmp_path).items()
    assert (tmp_path / "small.json").exists()


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


@each("change", [
    lambda net: net[0].weight.data.mul_(-1),
    lambda net: net[0].bias.data.zero_(),
    lambda net: net.append(nn.BatchNorm1d(5)),
    lambda net: net.double(),
])  # fmt: skip
def test_checksum_of_the_weights_sees_every_change(change):
    net = network()
    before = weights_checksum(net)
    assert before == weights_checksum(network())
    change(net)
    assert weights_checksum(net) != before


class Sloped(nn.Module):
    """With a parameter of its own that stands in no weight and in no description."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return nn.functional.leaky_relu(x, self.slope)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (nn.LeakyReLU(0.01), nn.LeakyReLU(0.9)),
        (nn.LayerNorm(6, eps=1e-5), nn.LayerNorm(6, eps=1e-2)),
        (nn.ReLU(), nn.GELU()),
        (Sloped(0.01), Sloped(0.9)),
    ],
)
def test_another_network_with_the_same_weights_is_refused(tmp_path, one, other):
    def network(part):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 6), part, nn.ReLU())

    batches = list(torch.randn(2, 20, 6))
    runs.run(network(one), batches, tmp_path, "m")
    with pytest.raises(RunError, match="network_sha256"):
        runs.run(network(other), batches, tmp_path, "m")
    runs.run(network(one), batches, tmp_path, "m")


def test_a_run_in_pieces_equals_one_run_and_each_batch_is_measured_once(whole, tmp_path):
    """However long a network takes: a piece costs loading and the one batch during which it ends, no finished batch."""
    for at in (3, 6, 9):
        stopped(tmp_path, at)
    run(tmp_path, Noted(data(), tmp_path / "log"))
    assert (tmp_path / "log").read_text().split() == ["0", "9"]
    (tmp_path / "log").unlink()
    assert files(tmp_path) == files(whole)


def test_images_of_finished_batches_are_not_read_again(images, tmp_path):
    read = []

    def noted(image):
        read.append(image)
        return as_tensor(image)

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    runs.run(model, load_dataset(images, preprocess=noted, batch_size=6), tmp_path, "small")
    unfinished(tmp_path, 3)
    read.clear()
    runs.run(model, load_dataset(images, preprocess=noted, batch_size=6), tmp_path, "small")
    assert len(read) == 6


def test_fast_batches_are_written_together_and_all_when_the_run_stops(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "PAUSE", 1000)
    saved = []
    save = Signature.save
    monkeypatch.setattr(Signature, "save", lambda self, path: saved.append(len(self.scores)) or save(self, path))
    stopped(tmp_path, 6)
    assert saved == [1, 6]
    run(tmp_path)
    assert saved == [1, 6, 7, BATCHES] and files(tmp_path) == files(whole)


def test_writing_takes_a_tenth_of_the_time_at_most(tmp_path, monkeypatch):
    """By a clock that moves three seconds when a batch is read, and two when the file is written."""
    now, saved, save = [0], [], Signature.save

    def slow(self, path):
        now[0] += 2
        saved.append(len(self.scores))
        save(self, path)

    class Ticking(list):
        def __getitem__(self, k):
            now[0] += 3
            return super().__getitem__(k)

    monkeypatch.setattr(runs, "PAUSE", 1)
    monkeypatch.setattr(Signature, "save", slow)
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    run(tmp_path, Ticking(data()))
    assert saved == [1, 8, BATCHES]


@pytest.mark.parametrize("ends", [True, False], ids=["the other ends", "the other is stopped"])
@pytest.mark.parametrize(("other", "restart"), [
    (SETTINGS, False), (SETTINGS, True), (replace(SETTINGS, pool="trailing"), True),
], ids=["goes on", "begins anew", "another request"])  # fmt: skip
def test_of_two_processes_at_one_network_the_second_to_write_stops(tmp_path, other, ends, restart):
    """The other begins while the first, which has found two batches, measures its third; nothing of either is lost."""
    def meddle():
        options = {"settings": other, "restart": restart}
        if ends:
            run(tmp_path, **options)
        else:
            with pytest.raises(RunError, match="planted"):
                run(tmp_path, Meddled(data(), 5, fail), **options)
        there.update(files(tmp_path))

    def fail():
        raise OSError("planted")

    stopped(tmp_path, 2)
    before, there = files(tmp_path), {}
    with pytest.raises(RunError, match=r"by another process, which measures this network too|is of another run: pool"):
        run(tmp_path, Meddled(data(), 2, meddle))
    assert files(tmp_path) == there and ("small.json" in there) == ends
    assert not restart or there[f"{PARTIAL}.old1"] == before[PARTIAL]


def test_an_infinite_companion_measure_stops_the_run_before_it_is_written(tmp_path, monkeypatch):
    """A signature could not hold it: the run would be lost when all is measured."""
    real = runs.batch_results

    def odd(*args, **options):
        for result in real(*args, **options):
            result.companions["cka"][1] = np.inf if result.index == 2 else np.nan
            yield result

    monkeypatch.setattr(runs, "batch_results", odd)
    with pytest.raises(RunError, match=r"JSON.*2 of 10 batches are kept"):
        run(tmp_path, settings=Settings(companions=["cka"]))
    assert np.isnan(Signature.load(tmp_path / PARTIAL).companions["cka"][:, 1]).all()


def test_finished_signature_of_another_run_is_not_overwritten(whole, tmp_path):
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
def test_a_damaged_file_is_an_error_and_stays_as_it_is(whole, tmp_path, change):
    stopped(tmp_path, 4)
    path = tmp_path / PARTIAL
    path.write_bytes(change(path.read_bytes()))
    before = files(tmp_path)
    with pytest.raises(RunError, match=r"small\.json\.partial .*Put it back from a copy, or remove it\."):
        run(tmp_path)
    assert files(tmp_path) == before
    path.unlink()  # as the message says
    run(tmp_path)
    assert files(tmp_path) == files(whole)


def test_nothing_is_kept_where_the_first_batch_fails(tmp_path):
    batches = data()
    batches[0][0] = torch.nan
    with pytest.raises(RunError, match=r"0 of 10 batches are kept"):
        runs.run(network(), batches, tmp_path, "small")
    assert progress_of(tmp_path) == {}


def test_differences_of_nested_values():
    same = {"a": [1, 2], "b": {"c": 0}}
    assert differences(same, json.loads(json.dumps(same))) == []
    assert differences(same, {"a": [1, 3], "d": None}) == [
        "a is [1, 2] there and [1, 3] here", "b is {'c': 0} there and None here",
    ]  # fmt: skip
