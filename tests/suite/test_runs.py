"""Runs that are killed, fail, or are shared by several processes end with the bits of one that was left alone."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import noise_images
from PIL import Image
from small_ranks import SUITE
from small_run import BATCHES, SETTINGS, data, files, network, run
from torch import nn

from affscore import Signature, signature
from affscore.cli import main as cli
from affscore.settings import Settings
from affscore.suite import runs
from affscore.suite.ranks import RunError
from affscore.suite.records import RecordError, merge, names, progress_of, read_batches
from affscore.suite.runs import weights_checksum
from affscore.zoo.datasets import load_dataset

HERE = Path(__file__).parent
RECORDS = Path("records") / "small"


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
    for found in (Signature.load(whole / "small.json"), merge(whole, "small")):
        assert np.isnan(found.scores[:, -1]).all() and not np.isnan(found.scores[:, :-1]).any()
        assert np.array_equal(found.scores, expected.scores, equal_nan=True)
        assert found.companions.keys() == expected.companions.keys()
        for name, values in expected.companions.items():
            assert np.array_equal(found.companions[name], values, equal_nan=True)
        assert found.calls == expected.calls and found.excluded == expected.excluded
        assert found.batch_sizes == expected.batch_sizes
    assert progress_of(whole, "small") == (BATCHES, BATCHES)
    assert names(whole) == ["small"] and len(files(whole)) == 1 + BATCHES


def test_an_infinite_companion_measure_is_an_error_before_it_is_recorded(tmp_path, monkeypatch):
    """A signature could not hold it: the run would be lost when all is measured."""
    real = runs.batch_results

    def odd(*args, **options):
        for result in real(*args, **options):
            result.companions["cka"][1] = np.inf if result.index == 2 else np.nan
            yield result

    monkeypatch.setattr(runs, "batch_results", odd)
    with pytest.raises(RunError, match=r"cka holds inf.*2 of 10 batches are kept"):
        run(tmp_path, settings=Settings(companions=["cka"]))
    assert all(np.isnan(result.companions["cka"][1]) for result, _ in read_batches(tmp_path, "small")[1].values())


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
    (whole / "small.json").unlink()
    run(whole)
    assert files(whole) == before


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
    assert said[1:] == [f"Going on from 3 of 10 batches: {same}, versions."]


@pytest.mark.parametrize("finished", [True, False])
def test_data_of_the_same_names_and_sizes_are_other_data(tmp_path, finished):
    """Uncompressed images, of which one gets another pixel."""
    folder = noise_images(tmp_path / "images", [f"{i}.bmp" for i in range(8)], 8, 8)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())

    def load():
        return load_dataset(folder, preprocess=as_tensor, batch_size=4)

    runs.run(model, load(), tmp_path, "small")
    if not finished:
        (tmp_path / "small.json").unlink()
        (tmp_path / RECORDS / "batch-00001.json").unlink()
    before, image = files(tmp_path), folder / "5.bmp"
    pixels = bytearray(image.read_bytes())
    pixels[-1] ^= 1
    image.write_bytes(pixels)
    with pytest.raises(RecordError, match=r"of another run: provenance\.data\.sha256 is '\w+' there and '\w+' here\."):
        runs.run(model, load(), tmp_path, "small")
    assert files(tmp_path) == before


def test_a_run_in_progress_is_not_begun_anew(whole, tmp_path):
    refused = []

    def restart():
        with pytest.raises(RecordError, match="is being written by another process; wait for it to end") as caught:
            run(tmp_path, restart=True, settings=replace(SETTINGS, pool="trailing"))
        refused.append(caught)

    runs.run(network(), Meddled(data(), 4, restart), tmp_path, "small", settings=SETTINGS)
    assert len(refused) == 1 and files(tmp_path) == files(whole)
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["small"]


@pytest.mark.parametrize("kept", [True, False], ids=["records", "signature alone"])
def test_of_two_different_runs_at_once_none_replaces_the_other(whole, tmp_path, kept):
    """The other begins and ends while the first is at its second batch, before it has written one."""
    other = replace(SETTINGS, pool="trailing")

    def meddle():
        run(tmp_path, settings=other)
        if not kept:
            shutil.rmtree(tmp_path / RECORDS)
            (tmp_path / RECORDS).mkdir()
        there.update(files(tmp_path))

    there = {}
    error = RunError if kept else RecordError
    with pytest.raises(error, match="of another run: pool is 'trailing' there and 'spatial' here"):
        runs.run(network(), Meddled(data(), 1, meddle), tmp_path, "small", settings=SETTINGS)
    found = files(tmp_path)
    assert {name: found[name] for name in there} == there and "small.json" in there


def test_killed_at_any_moment_it_ends_bit_for_bit_the_same(tmp_path):
    """kill -9, two of three within a write of a record: when only a part of the new file is there. And three processes
    that write to one folder at the same time, without knowing of each other."""
    kills = 12 if os.environ.get("AFFSCORE_WEEKLY") else 4
    command = [sys.executable, str(HERE / "small_run.py"), str(tmp_path), str(kills), "0"]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # no other threads where processes are forked
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=one_thread)
    assert done.returncode == 0 and done.stderr == ""
    log = json.loads(done.stdout)
    assert log["inside"] + log["outside"] >= kills
    assert 2 * log["inside"] >= log["inside"] + log["outside"]
    assert log["parts"] >= log["inside"]  # each of them did leave a part of a file
    assert len(log["same"]) >= 1 and all(log["same"])
    assert log["writers"] == [0, 0, 0] and log["several"]


@pytest.mark.parametrize("at", [1, 4, BATCHES - 1])
def test_failed_batch_keeps_those_before_it(whole, tmp_path, at):
    error = stopped(tmp_path, at)
    assert f"batch {at} " in str(error) and "planted" in str(error)
    assert f"{at} of {BATCHES} batches are kept in {tmp_path / 'records'}" in str(error)
    assert progress_of(tmp_path, "small") == (at, BATCHES)
    assert not (tmp_path / "small.json").exists()
    run(tmp_path)
    assert files(tmp_path) == files(whole)


def test_interruption_by_the_keyboard_keeps_what_is_finished(whole, tmp_path):
    error = stopped(tmp_path, 6, KeyboardInterrupt)
    assert isinstance(error, KeyboardInterrupt) and str(error).startswith("interrupted. ")
    done, _ = progress_of(tmp_path, "small")
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


def test_network_that_fails_on_a_batch(whole, tmp_path):
    batches = data()
    batches[5][3, 2] = torch.inf
    with pytest.raises(RunError, match=r"batch 5.*infinite.*5 of 10 batches are kept"):
        runs.run(network(), batches, tmp_path, "small", settings=SETTINGS)
    run(tmp_path)
    assert files(tmp_path) == files(whole)


@pytest.fixture
def images(tmp_path):
    """A folder of 24 images."""
    return noise_images(tmp_path / "images", [f"{i:02}.png" for i in range(24)], 8, 8)


def as_tensor(image):
    return torch.from_numpy(np.array(image, dtype=np.float32).transpose(2, 0, 1))


def test_dead_data_worker_keeps_what_is_finished(images, tmp_path):
    """The process that is to read a certain image is killed, as the system does where memory runs out."""
    torch.manual_seed(0)
    model, this = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), os.getpid()
    whole = load_dataset(images, preprocess=as_tensor, batch_size=6)
    doomed = as_tensor(Image.open(images / "13.png").convert("RGB"))
    at = next(k for k in range(4) if (whole[k] == doomed).flatten(1).all(1).any())

    def deadly(image):
        if os.getpid() != this and torch.equal(as_tensor(image), doomed):
            os.kill(os.getpid(), signal.SIGKILL)
        return as_tensor(image)

    batches = load_dataset(images, preprocess=deadly, batch_size=6, workers=1)
    with pytest.raises(RunError, match=r"a worker process that reads images died.*of 4 batches are kept"):
        runs.run(model, batches, tmp_path / "a", "small")
    done, total = progress_of(tmp_path / "a", "small")
    assert at - 1 <= done <= at and total == 4  # one process reads ahead of the batch that it dies with
    runs.run(model, whole, tmp_path / "a", "small")
    runs.run(model, whole, tmp_path / "b", "small")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_unreadable_images_are_skipped_and_listed_with_their_batch(images, tmp_path, recwarn):
    for i in (3, 17):
        (images / f"{i:02}.png").write_bytes(b"broken")
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())

    def load():
        return load_dataset(images, preprocess=as_tensor, batch_size=6)

    whole = runs.run(model, load(), tmp_path / "a", "small")
    batches = load()
    whole_again = runs.run(model, batches, tmp_path / "b", "small")
    lines = read_batches(tmp_path / "a", "small")[1]
    for k, (result, skipped) in lines.items():
        alone = load()
        assert result.size == len(alone[k]) and skipped == alone.skipped
    assert sorted(image["file"] for image in whole.provenance["data"]["skipped"]) == ["03.png", "17.png"]
    assert whole.batch_sizes == [lines[k][0].size for k in range(4)] and sum(whole.batch_sizes) == 22
    # Resumed with the very object that has met the images already.
    for k in (1, 2, 3):
        (tmp_path / "b" / RECORDS / f"batch-{k:05}.json").unlink()
    (tmp_path / "b" / "small.json").unlink()
    runs.run(model, batches, tmp_path / "b", "small")
    assert files(tmp_path / "a") == files(tmp_path / "b") and np.array_equal(whole.scores, whole_again.scores)


@pytest.mark.parametrize(("lost", "signature_too", "named"), [
    ([3], False, "batch 3"), ([9], False, "batch 9"), ([0, 5], True, "batch 0, 5"), ([9], True, None),
])  # fmt: skip
def test_lost_records_are_measured_again_and_named(whole, tmp_path, lost, signature_too, named):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    for k in lost:
        (tmp_path / RECORDS / f"batch-{k:05}.json").unlink()
    if signature_too:
        (tmp_path / "small.json").unlink()
    if named:
        with pytest.warns(UserWarning, match=f"records/small lacks {named}; it is measured again"):
            run(tmp_path)
    else:
        run(tmp_path)  # as if it had not come so far
    assert files(tmp_path) == files(whole)


def spoil_weight(options, monkeypatch):
    options["model"][0].weight.data[0, 0] += 1e-7


def spoil_data(options, monkeypatch):
    options["batches"][0][0, 0] += 1e-6


def spoil_versions(options, monkeypatch):
    monkeypatch.setattr(runs, "versions", lambda: {"affscore": "0.0.1"})


def spoil_threads(options, monkeypatch):
    monkeypatch.setattr(runs.torch, "get_num_threads", lambda: 17)
    monkeypatch.setattr(runs.torch, "set_num_threads", lambda number: None)  # or 17 would be restored for real


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
    with pytest.raises(RecordError) as caught:
        runs.run(folder=tmp_path, name="small", **options)
    text = str(caught.value)
    assert named in text and text.endswith(".")
    if "versions" not in named:
        assert text.count(" there and ") == 1  # and nothing else
    assert files(tmp_path) == before
    # Begun anew on request, with the old records kept.
    runs.run(folder=tmp_path, name="small", restart=True, **options)
    aside = tmp_path / "records" / "small.old1"
    assert {f"records/small/{path.name}": path.read_bytes() for path in aside.iterdir()} == before
    assert (tmp_path / "small.json").exists()


def test_finished_signature_of_another_run_is_not_overwritten(whole, tmp_path):
    shutil.copy(whole / "small.json", tmp_path)
    before = (tmp_path / "small.json").read_bytes()
    with pytest.raises(RecordError, match="signature of another run: pool is 'spatial' there and 'trailing' here"):
        run(tmp_path, settings=replace(SETTINGS, pool="trailing"))
    assert (tmp_path / "small.json").read_bytes() == before and progress_of(tmp_path, "small") == (0, 0)
    for number in (1, 2):
        run(tmp_path, restart=True)
        assert (tmp_path / f"small.json.old{number}").read_bytes() == before
    assert files(tmp_path) == files(whole)


@pytest.mark.parametrize("change", [
    lambda data: data.replace(b"relu", b"gelu"),
    lambda data: data.replace(b'"size": 16', b'"size": 61'),
    lambda data: data.replace(b"spatial", b"trailing"),
    lambda data: data[:-9],
    lambda data: b"",
])  # fmt: skip
def test_damaged_record_is_an_error_and_stays_as_it_is(whole, tmp_path, change):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    path = tmp_path / RECORDS / "batch-00004.json"
    path.write_bytes(change(path.read_bytes()))
    before = files(tmp_path)
    assert before != files(whole)
    for attempt in (lambda: run(tmp_path), lambda: merge(tmp_path, "small"), lambda: progress_of(tmp_path, "small")):
        with pytest.raises(RecordError, match=r"batch-00004\.json is damaged"):
            attempt()
    assert files(tmp_path) == before
    path.unlink()  # as the message says
    with pytest.warns(UserWarning, match="lacks batch 4"):
        run(tmp_path)
    assert files(tmp_path) == files(whole)


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


@pytest.mark.parametrize("change", [
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
    with pytest.raises(RecordError, match="network_sha256"):
        runs.run(network(other), batches, tmp_path, "m")
    runs.run(network(one), batches, tmp_path, "m")


def test_checksum_of_the_weights_takes_any_dtype():
    net = nn.Linear(3, 2).to(torch.bfloat16)
    net.register_buffer("count", torch.tensor(3))
    before = weights_checksum(net)
    net.count += 1
    assert weights_checksum(net) != before


@pytest.fixture(scope="module")
def two(tmp_path_factory, whole):
    """The folder in which two processes have done what small_ranks.py says."""
    folder = tmp_path_factory.mktemp("two")
    stopped(folder / "resumed", 3)
    for rank in range(2):
        stopped(folder / f"damaged{rank}", 2)
    path = folder / "damaged1" / RECORDS / "batch-00001.json"
    path.write_bytes(path.read_bytes()[:-1])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(HERE / "small_ranks.py"), str(folder)]
    # torchrun would set one thread; on the CPU their number is part of what must be the same.
    threads = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=threads)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def logs(two):
    return [json.loads((two / f"log.{rank}.json").read_text()) for rank in range(2)]


def batches_in(folder, name="small"):
    return sorted(read_batches(folder, name)[1])


@pytest.mark.weekly
def test_two_processes_give_the_result_of_one(whole, two, logs):
    assert [log["ranks"] for log in logs] == [[0, 2, 0], [1, 2, 1]]
    assert files(two / "fresh") == files(two / "resumed") == files(whole)
    expected = str(Signature.load(whole / "small.json").scores.tolist())
    for log in logs:
        assert log["fresh"] == log["resumed"] == log["apart"] == expected


@pytest.mark.weekly
def test_machines_without_a_common_disk(whole, two, tmp_path):
    """Rank 0 has the signature; each has the records of its batches, and they can be copied together afterwards."""
    assert (two / "machine0" / "small.json").read_bytes() == (whole / "small.json").read_bytes()
    assert not (two / "machine1" / "small.json").exists()
    for rank in range(2):
        assert batches_in(two / f"machine{rank}") == list(range(rank, BATCHES, 2))
    with pytest.raises(RecordError, match="hold 5 of 10 batches; missing 1, 3, 5, 7, 9"):
        merge(two / "machine0", "small")
    for rank in range(2):
        shutil.copytree(two / f"machine{rank}" / "records", tmp_path / "records", dirs_exist_ok=True)
    merge(tmp_path, "small").save(tmp_path / "small.json")
    assert files(tmp_path) == files(whole)


@pytest.mark.weekly
def test_failure_of_one_process_ends_the_others_too(two, logs):
    assert "batch 3" in logs[1]["spoiled"] and "NaN" in logs[1]["spoiled"]
    assert logs[0]["spoiled"].startswith("RunError: rank 1 failed: ") and "batch 3" in logs[0]["spoiled"]
    aside = {path.name for path in (two / "spoiled" / "records" / "small.old1").iterdir()}
    assert "batch-00001.json" in aside and "batch-00003.json" not in aside  # what was finished before the failure
    assert logs[0]["restarted"] == logs[1]["restarted"] == logs[0]["fresh"]
    assert "batch-00001.json is damaged" in logs[1]["damaged"]
    assert logs[0]["damaged"].startswith("RunError: rank 1 failed: ")
    assert logs[0]["first"] == [False, True]


@pytest.mark.weekly
def test_processes_with_different_settings_say_so(two, logs):
    assert "rank 1 (there) and rank 0 (here) differ: provenance.precision is 'bf16' there" in logs[0]["unlike"]
    assert "rank 0 (there) and rank 1 (here) differ: provenance.precision is 'full' there" in logs[1]["unlike"]
    assert not files(two / "unlike")


@pytest.mark.weekly
def test_suite_of_two_processes(two, logs, tmp_path, capsys):
    assert [log["suite"] for log in logs] == [0, 0]
    assert "1 of 1 signatures" in logs[0]["printed"] and logs[1]["printed"] == ""
    assert cli.main([*SUITE, str(tmp_path)]) == 0
    ours, theirs = (folder / "squeezenet1_1.json" for folder in (tmp_path, two / "suite"))
    assert ours.read_bytes() == theirs.read_bytes()
    assert batches_in(two / "suite", "squeezenet1_1") == [0, 1]


def test_nothing_is_kept_where_the_first_batch_fails(tmp_path):
    batches = data()
    batches[0][0] = torch.nan
    with pytest.raises(RunError, match=r"0 of 10 batches are kept"):
        runs.run(network(), batches, tmp_path, "small")
    with pytest.raises(FileNotFoundError, match="there is no record of small"):
        merge(tmp_path, "small")
