"""Arguments that several rooms check: what is taken, and what the refusal says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grids import each

from affscore.arguments import expanded, whole_number


@each("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_every_integer_is_a_whole_number(value: Any) -> None:
    assert type(whole_number("seed", value, 3, 3)) is int


@each(
    "value",
    [True, np.True_, np.arange(2), 3.0, "3", None, 0, 6, 2**70],
)
def test_what_is_no_number_of_that_range_is_named(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^seed is ") as error:
        whole_number("seed", value, 1, 5)
    assert repr(value) in str(error.value) and str(error.value).endswith("a whole number from 1 to 5.")


@each("path", ["", "~no_such_user_here", "~no_such_user_here/a.json"])
def test_a_path_that_cannot_be_meant_is_named(path: str) -> None:
    with pytest.raises(ValueError, match=r"^record is '") as error:
        expanded("record", path)
    assert repr(path) in str(error.value) and str(error.value).endswith(".")


def test_the_home_folder_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("record", "~/a") == tmp_path / "a" and expanded("record", Path("a/~")) == Path("a/~")
