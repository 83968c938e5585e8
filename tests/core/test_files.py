"""A file that is replaced is complete, or as it was before."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from affscore.files import destination, replacing


def write(path: Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def half() -> None:
        with replacing(path) as beside:
            beside.write_text("half of the n")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        half()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("result.json", "old")]


def test_the_old_file_is_there_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    with replacing(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("result.json", "new")]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, there: bool) -> None:
    for folder in ("disk", "here"):
        (tmp_path / folder).mkdir()
    target, second, first = tmp_path / "disk" / "target.json", tmp_path / "second.json", tmp_path / "here" / "a.json"
    if there:
        target.write_text("old")
    second.symlink_to("disk/target.json")
    first.symlink_to(second)
    write(first, "new")
    assert first.is_symlink() and second.is_symlink() and not target.is_symlink()
    assert target.read_text() == first.read_text() == "new"
    assert [path.name for folder in ("disk", "here") for path in (tmp_path / folder).iterdir()] == [
        "target.json", "a.json",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755, 0o444])
def test_mode_and_owner_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    before = path.stat()
    with replacing(path) as beside:
        beside.write_text("new")
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600  # nobody reads the new text who may not read the old
    after = path.stat()
    assert path.read_text() == "new" and before.st_ino != after.st_ino
    assert [(s.st_mode, s.st_uid, s.st_gid) for s in (before,)] == [(s.st_mode, s.st_uid, s.st_gid) for s in (after,)]


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("kind", ["fifo", "device", "link to a fifo", "link to a device", "circle", "folder"])
def test_what_is_no_file_is_neither_replaced_nor_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.json"
    if kind == "circle":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    else:
        special = tmp_path / "special" if kind.startswith("link") else path
        if kind.endswith("fifo"):
            os.mkfifo(special)
        elif os.geteuid() == 0:
            try:
                os.mknod(special, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("device nodes cannot be made here")
        else:
            special = Path("/dev/null")
        if special != path:
            path.symlink_to(special)
    before = sorted((each.name, each.lstat().st_mode, each.lstat().st_ino) for each in tmp_path.iterdir())
    for use in (destination, lambda path: write(path, "new")):
        with pytest.raises(OSError, match=r"a\.json is a |a circle|Too many levels") as error:
            use(path)
        assert str(path) in str(error.value)
    assert before == sorted((each.name, each.lstat().st_mode, each.lstat().st_ino) for each in tmp_path.iterdir())


def test_of_writers_at_once_the_last_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    texts = [f"{i}" * 5000 for i in range(240)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write(path, text), texts))
    assert path.read_text() in texts and list(tmp_path.iterdir()) == [path]


def test_a_name_as_long_as_the_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250 + ".json")
    write(path, "new")
    assert path.read_text() == "new"
