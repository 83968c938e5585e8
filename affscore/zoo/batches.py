"""A sequence of batches of images or texts: seeded, shuffled, each reproducible alone, with no silent skipping.

A signature computes its scores over a batch, so the batch size is part of the result. Images are numbered; image ``i``
depends only on the data set, the seed and ``i``, and batch ``k`` holds the images ``k * batch_size`` to
``(k + 1) * batch_size - 1``. With ``workers``, other processes decode and preprocess the images of the next batches;
the values are the same. (Torch's DataLoader is not used: if one of its workers dies, it raises in whatever code happens
to run. Here an error follows the batches before it.)
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np
import torch

from affscore.arguments import whole_number
from affscore.errors import warn

__all__ = ["Batches", "UnreadableImage"]

WORKERS = 16 * (os.cpu_count() or 1)  # more would slow each other down and fill the memory
PIECE = 16  # images that a worker process reads at a time: 10 MB at 224 x 224


class UnreadableImage(Exception):
    """An image file that cannot be decoded: its name and the reason. The batch continues without it."""


class Batches:
    """A sequence of batches, each a float32 tensor (n, 3, H, W) or the result of ``join`` for texts, read on demand.

    Iterating again, with or without workers, and ``batches[k]`` alone give the same values.

    Attributes
    ----------
    skipped
        One ``{"file": ..., "reason": ...}`` for each unreadable image so far. Its batch is smaller by one image; a
        warning says so.
    provenance
        The source of the images and ``skipped``, in values that JSON can hold.
    """

    def __init__(
        self,
        read: Callable[[int], Any],
        count: int | None,
        batch_size: int,
        batches: int | None,
        seed: int,
        provenance: dict[str, Any],
        workers: int = 0,
        join: Callable[[list[Any]], Any] | None = None,
    ):
        """``read(i)`` returns image i of ``count`` (None: endless), or a text for ``join``."""
        batch_size = whole_number("batch_size", batch_size, 2)
        batches = None if batches is None else whole_number("batches", batches, 1)
        seed = whole_number("seed", seed, 0)
        workers = whole_number("workers", workers, 0, WORKERS)
        if workers and "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError(f"workers is {workers}; it should be 0 on this system, which cannot fork processes.")
        if workers and join:
            raise ValueError(f"workers is {workers}; it should be 0 for texts, which one process reads fast enough.")
        self._read, self._size, self._workers, self._join = read, batch_size, workers, join
        self._unit = "texts" if join else "images"
        self._order = None if count is None else np.random.default_rng(seed).permutation(count)
        full = 1 if count is None else count // batch_size
        number = full if batches is None else batches
        if count is not None and batch_size * max(number, 1) > count:
            raise ValueError(
                f"dataset: {provenance['dataset']} has {count} {self._unit}, too few for "
                f"{max(number, 1)} x {batch_size}; choose a smaller batch_size or fewer batches."
            )
        self._number = number
        self.skipped: list[dict[str, str]] = []
        self._provenance = provenance | {"batch_size": batch_size, "batches": number, "seed": seed}

    @property
    def provenance(self) -> dict[str, Any]:
        return self._provenance | {"skipped": list(self.skipped)}

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, k: int) -> Any:
        return self._batch(k)[0]

    def __iter__(self) -> Iterator[Any]:
        return (batch for batch, _ in self.read(range(len(self))))

    def read(self, numbers: Sequence[int]) -> Iterator[tuple[Any, list[dict[str, str]]]]:
        """The batches with these numbers, in this order, each with the entries of its unreadable images."""
        return self._read_ahead(numbers) if self._workers else map(self._batch, numbers)

    def _images(self, k: int) -> Sequence[int]:
        """The numbers of the images in batch ``k``."""
        if not 0 <= k < len(self):
            raise IndexError(f"there is no batch {k}; there are {len(self)}, counted from 0.")
        places = range(k * self._size, (k + 1) * self._size)
        return places if self._order is None else self._order[places.start : places.stop].tolist()

    def _batch(self, k: int) -> tuple[Any, list[dict[str, str]]]:
        if self._join:
            return self._join([self._read(i) for i in self._images(k)]), []
        return self._joined(k, [_read_piece(self._read, self._images(k))])

    def _read_ahead(self, numbers: Sequence[int]) -> Iterator[tuple[torch.Tensor, list[dict[str, str]]]]:
        """Worker processes read pieces of batches, up to one batch ahead."""
        step = min(PIECE, math.ceil(self._size / self._workers))
        starts = range(0, self._size, step)
        tasks = ((k, start) for k in numbers for start in starts)
        # Forked, so that `read` and the caller's preprocess need not be picklable.
        fork = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(self._workers, fork, initializer=_start_worker, initargs=(self._read,))
        running: deque[Future[_Piece]] = deque()
        k = 0
        try:
            with warnings.catch_warnings():
                # Python 3.12 and later warn about forks with threads; a worker needs no lock that a thread may hold.
                warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
                pool.submit(int)
            for k in numbers:
                pieces = []
                for _ in starts:
                    while len(running) < len(starts) + self._workers and (task := next(tasks, None)):
                        images = self._images(task[0])[task[1] : task[1] + step]
                        running.append(pool.submit(_read_piece_in_worker, images))
                    pieces.append(running.popleft().result())
                yield self._joined(k, pieces)
        except BrokenProcessPool as error:
            raise OSError(
                f"batch {k}: a worker process that reads images died, killed perhaps for lack of memory or of shared "
                "memory (/dev/shm); use fewer workers, or none."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)

    def _joined(self, k: int, pieces: Sequence[_Piece]) -> tuple[torch.Tensor, list[dict[str, str]]]:
        """Batch ``k`` from its pieces, and its unreadable images, which are listed; a warning names them."""
        images = [piece for piece, _ in pieces if piece is not None]
        failed = [entry for _, entries in pieces for entry in entries]
        self.skipped += [entry for entry in failed if entry not in self.skipped]
        if failed:
            left = sum(map(len, images))
            example = f"{failed[0]['file']}: {failed[0]['reason']}"
            text = f"batch {k}: {len(failed)} of {self._size} images cannot be read (first {example})"
            if left < 2:
                raise ValueError(f"{text}; fewer than two are left, and a score needs two.")
            warn(f"{text}; the batch goes on with {left}.")
        _check_shapes(images)
        if not self._workers:
            return images[0], failed
        # A copy out of the workers' shared memory, page-locked if a GPU can then fetch it in the background.
        batch = torch.empty(
            (sum(map(len, images)), *images[0].shape[1:]), dtype=images[0].dtype, pin_memory=torch.cuda.is_available()
        )
        return torch.cat(images, out=batch), failed

    def __repr__(self) -> str:
        return f"Batches({self._provenance['dataset']!r}, {len(self)} of {self._size} {self._unit})"


_Piece = tuple[torch.Tensor | None, list[dict[str, str]]]  # images (m, 3, H, W), and the unreadable ones


def _read_piece(read: Callable[[int], torch.Tensor], numbers: Sequence[int]) -> _Piece:
    images, failed = [], []
    for i in numbers:
        try:
            images.append(read(i))
        except UnreadableImage as error:
            failed.append(dict(zip(("file", "reason"), error.args, strict=True)))
    _check_shapes(images)
    return torch.stack(images) if images else None, failed


def _check_shapes(images: Sequence[torch.Tensor]) -> None:
    if len(shapes := {tuple(image.shape[-3:]) for image in images}) > 1:
        raise ValueError(f"preprocess must give every image the same shape, but gave {sorted(shapes)}.")


_read_in_worker: Callable[[int], torch.Tensor]  # set in every worker process


def _start_worker(read: Callable[[int], torch.Tensor]) -> None:
    global _read_in_worker
    _read_in_worker = read
    torch.set_num_threads(1)  # the processes run in parallel, and OpenMP's threads do not survive a fork
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End with the parent: if that is killed, a worker would wait forever and keep its files and locks open."""
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


def _read_piece_in_worker(numbers: Sequence[int]) -> _Piece:
    return _read_piece(_read_in_worker, numbers)
