"""Processes that share a list: each item falls to one of them, and one at a time downloads."""

from __future__ import annotations

import pytest
import torch

from affscore.suite.processes import by_turns, place, share


@pytest.fixture
def started(monkeypatch):
    """As torchrun starts process ``rank`` of ``world``, ``each`` on a machine."""

    def start(rank, world, each):
        for name, value in (("RANK", rank), ("WORLD_SIZE", world), ("LOCAL_RANK", rank % each)):
            monkeypatch.setenv(name, str(value))

    return start


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_every_item_falls_to_one_process(started, world):
    parts = []
    for rank in range(world):
        started(rank, world, world)
        assert place() == (rank, world, rank)
        parts.append(share("abcdefg"))
    assert sorted(item for part in parts for item in part) == list("abcdefg")
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_process_of_all_then_one_of_each_machine_then_the_rest(started, monkeypatch):
    """Two machines of two processes; a bar is where all wait for each other."""
    seen: list[str] = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "barrier", lambda: seen.append("|"))
    orders = []
    for rank in range(4):
        started(rank, 4, 2)
        assert by_turns(lambda: seen.append("work") or 7) == 7
        orders.append("".join(seen))
        seen.clear()
    assert orders == ["work|||", "||work|", "|work||", "||work|"]


def test_a_process_alone_waits_for_nobody():
    assert place() == (0, 1, 0) and by_turns(lambda: 7) == 7 and share([1, 2]) == [1, 2]
