"""Writes files completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["check_folder", "destination", "replacing"]


def destination(path: str | os.PathLike[str]) -> Path:
    """The file that ``path`` names, after following symbolic links.

    Raises OSError if it is a folder, a device or a pipe, which cannot be replaced, or if links form a circle.
    """
    path = Path(path)
    with suppress(FileNotFoundError):
        path.stat()
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a device or a pipe; give the name of a file.")
    return Path(os.path.realpath(path))


def check_folder(name: str, folder: Path) -> None:
    """Raise OSError, before any work, if nothing can be written in a folder, or if it is missing and cannot be made."""
    if folder.is_symlink() and not folder.exists():
        raise NotADirectoryError(f"{name}: {folder} is a link that leads nowhere; it should be a folder.")
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OSError(f"{name}: cannot write to the folder {there} ({error.strerror or error}).") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder; when the block ends, that file replaces ``path``.

    After an error, such as a full disk, ``path`` is unchanged and the temporary file is deleted. If several processes
    or threads write, the last one wins. A symbolic link stays, and its target is replaced. The new file has the mode
    of the old one.

    Raises OSError as :func:`destination` does.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "numbers.txt") as temporary:
    ...         _ = temporary.write_text("1 2 3")
    ...     [file.name for file in Path(folder).iterdir()]
    ['numbers.txt']
    """
    path = destination(path)
    # Every writer has a different name. It is short, because the file's name with an addition could be too long.
    temporary = path.with_name(f".{secrets.token_hex(16)}.part")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())  # reach the disk before the rename, in case of a power cut
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
