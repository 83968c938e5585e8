"""Arguments that several rooms check: what is taken, and what the refusal says."""

import re
from pathlib import Path

import numpy as np
import pytest

from affscore.arguments import expanded, whole_number


def test_every_integer_is_a_whole_number():
    for value in (3, np.int64(3), np.uint8(3), np.array(3)):
        assert type(whole_number("seed", value, 3, 3)) is int


@pytest.mark.parametrize("value", [True, np.True_, np.arange(2), 3.0, "3", None, 0, 6, 2**70])
def test_what_is_no_number_of_that_range_is_named(value):
    with pytest.raises(ValueError, match=re.escape(f"seed is {value!r}; it should be a whole number from 1 to 5.")):
        whole_number("seed", value, 1, 5)


def test_expanded_finds_home_and_names_a_bad_path(monkeypatch, tmp_path):
    """A path with ~ is expanded, and an empty path or an unknown user is an error that names the argument."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("record", "~/a") == tmp_path / "a" and expanded("record", Path("a/~")) == Path("a/~")
    for path in ("", "~no_such_user_here", "~no_such_user_here/a.json"):
        with pytest.raises(ValueError, match=f"^record is '{path}'"):
            expanded("record", path)
