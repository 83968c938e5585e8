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
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from affscore.files import replacing
from affscore.signature import BatchResult, Signature
from affscore.tracing import Call, Excluded

__all__ = [
    "Batch", "RecordError", "Run", "differences", "merge", "names", "os_error", "progress_of", "read_batches",
    "run_of", "set_aside", "signature_of", "some", "write_batch",
]  # fmt: skip

SCHEMA = "affscore.batch/1"
#: What the bits of a result depend on; what a batch gave, and the images that it had to do without.
Run = Mapping[str, Any]
Batch = tuple[BatchResult, list[dict[str, str]]]


class RecordError(ValueError):
    """A record is damaged or belongs to another run."""


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """In words, where two nested values that JSON can hold differ.

    >>> differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2})
    ['a.b is 1 there and 3 here']
    """
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


def some(numbers: Sequence[int]) -> str:
    """The first eight numbers and how many more there are."""
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def _bytes(content: dict[str, Any]) -> bytes:
    """The file that holds ``content``."""
    checksum = hashlib.sha256(json.dumps(content, allow_nan=False).encode()).hexdigest()
    return json.dumps(content | {"sha256": checksum}).encode() + b"\n"


def write_batch(folder: Path, name: str, run: Run, result: BatchResult, skipped: list[dict[str, str]]) -> None:
    """Write what one batch gave and return when it is on the disk.

    ``run`` is all that the bits of the result may depend on, as JSON gives it back: ``batches`` (how many there are),
    ``pool``, ``covariance``, ``companions`` and ``provenance``. ``skipped`` are the images that the batch had to do
    without. Numbers are written as Python writes them, in quotes since JSON has no NaN: ``float`` gives the same bits.

    Raises OSError if it cannot be written, for instance because the disk is full; what was there before is as it was.
    """
    batch = asdict(result)
    batch["scores"] = [repr(float(value)) for value in result.scores]
    batch["companions"] = {key: [repr(float(value)) for value in values] for key, values in result.companions.items()}
    path = folder / "records" / name / f"batch-{result.index:05}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside, open(beside, "wb") as file:
            file.write(_bytes({"schema": SCHEMA, "run": run, "batch": batch | {"skipped": skipped}}))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise os_error(error.errno, f"the record {path} cannot be written ({error.strerror or error}).") from error


def _content(path: Path) -> dict[str, Any]:
    """What a file holds, if it is byte for byte what was written."""
    data = path.read_bytes()
    try:
        content = json.loads(data)
        del content["sha256"]
        sound = _bytes(content) == data
    except (ValueError, TypeError, KeyError):
        sound = False
    if not sound or path.name != f"batch-{content['batch']['index']:05}.json":
        raise RecordError(
            f"the record {path} is damaged: it was changed after it was written. Put it back from a copy, or remove it "
            "and its batch is measured again."
        )
    if content["schema"] != SCHEMA:
        raise RecordError(f"{path} has schema {content['schema']!r}; it should be {SCHEMA!r}.")
    return content


def read_batches(folder: Path, name: str, run: Run | None = None) -> tuple[Run | None, dict[int, Batch]]:
    """The run and its finished batches: by their numbers, results and skipped images.

    ``run`` is what they should belong to; by default the run of the first batch, or None if there is none.

    Raises RecordError if a file is damaged, belongs to another run, or is a record as older versions wrote them.
    """
    if old := _old_records(folder, name):
        raise RecordError(
            f"{old[0]} is a record of an older form, which cannot be read; restart the run, or move it away."
        )
    found = {}
    for path in sorted((folder / "records" / name).glob("batch-*.json")):
        content = _content(path)
        run = content["run"] if run is None else run
        if different := differences(content["run"], run):
            raise RecordError(f"{path} is the record of another run: {'; '.join(different)}.")
        batch = content["batch"]
        skipped = batch.pop("skipped")
        batch["calls"] = [Call(**{**call, "shape": tuple(call["shape"])}) for call in batch["calls"]]
        batch["excluded"] = [Excluded(**item) for item in batch["excluded"]]
        batch["scores"] = [*map(float, batch["scores"])]
        batch["companions"] = {key: [*map(float, texts)] for key, texts in batch["companions"].items()}
        found[batch["index"]] = BatchResult(**batch), skipped
    return run, found


def _old_records(folder: Path, name: str) -> list[Path]:
    """Records as older versions wrote them: a file ``NAME.RANK.jsonl`` for each process."""
    paths = sorted((folder / "records").glob("*.jsonl"))
    return [path for path in paths if re.sub(r"\.\d+\.jsonl$", "", path.name) == name]


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
    data = {key: value for key, value in signature.provenance.get("data", {}).items() if key != "skipped"}
    return {
        "batches": len(signature.batch_sizes), "pool": signature.pool, "covariance": signature.covariance,
        "companions": list(signature.companions), "provenance": {**signature.provenance, "data": data},
    }  # fmt: skip


def names(folder: str | os.PathLike[str]) -> list[str]:
    """The networks that have records in the folder of a run, sorted."""
    there = [path for path in (Path(folder) / "records").glob("*") if path.is_dir() or path.suffix == ".jsonl"]
    found = {re.sub(r"\.\d+\.jsonl$", "", path.name) for path in there}
    return sorted(name for name in found if not re.search(r"\.old\d+$", name))


def progress_of(folder: str | os.PathLike[str], name: str) -> tuple[int, int]:
    """How many batches of a network are in its records, and how many there should be; 0 and 0 without records.

    Raises RecordError if a record is damaged or they do not belong together.
    """
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

    Returns the new paths: the old ones with ``.old1`` at the end, or the first number that is free for all.
    """
    folder = Path(folder)
    paths = [folder / f"{name}.json", folder / "records" / name, *_old_records(folder, name)]
    paths = [path for path in paths if path.exists()]
    number = 1
    while any(path.with_name(f"{path.name}.old{number}").exists() for path in paths):
        number += 1
    return [path.rename(path.with_name(f"{path.name}.old{number}")) for path in paths]
