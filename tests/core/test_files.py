"""A file that is replaced is complete, or as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from affscore.files import replacing


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
