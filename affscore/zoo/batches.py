"""A seeded, shuffled sequence of batches of images or texts; each batch can be reproduced alone, and skips are listed.

A signature computes its scores over a batch, so the batch size is part of the result. Images are numbered. Image ``i``
depends only on the data set, the seed and ``i``, and batch ``k`` holds the images ``k * batch_size`` to
``(k + 1) * batch_size - 1``. With ``workers``, the processes of a ``torch.utils.data.DataLoader`` read whole batches
ahead, one batch for each process; the values do not change.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from affscore.arguments import whole_number
from affscore.errors import warn

__all__ = ["Batches", "UnreadableImage"]

WORKERS = 16 * (os.cpu_count() or 1)  # more would slow each other down and fill the memory

_Whole = tuple[Any, list[dict[str, str]]]  # a batch, and the entries of its unreadable images


class UnreadableImage(Exception):
    """An image file, given by its name and the reason, cannot be decoded. The batch continues without it."""


class Batches:
    """A sequence of batches, read on demand; a batch is a float32 tensor (n, 3, H, W), or what ``join`` makes of texts.

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
        return self._listed(k, *self._read_batch(k))[0]

    def __iter__(self) -> Iterator[Any]:
        return (batch for batch, _ in self.read(range(len(self))))

    def read(self, numbers: Sequence[int]) -> Iterator[_Whole]:
        """The batches with these numbers, in this order, each with the entries of its unreadable images."""
        whole = self._ahead(numbers) if self._workers else map(self._read_batch, numbers)
        return (self._listed(k, *read) for k, read in zip(numbers, whole, strict=True))

    def _ahead(self, numbers: Sequence[int]) -> Iterator[_Whole]:
        read: Any = self._read_batch  # it takes one number, but torch's types expect a list
        loader: Any = DataLoader(
            numbers, batch_size=None, collate_fn=read, num_workers=self._workers, prefetch_factor=1,  # type: ignore[arg-type]
            generator=torch.Generator(),  # the caller's random numbers stay as they are
            pin_memory=torch.cuda.is_available(),  # a GPU can fetch such a batch in the background
            multiprocessing_context="fork",  # so that `read` and the caller's preprocess need not be picklable
        )  # fmt: skip
        with warnings.catch_warnings():
            # Python 3.12 and later warn about forks with threads; a worker needs no lock that a thread may hold.
            warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
            batches = iter(loader)
        yield from batches

    def _images(self, k: int) -> Sequence[int]:
        """The numbers of the images in batch ``k``."""
        if not 0 <= k < len(self):
            raise IndexError(f"there is no batch {k}; there are {len(self)}, counted from 0.")
        places = range(k * self._size, (k + 1) * self._size)
        return places if self._order is None else self._order[places.start : places.stop].tolist()

    def _read_batch(self, k: int) -> _Whole:
        if self._join:
            return self._join([self._read(i) for i in self._images(k)]), []
        images, failed = [], []
        for i in self._images(k):
            try:
                images.append(self._read(i))
            except UnreadableImage as error:
                failed.append(dict(zip(("file", "reason"), error.args, strict=True)))
        if len(shapes := {tuple(image.shape[-3:]) for image in images}) > 1:
            raise ValueError(f"preprocess must give every image the same shape, but gave {sorted(shapes)}.")
        return torch.stack(images) if images else torch.empty(0), failed

    def _listed(self, k: int, batch: Any, failed: list[dict[str, str]]) -> _Whole:
        """Batch ``k``, after its unreadable images were listed; a warning names one of them."""
        self.skipped += [entry for entry in failed if entry not in self.skipped]
        if failed:
            example = f"{failed[0]['file']}: {failed[0]['reason']}"
            text = f"batch {k}: {len(failed)} of {self._size} images cannot be read (first {example})"
            if len(batch) < 2:
                raise ValueError(f"{text}; fewer than two are left, and a score needs two.")
            warn(f"{text}; the batch continues with {len(batch)}.")
        return batch, failed

    def __repr__(self) -> str:
        return f"Batches({self._provenance['dataset']!r}, {len(self)} of {self._size} {self._unit})"
