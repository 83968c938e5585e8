"""Batches: every image once, the same values with workers or without, nothing skipped in silence."""

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import pixels, sentence

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


@pytest.mark.parametrize("seed", range(5))
def test_batches_are_shuffled_by_the_seed(seed):
    first = [numbers(b) for b in numbered(100, 20, seed=seed)]
    assert first == [numbers(b) for b in numbered(100, 20, seed=seed)]
    assert first != [numbers(b) for b in numbered(100, 20, seed=seed + 1)]
    # As many images as come from the first half of a sorted folder are far from all or nothing.
    assert all(2 <= sum(i < 50 for i in batch) <= 18 for batch in first)


@pytest.mark.parametrize(("argument", "value"), [
    ("batch_size", 1), ("batch_size", 2.0), ("batch_size", True), ("batches", 0), ("batches", 1.5), ("seed", -1),
    ("workers", -1), ("workers", 1_000_000), ("batch_size", np.float64(4)), ("batches", np.bool_(True)), ("seed", "3"),
])  # fmt: skip
def test_bad_numbers_are_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument} is ") as error:
        load_dataset("random", preprocess=pixels, **{argument: value})
    sentence(error, repr(value))


def test_there_is_no_batch_beyond_the_last():
    assert len(numbered(100, 20, batches=5)) == 5
    with pytest.raises(ValueError, match="too few"):
        numbered(100, 20, batches=6)
    for k in (-1, 2):
        with pytest.raises(IndexError, match=f"no batch {k}; there are 2"):
            numbered(10, 5)[k]


@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_images_shrink_their_batch_only(workers):
    """Unreadable images shrink only their own batch, and each of them is listed once."""
    clean, batches = numbered(10, 5), numbered(10, 5, bad={3, 7}, workers=workers)
    bad = [{3, 7} & set(numbers(clean[k])) for k in range(2)]
    for _ in range(2):
        with pytest.warns(UserWarning, match="images cannot be read") as caught:
            got = list(batches.read([1, 0]))
        for k, (batch, entries) in zip((1, 0), got, strict=True):
            assert numbers(batch) == [i for i in numbers(clean[k]) if i not in bad[k]]
            assert {entry["file"] for entry in entries} == {f"{i}.png" for i in bad[k]}
        assert [str(warning.message)[:7] for warning in caught] == [f"batch {k}" for k in (1, 0) if bad[k]]
        assert sorted(entry["file"] for entry in batches.skipped) == ["3.png", "7.png"]
    assert batches.provenance["skipped"] == batches.skipped
    with pytest.raises(ValueError, match=r"4 of 5 images cannot be read.*fewer than two are left"):
        list(numbered(5, 5, bad={0, 1, 2, 3}, workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [5, 40])
def test_workers_change_no_value_and_no_order(workers, size):
    plain, parallel = numbered(120, size), numbered(120, size, workers=workers)
    assert [numbers(b) for b in parallel] == [numbers(b) for b in plain]
    assert torch.equal(parallel[1], plain[1])  # one alone is read in this process
    assert [numbers(b) for b, _ in parallel.read([2, 0])] == [numbers(plain[2]), numbers(plain[0])]
    assert list(parallel.read([])) == []


def test_images_are_read_in_other_processes_and_those_end(tmp_path):
    """A consumer that leaves early leaves no process behind, and what was not asked for is hardly begun."""
    read = tmp_path / "read"
    read.mkdir()

    def note(i):
        (tmp_path / str(os.getpid())).touch()
        (read / str(i)).touch()

    for batch in numbered(10_000, 20, workers=2, do=note):
        assert len(batch) == 20
        break
    assert 20 <= len(list(read.iterdir())) <= 4 * 20
    pids = {int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()}
    assert pids and os.getpid() not in pids
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]  # waited for, so not even zombies


def test_error_of_a_worker_is_raised_in_order():
    """An error in a worker is raised in the main process, after the batches before it."""

    def fail(i):
        if i >= 30:
            raise KeyError("as planned")

    got = numbered(None, 10, 5, workers=2, do=fail).read(range(5))
    assert [len(next(got)[0]) for _ in range(3)] == [10, 10, 10]
    with pytest.raises(KeyError, match="as planned"):
        next(got)


@pytest.mark.weekly  # waits for processes; only a new torch can change it
def test_a_dead_worker_is_an_error():
    """Killed, as the system does for lack of memory."""
    with pytest.raises(RuntimeError, match="worker"):
        list(numbered(200, 40, workers=2, do=lambda i: os.kill(os.getpid(), 9)))


@pytest.mark.parametrize("workers", [0, 2])
def test_images_of_a_batch_have_one_shape(workers):
    shapes = Batches(lambda i: torch.zeros(3, 1 + (i == 5), 1), None, 6, 1, 0, {"dataset": "shapes"}, workers)
    with pytest.raises(ValueError, match=r"same shape, but gave \[\(3, 1, 1\), \(3, 2, 1\)\]"):
        list(shapes)


def test_workers_leave_the_callers_random_numbers_alone():
    torch.manual_seed(0)
    first = torch.rand(1)
    torch.manual_seed(0)
    list(numbered(20, 5, workers=1))
    assert torch.rand(1) == first


def test_workers_need_fork(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ValueError, match="workers is 2; it should be 0 on this system"):
        numbered(10, 5, workers=2)
    assert len(numbered(10, 5)) == 2


@pytest.mark.gpu
def test_batches_of_workers_are_page_locked():
    assert all(batch.is_pinned() for batch in numbered(20, 5, workers=2))
