"""An append-only record of a long run: what is written stays, whatever happens to the process.

A record is a text file, one JSON object a line. The first is the header, which says what is computed; each further
line is one finished piece of work. A line ends in the SHA-256 checksum of itself and of the checksum before it::

    {"header":{"schema":"affscore.record/1",...},"sha256":"5f0c..."}
    {"batch":{...},"sha256":"91ab..."}

Each line is flushed to the disk before the next piece of work begins, so a process that is killed can only leave an
incomplete *last* line. Opening the record again cuts it off, and the work that it stood for is done again. Damage
anywhere else is an error that names the line: the chain of checksums shows lines that were changed, removed or moved.
Nothing in a record depends on the time or on interruptions, so two runs can be compared byte for byte.

Used by :mod:`affscore.suite.runs`; the page on full-scale runs shows the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["Content", "Record", "RecordError", "differences", "os_error", "read_record"]

SCHEMA = "affscore.record/1"
_START = f'{{"header":{{"schema":"{SCHEMA.rpartition("/")[0]}/'.encode()
_END = re.compile(rb',"sha256":"([0-9a-f]{64})"\}$')
_LOCKED: set[Path] = set()  # system locks keep processes apart, not two writers within one


class RecordError(ValueError):
    """A record is damaged, belongs to another run, or is being written by another process."""


@dataclass(frozen=True)
class Content:
    """What a record holds.

    Attributes
    ----------
    header
        The header without its schema; None if the file is missing or ends within the first line.
    lines
        The (kind, content) of each further line.
    length
        Bytes up to the end of the last complete line.
    checksum
        The checksum of that line, as hexadecimal digits.
    torn
        Whether an incomplete last line follows.
    """

    header: dict[str, Any] | None
    lines: list[tuple[str, Any]]
    length: int
    checksum: str
    torn: bool


def os_error(number: int | None, text: str) -> OSError:
    """An OSError with the system's number whose text is one sentence."""
    error = OSError(text)
    error.errno = number
    return error


def _line(kind: str, content: Any, before: str) -> tuple[bytes, str]:
    """The line that holds ``content``, and its checksum."""
    body = json.dumps({kind: content}, separators=(",", ":"), allow_nan=False).encode("ascii")
    checksum = hashlib.sha256(before.encode("ascii") + body).hexdigest()
    return body[:-1] + f',"sha256":"{checksum}"}}\n'.encode("ascii"), checksum


def _check(line: bytes, before: str) -> tuple[str, Any, str] | None:
    """The kind, the content and the checksum of a line without its newline; None if it is damaged."""
    end = _END.search(line)
    if end is None:
        return None
    body, checksum = line[: end.start()] + b"}", end[1].decode("ascii")
    if hashlib.sha256(before.encode("ascii") + body).hexdigest() != checksum:
        return None
    ((kind, content),) = json.loads(body).items()
    return kind, content, checksum


def read_record(path: str | os.PathLike[str]) -> Content:
    """Read a record without changing it. An incomplete last line is left out; a missing file is empty.

    Raises
    ------
    RecordError
        If another line is damaged, or the file is not a record.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    data = path.read_bytes() if path.exists() else b""
    *complete, tail = data.split(b"\n")
    if not complete and not (_START.startswith(tail) or tail.startswith(_START)):
        raise RecordError(f"{path} is not a record: it should begin with {_START.decode()!r}.")
    header: dict[str, Any] | None = None
    lines: list[tuple[str, Any]] = []
    length, checksum = 0, ""
    for number, line in enumerate(complete, start=1):
        found = _check(line, checksum)
        if number == 1:
            if not line.startswith(_START):
                raise RecordError(f"{path} is not a record: it should begin with {_START.decode()!r}.")
            if found is None:
                raise RecordError(f"line 1 of the record {path}, its header, is damaged.")
            header = dict(found[1])
            if (schema := header.pop("schema")) != SCHEMA:
                raise RecordError(f"{path} has schema {schema!r}; it should be {SCHEMA!r}.")
        elif found is None:
            if number == len(complete) and not tail:
                return Content(header, lines, length, checksum, torn=True)
            raise RecordError(
                f"line {number} of the record {path} is damaged: it, or a line before it, was changed or removed. "
                f"The {number - 1} lines before it are good; put the file back from a copy, or start the run anew."
            )
        else:
            lines.append(found[:2])
        assert found is not None
        checksum = found[2]
        length += len(line) + 1
    return Content(header, lines, length, checksum, torn=bool(tail))


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """In words, where two nested values that JSON can hold differ.

    >>> differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2})
    ['a.b is 1 there and 3 here']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        return [
            text
            for key in keys
            for text in differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
        ]
    return [] if old == new else [f"{name} is {old!r} there and {new!r} here"]


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock of a record. The system releases it when the process ends, however it ends."""
    place = path.resolve()
    if place in _LOCKED:
        raise RecordError(f"{path} is being written by this very process; one writer at a time.")
    with open(path.with_suffix(".lock"), "a+", encoding="utf-8") as file:
        if fcntl is not None:
            # Not flock: children such as data workers would inherit it and hold it after their parent was killed.
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise RecordError(
                    f"{path} is being written by {holder}; wait for it to end, or choose another folder."
                ) from error
            except OSError as error:
                warnings.warn(
                    f"the file system of {path} has no locks ({error.strerror}): see to it yourself that no second "
                    "process writes there.",
                    stacklevel=2,
                )
        _LOCKED.add(place)
        try:
            with contextlib.suppress(OSError):  # the name serves the message above, no more
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
                file.flush()
            yield
        finally:
            _LOCKED.discard(place)


class Record:
    """A record that is open for writing by this process alone; a context manager.

    Parameters
    ----------
    path
        The file; made if it is missing, with its folder. Beside it lies a small file ``.lock``.
    header
        What the run is: plain values that JSON can hold. A record that is there must have the same header.

    Attributes
    ----------
    lines
        The (kind, content) of each line after the header.

    Raises
    ------
    RecordError
        If the record is damaged, has another header, or is being written by someone else.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for value in (0.5, 0.25):                                       # two runs, one record
    ...         with Record(Path(folder) / "a.jsonl", {"model": "a"}) as record:
    ...             record.append("batch", value)
    ...     record.lines
    [('batch', 0.5), ('batch', 0.25)]
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]):
        self.path = Path(path)
        with contextlib.ExitStack() as stack:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(_lock(self.path))
                content = read_record(self.path)
                self._compare(content.header, header)
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
                stack.callback(os.close, self._file)
                if content.torn:
                    os.ftruncate(self._file, content.length)
            except OSError as error:
                text = f"the record {self.path} cannot be written ({error.strerror or error})."
                raise os_error(error.errno, text) from error
            self._length, self._checksum = content.length, content.checksum
            self.lines = list(content.lines)
            if content.header is None:
                self._write("header", {"schema": SCHEMA, **header})
                _sync_folder(self.path.parent)
            elif content.torn:
                warnings.warn(
                    f"the last line of {self.path} was incomplete and is cut off; what it stood for is done again.",
                    stacklevel=2,
                )
            self._stack = stack.pop_all()

    def _compare(self, old: dict[str, Any] | None, new: Mapping[str, Any]) -> None:
        different = [] if old is None else differences(old, json.loads(json.dumps(new)))
        if different:
            raise RecordError(f"{self.path} is the record of another run: {'; '.join(different)}.")

    def append(self, kind: str, content: Any) -> None:
        """Add a line and return when it is on the disk.

        Raises
        ------
        OSError
            If it cannot be written, for instance because the disk is full. The record is then as it was before.
        """
        self._write(kind, content)
        self.lines.append((kind, content))

    def _write(self, kind: str, content: Any) -> None:
        line, checksum = _line(kind, content, self._checksum)
        try:
            rest = memoryview(line)
            while rest:  # a write may stop short
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            if not isinstance(error, OSError):
                raise
            text = f"the record {self.path} cannot be written ({error.strerror}); what was in it before is kept."
            raise os_error(error.errno, text) from error
        self._length += len(line)
        self._checksum = checksum

    def close(self) -> None:
        """Close the file and release the lock."""
        self._stack.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Record({str(self.path)!r}, {len(self.lines)} lines)"


def _sync_folder(folder: Path) -> None:
    """Have the folder's entry of a new file on the disk too, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
