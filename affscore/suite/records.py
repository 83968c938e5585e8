"""One file for each finished batch of a run: what is written stays, whatever happens to the process.

``FOLDER/records/NAME/batch-00012.json`` holds the run that a batch belongs to, what it gave, and a checksum of both::

    {"schema": "affscore.batch/1", "run": {...}, "batch": {...}, "sha256": "5f0c..."}

It is written beside its place, brought to the disk and renamed, so it is complete or not there. Any number of processes
and machines may write to one folder: two that measure the same batch write the same bytes. A file that was changed is
an error that names it; one that is missing is measured again. Nothing in a file depends on the time or on
interruptions, so two runs can be compared byte for byte.

Used by :mod:`affscore.suite.runs`; the page on full-scale runs shows the files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from affscore.errors import AffscoreError
from affscore.files import replacing
from affscore.signatures import BatchResult, Signature, validated

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "Batch", "RecordError", "Run", "check_signature", "differences", "held", "merge", "names", "one_run", "os_error",
    "progress_of", "read_batches", "run_of", "set_aside", "signature_of", "some", "write_batch",
]  # fmt: skip

SCHEMA = "affscore.batch/1"
#: What the bits of a result depend on; what a batch gave, and the images that it had to do without.
Run = Mapping[str, Any]
Batch = tuple[BatchResult, list[dict[str, str]]]


class RecordError(AffscoreError, ValueError):
    """A record is damaged, belongs to another run, or is being written by another process."""


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """In words, where two nested values that JSON can hold differ, such as ``a.b is 1 there and 3 here``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        parts = (differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key)) for key in keys)
        return [text for part in parts for text in part]
    return [] if old == new else [f"{name} is {old!r} there and {new!r} here"]


def os_error(number: int | None, text: str) -> OSError:
    """An OSError with the system's number whose text is one sentence."""
    error = OSError(text)
    error.errno = number
    return error


def one_run(path: Path, what: str, different: list[str]) -> None:
    """Raise RecordError if there are differences: ``path`` is the record or the signature of another run."""
    if different:
        todo = "With --restart it is renamed and measured anew."
        raise RecordError(f"{path} is the {what} of another run: {'; '.join(different)}. {todo}")


@contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise os_error(error.errno, f"{what} ({error.strerror or error}).") from error


def some(numbers: Sequence[int]) -> str:
    """The first eight numbers and how many more there are."""
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def _bytes(content: dict[str, Any]) -> bytes:
    """The file that holds ``content``."""
    checksum = hashlib.sha256(json.dumps(content, allow_nan=False).encode()).hexdigest()
    return json.dumps(content | {"sha256": checksum}).encode() + b"\n"


def write_batch(folder: Path, name: str, run: Run, result: BatchResult, skipped: list[dict[str, str]]) -> None:
    """Write what one batch gave and return when it is on the disk; :func:`held` makes the folder.

    ``run`` is all that the bits of the result may depend on, as JSON gives it back: ``batches`` (how many there are),
    ``pool``, ``covariance``, ``companions`` and ``provenance``. ``skipped`` are the images that the batch had to do
    without. Numbers are written as Python writes them, in quotes since JSON has no NaN: ``float`` gives the same bits.

    Raises OSError if it cannot be written, for instance because the disk is full; ValueError if a number is infinite,
    or if the record of another run is there. What was there before is as it was.
    """
    batch = asdict(result)
    batch["scores"] = [repr(float(value)) for value in result.scores]
    batch["companions"] = {key: [repr(float(value)) for value in values] for key, values in result.companions.items()}
    path = folder / "records" / name / f"batch-{result.index:05}.json"
    content = {"schema": SCHEMA, "run": run, "batch": batch | {"skipped": skipped}}
    _batch(content)  # what is written can be read
    if os.path.lexists(path):
        one_run(path, "record", differences(_content(path)["run"], run))
    with _named(f"the record {path} cannot be written"), replacing(path) as beside, open(beside, "wb") as file:
        file.write(_bytes(content))
        file.flush()
        os.fsync(file.fileno())


def _content(path: Path) -> dict[str, Any]:
    """What a file holds, if it is byte for byte what was written."""
    try:
        data = path.read_bytes() if path.is_file() else b""  # to open a FIFO would wait for its writer
        content = json.loads(data)
        del content["sha256"]
        sound = _bytes(content) == data and isinstance(content["run"], dict)
        sound &= path.name == f"batch-{content['batch']['index']:05}.json"
    except (ValueError, TypeError, KeyError, RecursionError):
        sound = False
    if not sound:
        raise RecordError(
            f"the record {path} is damaged: it was changed after it was written. Put it back from a copy, or remove it "
            "and its batch is measured again."
        )
    if (schema := content.get("schema")) != SCHEMA:
        raise RecordError(f"{path} has schema {schema!r}; it should be {SCHEMA!r}.")
    return content


def _batch(content: dict[str, Any]) -> Batch:
    """What a batch gave. Its checksum can be right and its values impossible, so they are checked as a signature's."""
    run, batch = content["run"], dict(content["batch"])
    index, size, skipped = batch.pop("index"), batch.pop("size"), batch.pop("skipped")
    numbers = {**batch.pop("companions"), "scores": batch.pop("scores")}
    rows = {name: [[None if text == "nan" else float(text) for text in texts]] for name, texts in numbers.items()}
    batch |= {"scores": rows.pop("scores"), "companions": rows, "batch_sizes": [size]}
    one = Signature(**validated(batch | {key: run[key] for key in ("pool", "covariance", "provenance")}))
    sound = {
        "batches": type(run["batches"]) is int,
        "index": type(index) is int and 0 <= index < run["batches"],
        "companions": run["companions"] == list(rows),
        "data": isinstance(run["provenance"]["data"], dict),
        "skipped": all(type(image[key]) is str for image in skipped for key in ("file", "reason")),
    }
    if wrong := [name for name, right in sound.items() if not right]:
        raise ValueError(f"{wrong[0]} is not what a run writes")
    values = {name: value[0].tolist() for name, value in one.companions.items()}
    return BatchResult(index, size, one.calls, one.excluded, one.scores[0].tolist(), values), skipped


def check_signature(path: Path, run: Run) -> None:
    """Raise RecordError if there is a signature that is not that of this run."""
    if path.exists():
        one_run(path, "signature", differences(run_of(Signature.load(path)), run))


@contextmanager
def held(folder: Path, name: str, *, alone: bool = False) -> Iterator[None]:
    """Hold the folder of a network's records: all that write there make and share it, who renames it is ``alone``.

    The lock is the system's and on the folder itself: it ends with the process, and no file lies about. Where there are
    no such locks nobody is kept out. Raises RecordError if it is taken.
    """
    place = folder / "records" / name
    if not alone:
        with _named(f"the folder {place} cannot be made"):
            place.mkdir(parents=True, exist_ok=True)
    if fcntl is None or not place.is_dir():
        yield
        return
    file = os.open(place, os.O_RDONLY)
    try:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RecordError(
                f"{place} is being written by another process; wait for it to end, or choose another folder."
            ) from error
        except OSError:  # this disk has no locks
            pass
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # or children, such as data workers, would hold it on
        os.close(file)


def read_batches(folder: Path, name: str, run: Run | None = None) -> tuple[Run | None, dict[int, Batch]]:
    """The run and its finished batches: by their numbers, results and skipped images.

    ``run`` is what they should belong to; by default the run of the first batch, or None if there is none.

    Raises RecordError if a file is damaged, holds what no batch can give, or belongs to another run.
    """
    found: dict[int, Batch] = {}
    first: list[str] = []
    for path in sorted((folder / "records" / name).glob("batch-*.json")):
        try:
            content = _content(path)
            run = content["run"] if run is None else run
            one_run(path, "record", differences(content["run"], run))
            result, skipped = _batch(content)
            calls = [call.name for call in result.calls]
            first = first or calls
            if calls != first:
                raise ValueError("its activation calls are not those of the first record")
            found[result.index] = result, skipped
        except RecordError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise RecordError(f"{path} is not a valid record: {type(error).__name__}: {error}.") from error
    return run, found


def signature_of(run: Run, batches: Mapping[int, Batch]) -> Signature:
    """The signature of a run all of whose batches are there."""
    found = [batches[k] for k in range(run["batches"])]
    skipped = [image for _, images in found for image in images]
    facts = {**run["provenance"], "data": {**run["provenance"]["data"], "skipped": skipped}}
    return Signature.from_results(
        [result for result, _ in found], pool=run["pool"], covariance=run["covariance"], provenance=facts
    )


def run_of(signature: Signature) -> Run:
    """The run that a signature of :func:`signature_of` belongs to."""
    facts = dict(signature.provenance)
    if isinstance(facts.get("data"), Mapping):
        facts["data"] = {key: value for key, value in facts["data"].items() if key != "skipped"}
    return {
        "batches": len(signature.batch_sizes), "pool": signature.pool, "covariance": signature.covariance,
        "companions": list(signature.companions), "provenance": facts,
    }  # fmt: skip


def names(folder: str | os.PathLike[str]) -> list[str]:
    """The networks that have records in the folder of a run, sorted."""
    found = {path.parent.name for path in (Path(folder) / "records").glob("*/batch-*.json")}
    return sorted(name for name in found if not re.search(r"\.old\d+$", name))


def progress_of(folder: str | os.PathLike[str], name: str) -> tuple[int, int]:
    """How many batches of a network are in its records, which are checked, and how many there should be; or 0 and 0."""
    run, found = read_batches(Path(folder), name)
    return len(found), 0 if run is None else run["batches"]


def merge(folder: str | os.PathLike[str], name: str) -> Signature:
    """The signature of a network from the records in ``folder/records/name``: the same bits, whoever wrote them.

    Raises FileNotFoundError if there is no record; RecordError if one is damaged, batches are missing, or the records
    do not belong together.
    """
    folder = Path(folder)
    run, found = read_batches(folder, name)
    if run is None:
        raise FileNotFoundError(f"there is no record of {name} in {folder / 'records'}.")
    if missing := [k for k in range(run["batches"]) if k not in found]:
        raise RecordError(
            f"the records of {name} in {folder / 'records'} hold {len(found)} of {run['batches']} batches; "
            f"missing {some(missing)}."
        )
    return signature_of(run, found)


def set_aside(folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Rename the signature and the records of a network, so that a run begins anew; nothing is deleted.

    Returns the new paths: the old ones with ``.old1`` at the end, or the first number that is free for all. Raises
    RecordError while another process writes the records.
    """
    folder = Path(folder)
    paths = [path for path in (folder / f"{name}.json", folder / "records" / name) if path.exists()]
    number = 1
    while any(path.with_name(f"{path.name}.old{number}").exists() for path in paths):
        number += 1
    with held(folder, name, alone=True):
        return [path.rename(path.with_name(f"{path.name}.old{number}")) for path in paths]
