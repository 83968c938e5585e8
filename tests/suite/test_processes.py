"""Processes that share a list: each item falls to one of them, and one at a time downloads."""

from __future__ import annotations

import pytest
import torch

from affscore.cli import main as cli
from affscore.cli import suite as command
from affscore.suite.processes import by_turns, place, share, wait_for_all
from affscore.suite.suites import Failure


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
    wait_for_all()


@pytest.mark.parametrize("failures", [[], [Failure("alexnet", "no weights")]])
def test_a_process_with_a_failed_network_ends_with_1_once_all_have_done_their_part(
    started, monkeypatch, tmp_path, capsys, failures
):
    """torchrun ends all processes where one fails, so this one must not end before."""
    waited = []
    monkeypatch.setattr(command, "run_suite", lambda *_, **__: waited.append("measured") or failures)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "barrier", lambda: waited.append("bar"))
    started(0, 2, 2)
    arguments = ["suite", "--models", "alexnet,vgg11", "--dataset", "random", "--device", "cpu", "--quiet"]
    assert cli.main([*arguments, "--out", str(tmp_path)]) == len(failures)
    assert waited == ["measured", "bar"]
    printed = capsys.readouterr().out
    assert f"Process 0 of 2: {1 - len(failures)} of 1 signatures are in" in printed
    assert ("Process 0 of 2: Failed: alexnet: no weights" in printed) == bool(failures)
