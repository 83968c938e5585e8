"""The processes that share a run, as torchrun starts them: on one machine or on many, with or without a common disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch

from affscore.errors import AffscoreError

__all__ = ["Ranks", "RunError", "joined_ranks"]

T = TypeVar("T")


class RunError(AffscoreError, ValueError):
    """A run could not go on. What was finished is in its records."""


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, seen from one of them.

    ``rank`` is the number of this process, ``world`` how many there are; ``local`` its number on its machine: which GPU
    it uses, and 0 for the one that downloads.
    """

    rank: int = 0
    world: int = 1
    local: int = 0

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks; every rank gets them and waits for them."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(values, value)
        return values

    def together(self, work: Callable[[], T]) -> T:
        """Do ``work`` on every rank. Where it fails on one, all raise: nobody waits for a rank that will not come."""
        failure = None
        try:
            result = work()
        except Exception as error:
            failure = error
        texts = self.gather(None if failure is None else str(failure))
        if failure is not None:
            raise failure
        for rank, text in enumerate(texts):
            if text is not None:
                raise RunError(f"rank {rank} failed: {text}")
        return result

    def one_first(self, work: Callable[[], T]) -> T:
        """Do ``work`` on rank 0, then on one rank of each other machine, then on the rest.

        The first downloads or unpacks; the others find it, on their machine or on a common disk.
        """
        self.gather(None)  # what this one begins anew, another may still be leaving
        ours = 0 if self.rank == 0 else 1 if self.local == 0 else 2
        turns: list[Any] = [self.together(work if turn == ours else lambda: None) for turn in range(3)]
        return turns[ours]


def joined_ranks() -> Ranks:
    """The ranks that torchrun started, connected; a single one without torchrun."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks()
    distributed = torch.distributed
    # Joined once in a process: a group that is made anew may meet addresses of the one before.
    if not distributed.is_initialized():
        # The ranks meet at the end of each network, and one may be far ahead; torchrun ends them all if one dies.
        distributed.init_process_group("gloo", timeout=timedelta(days=30))
    rank = distributed.get_rank()
    return Ranks(rank, distributed.get_world_size(), int(os.environ.get("LOCAL_RANK", rank)))
