"""Batches: every image once, the same values with workers or without, nothing skipped in silence."""

import json
import multiprocessing
import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.datasets
from grids import each
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import damage, noise_images, pixels, sentence

from affscore.zoo.batches import Batches, UnreadableImage
from affscore.zoo.datasets import load_dataset


def numbered(count, size, batches=None, seed=0, bad=(), workers=0, do=None):
    """Batches of images that carry nothing but their number; ``do(i)`` is called before image i is read."""

    def read(i):
        if do:
            do(i)
        if i in bad:
            raise UnreadableImage(f"{i}.png", "planted")
        return torch.full((3, 1, 1), float(i))

    return Batches(read, count, size, batches, seed, {"dataset": "numbers"}, workers)


def numbers(batch):
    return batch[:, 0, 0, 0].int().tolist()


@settings(max_examples=50, deadline=None)
@given(count=st.integers(2, 60), size=st.integers(2, 20), seed=st.integers(0, 2**31))
def test_every_image_is_drawn_at_most_once_and_batches_are_full(count, size, seed):
    if size > count:
        with pytest.raises(ValueError, match=f"{count} images, too few"):
            numbered(count, size, seed=seed)
        return
    batches = numbered(count, size, seed=seed)
    drawn = [i for batch in batches for i in numbers(batch)]
    assert len(batches) == count // size and len(drawn) == size * len(batches)
    assert len(set(drawn)) == len(drawn) and set(drawn) <= set(range(count))
    assert [numbers(batches[k]) for k in reversed(range(len(batches)))][::-1] == [numbers(b) for b in batches]


@each("seed", range(5))
def test_batches_are_shuffled_by_the_seed(seed):
    first = [numbers(b) for b in numbered(100, 20, seed=seed)]
    assert first == [numbers(b) for b in numbered(100, 20, seed=seed)]
    assert first != [numbers(b) for b in numbered(100, 20, seed=seed + 1)]
    # As many images as come from the first half of a sorted folder are far from all or nothing.
    assert all(2 <= sum(i < 50 for i in batch) <= 18 for batch in first)


@each(("argument", "value"), [
    ("batch_size", 1), ("batch_size", 0), ("batch_size", 2.0), ("batch_size", True),
    ("batches", 0), ("batches", -1), ("batches", 1.5), ("seed", -1), ("workers", -1), ("workers", 2.0),
    ("batch_size", np.float64(4)), ("batches", np.bool_(True)), ("seed", "3"), ("seed", None),
])  # fmt: skip
def test_bad_numbers_are_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument} is ") as error:
        load_dataset("random", preprocess=pixels, **{argument: value})
    sentence(error, repr(value))


def test_more_workers_than_any_machine_has_are_refused():
    """And not begun: a million processes would be started at once."""
    with pytest.raises(ValueError, match=r"^workers is 1000000; .* whole number from 0 to "):
        numbered(100, 20, workers=1_000_000)


def test_numbers_of_numpy_are_numbers():
    plain, other = numbered(100, 20, 3, 4), numbered(100, np.int64(20), np.uint8(3), np.int32(4), workers=np.int16(0))
    assert [numbers(b) for b in plain] == [numbers(b) for b in other]
    assert json.dumps(plain.provenance) == json.dumps(other.provenance)


def test_too_many_batches_are_refused():
    assert len(numbered(100, 20, batches=5)) == 5
    with pytest.raises(ValueError, match="too few"):
        numbered(100, 20, batches=6)


@each("k", [-1, 2])
def test_there_is_no_batch_beyond_the_last(k):
    with pytest.raises(IndexError, match=f"no batch {k}"):
        numbered(10, 5)[k]


def test_unreadable_images_shrink_their_batch_only_and_are_listed_once():
    clean, batches = numbered(10, 5), numbered(10, 5, bad={3, 7})
    for _ in range(2):
        got = []
        for k in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                got.append(numbers(batches[k]))
            bad = {3, 7} & set(numbers(clean[k]))
            assert [i for i in numbers(clean[k]) if i not in bad] == got[k]
            assert len(caught) == bool(bad) and all(f"batch {k}" in str(w.message) for w in caught)
        assert sorted(entry["file"] for entry in batches.skipped) == ["3.png", "7.png"]
    assert batches.provenance["skipped"] == batches.skipped


def test_a_batch_with_fewer_than_two_images_left_is_an_error():
    with pytest.raises(ValueError, match="4 of 5 images cannot be read"):
        numbered(5, 5, bad={0, 1, 2, 3})[0]


def test_preprocess_must_give_one_shape():
    batches = load_dataset(
        "photographs", preprocess=lambda image: pixels(image, (image.width % 7 + 1, 3)), batch_size=20
    )
    with pytest.raises(ValueError, match="same shape"):
        batches[0]


def test_batches_fit_a_data_loader():
    batches = numbered(20, 5)
    loaded = list(torch.utils.data.DataLoader(batches, batch_size=None))
    assert all(torch.equal(a, b) for a, b in zip(loaded, batches, strict=True))


def test_a_selection_gives_the_batches_of_the_whole():
    whole = numbered(60, 6, bad={7})
    everything = [numbers(whole[k]) for k in range(10) if 7 not in whole._images(k)]
    assert len(everything) == 9
    parts = [whole.select(range(rank, 10, 3)) for rank in range(3)]
    assert [part.indices for part in parts] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert [len(part) for part in parts] == [4, 3, 3]
    (bad,) = [k for k in range(10) if 7 in whole._images(k)]
    with pytest.warns(UserWarning, match=f"batch {bad}: 1 of 6"):
        got = {k: numbers(batch) for part in parts for k, batch in zip(part.indices, part, strict=True)}
    assert [got[k] for k in range(10) if k != bad] == everything
    assert whole.skipped == parts[bad % 3].skipped == [{"file": "7.png", "reason": "planted"}]
    assert parts[0].select([2, 0]).indices == [6, 0] and numbers(parts[0].select([2])[0]) == got[6]
    assert list(whole.select([])) == [] and whole.indices == range(10)
    for places in ([10], [-1]):
        with pytest.raises(IndexError, match=r"there is no batch .*; there are 10") as error:
            whole.select(places)
        sentence(error)


@each("workers", [1, 2, 5])
@each("size", [5, 40])
def test_workers_change_no_value_and_no_order(workers, size):
    plain, parallel = numbered(120, size), numbered(120, size, workers=workers)
    assert [numbers(b) for b in parallel] == [numbers(b) for b in plain]
    assert torch.equal(parallel[1], plain[1])  # one alone is read in this process
    part = parallel.select([2, 0])
    assert [numbers(b) for b in part] == [numbers(plain[2]), numbers(plain[0])]
    assert list(parallel.select([])) == []


def test_real_images_are_the_same_bits_with_workers(tmp_path):
    noise_images(tmp_path, [f"{i}.jpg" for i in range(12)], 30, 40)
    damage("truncated", tmp_path / "3.jpg")
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    load = partial(load_dataset, tmp_path, preprocess=weights.transforms(crop_size=16, resize_size=20), batch_size=6)
    results = []
    for workers in (0, 2):
        batches = load(workers=workers)
        with pytest.warns(UserWarning, match=r"1 of 6 images cannot be read .*3\.jpg") as caught:
            got = list(batches)
        assert [entry["file"] for entry in batches.skipped] == ["3.jpg"] and len(caught) == 1
        results.append((got, batches.provenance))
    assert results[0][1] == results[1][1]
    assert all(torch.equal(a, b) for a, b in zip(results[0][0], results[1][0], strict=True))


def test_images_are_read_in_other_processes_and_those_end(tmp_path):
    def note(i):
        (tmp_path / str(os.getpid())).touch()

    list(numbered(200, 40, workers=2, do=note))
    pids = {int(path.name) for path in tmp_path.iterdir()}
    assert pids and os.getpid() not in pids
    # A consumer that leaves early leaves no process behind, and what was not asked for is hardly begun.
    read = tmp_path / "read"
    read.mkdir()

    def count(i):
        note(i)
        (read / str(i)).touch()

    for batch in numbered(10_000, 20, workers=2, do=count):
        assert len(batch) == 20
        break
    assert 20 <= len(list(read.iterdir())) <= 3 * 20
    pids = {int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()}
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]  # waited for, so not even zombies
    assert not multiprocessing.active_children()


def test_a_dead_worker_ends_in_a_sentence_after_the_batches_before_it():
    """Killed, as the system does for lack of memory."""
    victim = numbered(200, 40)._images(3)[17]
    batches = numbered(200, 40, workers=2, do=lambda i: os.kill(os.getpid(), 9) if i == victim else None)
    got = []
    with pytest.raises(OSError, match="a worker process that reads images died") as error:
        for batch in batches:
            got.append(numbers(batch))
    sentence(error, "/dev/shm", "fewer workers", f"batch {len(got)}")
    assert 1 <= len(got) <= 3 and got == [numbers(numbered(200, 40)[k]) for k in range(len(got))]
    assert not multiprocessing.active_children()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    def note(i):
        (tmp_path / str(os.getpid())).touch()

    batches = numbered(200, 40, workers=2, do=note)
    if not (child := os.fork()):
        try:
            for _ in batches:
                os.kill(os.getpid(), 9)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert pids and child not in pids

    def running(pid):
        """Dead ones may stay in the table until whoever adopted them looks."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + 60
    while any(map(running, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(running, pids))


def test_errors_in_workers_are_those_of_one_process():
    class Odd(Exception):
        """Cannot be pickled: it is local."""

    def fail(i):
        if i == 30:
            raise KeyError("as planned")
        if i == 31:
            raise Odd("as planned too")

    assert [len(batch) for batch in numbered(None, 10, 3, workers=2, do=fail)] == [10, 10, 10]
    with pytest.raises(KeyError, match="as planned"):
        list(numbered(None, 10, 4, workers=2, do=fail))
    with pytest.raises(Exception, match=r"as planned too|pickle"):
        list(numbered(None, 31, 2, workers=2, do=fail).select([1]))
    with pytest.raises(ValueError, match=r"4 of 5 images cannot be read.*fewer than two are left"):
        list(numbered(5, 5, bad={0, 1, 2, 3}, workers=2))
    for workers in (0, 1, 3):
        shapes = Batches(lambda i: torch.zeros(3, 1 + (i == 5), 1), None, 6, 1, 0, {"dataset": "shapes"}, workers)
        with pytest.raises(ValueError, match=r"same shape, but gave \[\(3, 1, 1\), \(3, 2, 1\)\]"):
            list(shapes)


def test_workers_need_fork(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ValueError, match="workers is 2; it should be 0 on this system"):
        numbered(10, 5, workers=2)
    assert len(numbered(10, 5)) == 2


@pytest.mark.gpu
def test_batches_of_workers_are_page_locked():
    assert all(batch.is_pinned() for batch in numbered(20, 5, workers=2))
