"""Processes that share a list: each item falls to one of them."""

import pytest

from affscore_study.suite.processes import share


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_every_item_falls_to_one_process(monkeypatch, world):
    parts = []
    for rank in range(world):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world))
        parts.append(share("abcdefg"))
    assert sorted(item for part in parts for item in part) == list("abcdefg")
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("rank", ["-1", "2"])
def test_a_process_counted_from_1_is_refused(monkeypatch, rank):
    """It would leave out the items of process 0."""
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=f"RANK is {rank} and WORLD_SIZE is 2; RANK should be from 0 to"):
        share("ab")
