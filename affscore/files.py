"""Files that are complete or not there."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["destination", "replacing"]


def destination(path: str | os.PathLike[str]) -> Path:
    """The file to write where ``path`` is asked for: that file, or the one that a symbolic link leads to.

    Raises OSError if it is a folder, or a device or a pipe, which cannot be replaced; or if links lead in a circle.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if not stat.S_ISREG(mode):
        raise OSError(f"{path} is a device or a pipe; give the name of a file.")
    return Path(os.path.realpath(path))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to the path that this gives, in the same folder; at the end the file takes the place of ``path``.

    Until then ``path`` is as it was, and after an error, a full disk for instance, it still is and nothing is left
    beside it. Of several writers, in this process or in others, the last one wins. A symbolic link stays, and what it
    leads to is replaced; the new file has the mode of the old one and, where the system lets us, its owner.

    Raises OSError if ``path`` is no file, as :func:`destination` says.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "numbers.txt") as beside:
    ...         _ = beside.write_text("1 2 3")
    ...     [file.name for file in Path(folder).iterdir()]
    ['numbers.txt']
    """
    path = destination(path)
    # A name of its own for every writer, and a short one: with that of the file it could be too long.
    beside = path.with_name(f".{secrets.token_hex(16)}.part")
    old = path.stat() if path.exists() else None
    try:
        if old:
            beside.touch(mode=0o600, exist_ok=False)  # the old file may be for its owner's eyes only
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())  # on the disk before it is in its place, should the machine lose power
        if old:
            with suppress(OSError, AttributeError):  # only root gives files away, and Windows has no owners
                os.chown(beside, old.st_uid, old.st_gid)
            beside.chmod(old.st_mode & 0o777)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
