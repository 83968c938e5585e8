"""A file that is replaced is complete, or as it was before."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from affscore.files import destination, replacing


def write(path: Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text)


@pytest.mark.parametrize("fails", [True, False])
def test_the_old_file_is_there_until_the_end_and_after_an_error(tmp_path: Path, fails: bool) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    path.chmod(0o640)
    with suppress(OSError), replacing(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
        if fails:
            raise OSError(28, "No space left on device")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        ("result.json", "old" if fails else "new")
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "target.json", tmp_path / "a.json"
    if there:
        target.write_text("old")
    link.symlink_to("target.json")
    write(link, "new")
    assert link.is_symlink() and not target.is_symlink() and target.read_text() == "new"
    assert {*tmp_path.iterdir()} == {target, link}


def test_new_file_has_usual_mode_and_a_long_name(tmp_path: Path) -> None:
    """A new file has the mode of any new file, and its name may be as long as the system allows."""
    (usual := tmp_path / "usual").touch()
    write(path := tmp_path / ("n" * 250 + ".json"), "new")
    assert path.read_text() == "new" and path.stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "folder"])
def test_what_is_no_file_is_neither_replaced_nor_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        os.mkfifo(tmp_path / "special")
        path.symlink_to("special")
    for use in (destination, lambda path: write(path, "new")):
        with pytest.raises(OSError, match=r"a\.json is a ") as error:
            use(path)
        assert str(path) in str(error.value)
    assert not path.is_file()


def test_of_writers_at_once_the_last_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    texts = [f"{i}" * 5000 for i in range(240)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write(path, text), texts))
    assert path.read_text() in texts and list(tmp_path.iterdir()) == [path]
