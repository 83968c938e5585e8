"""A signature whose finished batches are kept, so that an interrupted run can resume.

:func:`run` computes the same as :func:`affscore.signature`. It keeps the finished batches in the file of the network.
A second call measures the missing batches and ends with the same bits as an uninterrupted run with the same machine,
versions and settings, which it checks (:mod:`affscore_study.suite.requests`). A folder of a run holds::

    resnet50.json                a finished signature (affscore.Signature.load)
    swin_t.json.partial          the first batches of an unfinished one
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn

from affscore.measuring import batch_results, resolve_device
from affscore.settings import Settings
from affscore.signatures import TOTAL, BatchResult, Signature, read_signature
from affscore.zoo.batches import Batches
from affscore_study.suite.requests import (
    RunError,
    check_same,
    differences,
    is_finished,
    request,
    request_of,
)

__all__ = ["PAUSE", "file_name", "progress_of", "run", "set_aside"]

#: The least number of seconds between writes, so that small batches do not spend their time on the disk. A process that
#: is killed loses at most the batches since the last write and the one being measured.
PAUSE = 10.0


def file_name(model: str) -> str:
    """The file name for a network, without an ending; only the last part of a path is kept.

    >>> file_name("resnet50"), file_name("timm:vit_tiny_patch16_224.augreg_in21k"), file_name("hf:~/models/tiny-bert")
    ('resnet50', 'timm-vit_tiny_patch16_224.augreg_in21k', 'hf-tiny-bert')
    """
    hub, colon, name = model.rpartition(":")
    return re.sub(r"[^\w.-]", "-", hub + colon + os.path.basename(os.path.normpath(name)))


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.json", folder / f"{name}.json.partial"


def run(
    model: nn.Module,
    batches: Batches | Sequence[Any],
    folder: str | os.PathLike[str],
    name: str,
    *,
    settings: Settings | None = None,
    device: str | torch.device | None = None,
    provenance: Mapping[str, Any] | None = None,
    restart: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Signature:
    """The signature of a network. Finished batches are kept, and a run resumes where an earlier one ended.

    The book's chapter ``imagenet_signatures`` explains the average.

    Parameters
    ----------
    model, device, provenance
        As for :func:`affscore.signature`.
    batches
        A sequence of batches: a list, or the result of :func:`affscore.zoo.datasets.load_dataset`. Finished batches
        are not read again, except the first of a list, which is compared.
    folder, name
        The result is written to ``folder/name.json``, and an unfinished one to ``folder/name.json.partial``.
    settings
        How the network is measured; by default ``affscore.settings.Settings()``.
    restart
        Start again. Old files are renamed, not deleted.
    progress
        Called with the number of batches already finished, then with 1 after each further one.

    The provenance of the signature has no times, so that runs can be compared.

    Raises
    ------
    RunError
        If a batch fails (a damaged image is skipped instead, and listed in the provenance), a data worker dies, a file
        is damaged, another process measures the same network, or the file belongs to a run that differs in anything
        that the result may depend on; the error names the differences.
    OSError
        If the file cannot be written, for instance because the disk is full.
    KeyboardInterrupt
        If the keyboard interrupts. This error, OSError and RunError give the number of batches that are kept.
    TypeError, ValueError
        If ``batches`` is not a sequence of batches or is empty, or ``name`` cannot be the name of a file.

    Examples
    --------
    >>> import tempfile
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> data = list(torch.randn(3, 64, 8))                                  # three batches (64, 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run(model, data, folder, "small")
    ...     Signature.load(f"{folder}/small.json").scores.tolist() == result.scores.tolist()
    True
    """
    folder, settings = Path(folder), settings or Settings()
    sequence = hasattr(batches, "__len__") and hasattr(batches, "__getitem__")
    if isinstance(batches, torch.Tensor | Mapping | str) or not sequence:
        raise TypeError(f"batches is a {type(batches).__name__}; it should be a sequence of batches, such as a list.")
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise ValueError(f"name is {name!r}; it should be usable as the name of a file.")
    if not len(batches):
        raise ValueError("batches is empty; it should hold at least one batch.")
    if restart:
        set_aside(folder, name)
    asked = request(model, batches, resolve_device(model, device), settings, provenance or {})
    kept = _Kept(folder, name, asked)
    if progress:
        progress(len(kept.results))
    if kept.finished:
        return kept.finished
    missing = range(len(kept.results), len(batches))
    skipped: dict[int, list[dict[str, str]]] = {}
    try:
        source = _loaded(batches, missing, skipped)
        for result in batch_results(model, source, settings, device=device, numbers=missing):
            kept.results.append(result)
            kept.skipped += skipped[result.index]
            if time.monotonic() >= kept.due:
                kept.write()
            if progress:
                progress(1)
        return kept.finish()
    except (KeyboardInterrupt, OSError, RuntimeError, ValueError) as error:
        with suppress(OSError, ValueError):
            kept.write()
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error).rstrip(".")
        saved = f" {kept.written} of {len(batches)} batches are kept in {kept.partial}; run it again to resume."
        text = f"{why}.{saved if kept.alone else ''}"
        if isinstance(error, OSError):
            raise _os_error(error, text) from error
        raise (KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else RunError)(text) from error


class _Kept:
    """The finished batches of a network, and the file that keeps them, which must belong to the same request.

    The whole file is replaced at each write, so nothing can be in it twice. It is replaced only if it is the file that
    was last read or written here. If two processes measure one network, the second one to write stops.
    """

    def __init__(self, folder: Path, name: str, asked: Mapping[str, Any]) -> None:
        self.path, self.partial = _files(folder, name)
        self.asked = asked
        self.results: list[BatchResult] = []
        self.skipped: list[dict[str, str]] = []
        self.finished: Signature | None = None
        self._stamp = _stamp(self.partial)
        found = self._load(self.path)
        if found and is_finished(found):
            self.finished = found
        elif begun := self._load(self.partial):
            found = begun if found is None else max(found, begun, key=lambda each: len(each.batch_sizes))
        if found:
            self.skipped = list(found.provenance["data"].get("skipped", []))
            companions = found.companions.items()
            for k, size in enumerate(found.batch_sizes):
                values = {measure: rows[k].tolist() for measure, rows in companions}
                self.results.append(BatchResult(k, size, found.calls, found.excluded, found.scores[k].tolist(), values))
        self.written, self.due = len(self.results), -math.inf

    def _load(self, path: Path) -> Signature | None:
        if not path.exists():
            return None
        try:
            found = read_signature(path)
        except ValueError as error:
            raise RunError(f"{str(error).rstrip('.')}. Put it back from a copy, or remove it.") from error
        check_same(path, differences(request_of(found), self.asked))
        return found

    @property
    def alone(self) -> bool:
        """Whether no other process has replaced or removed the file."""
        return _stamp(self.partial) == self._stamp

    def signature(self, **more: Any) -> Signature:
        facts = self.asked["provenance"]
        facts = {**facts, "data": {**facts["data"], "skipped": self.skipped}, **more}
        measured = {key: self.asked[key] for key in ("pool", "covariance")}
        return Signature.from_results(self.results, **measured, provenance=facts)

    def write(self) -> None:
        """Write all results to the disk, unless they are there already."""
        if self.written == len(self.results):
            return
        self._save(self.signature(**{TOTAL: self.asked["batches"]}), self.partial)
        self._stamp, self.written, self.due = _stamp(self.partial), len(self.results), time.monotonic() + PAUSE

    def finish(self) -> Signature:
        self._load(self.path)  # another run may have ended meanwhile
        result = self.signature()
        self._save(result, self.path)
        self.partial.unlink(missing_ok=True)
        return result

    def _save(self, signature: Signature, path: Path) -> None:
        if not self.alone:
            raise RunError(f"{self.partial} was written or removed by another process, which measures this network too")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            signature.save(path)
        except OSError as error:
            raise _os_error(error, f"{path} cannot be written ({error.strerror or error})") from error


def _stamp(path: Path) -> tuple[int, int] | None:
    """Inode and modification time of a file, which change when it is replaced; None if there is no file."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def _os_error(error: OSError, text: str) -> OSError:
    """An OSError with this text and the number of the original."""
    other = OSError(text)
    other.errno = error.errno
    return other


def _loaded(batches: Any, numbers: range, skipped: dict[int, list[dict[str, str]]]) -> Iterator[Any]:
    """The batches with these numbers. For each, ``skipped`` receives the list of the images that it lacks."""
    source = batches.read(numbers) if isinstance(batches, Batches) else ((batches[k], []) for k in numbers)
    for number in numbers:
        try:
            batch, skipped[number] = next(source)
        except (OSError, ValueError) as error:
            named = f"batch {number}" in str(error)
            raise OSError(str(error) if named else f"batch {number} cannot be read ({error}).") from error
        yield batch


def progress_of(folder: str | os.PathLike[str]) -> dict[str, tuple[int, int]]:
    """For each network in the folder of a run, the numbers of finished batches and of all batches."""
    found = {}
    for path in sorted(Path(folder).glob("*.json.partial")) + sorted(Path(folder).glob("*.json")):
        signature, name = read_signature(path), path.name.removesuffix(".partial").removesuffix(".json")
        found[name] = len(signature.batch_sizes), request_of(signature)["batches"]
    return dict(sorted(found.items()))


def set_aside(folder: str | os.PathLike[str], name: str) -> None:
    """Rename the files of a network, so that a run starts again. They end in ``.old1``, or in the first free number."""
    paths = [path for path in _files(Path(folder), name) if path.exists()]
    number = next(n for n in count(1) if not any(path.with_name(f"{path.name}.old{n}").exists() for path in paths))
    for path in paths:
        path.rename(path.with_name(f"{path.name}.old{number}"))
