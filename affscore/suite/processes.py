"""Processes started by torchrun, on one machine or several, that share a list of work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

import torch

__all__ = ["by_turns", "place", "share", "wait_for_all"]

T = TypeVar("T")


def place() -> tuple[int, int, int]:
    """The rank of this process, the number of processes, and its rank on its machine; (0, 1, 0) without torchrun."""
    rank, world = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    return rank, world, int(os.environ.get("LOCAL_RANK", rank))


def share(items: Sequence[T]) -> list[T]:
    """This process's part of a list: process i of n takes every n-th item, starting with item i.

    >>> share(["alexnet", "vgg11", "resnet18"])                                 # without torchrun: all
    ['alexnet', 'vgg11', 'resnet18']
    """
    rank, world, _ = place()
    return list(items[rank::world])


def by_turns(work: Callable[[], T]) -> T:
    """Do ``work`` on the first process, then on one of each other machine, then on the rest, which find it done.

    Used for downloads and unpacking. All processes must make this call. If it fails on one, torchrun ends the others.
    """
    rank, _, local = place()
    for turn in range(3):
        if turn == (0 if rank == 0 else 1 if local == 0 else 2):
            result = work()
        wait_for_all()
    return result


def wait_for_all() -> None:
    """Wait until all processes make this call. If one ends instead, torchrun ends the others."""
    if place()[1] == 1:
        return
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", timeout=timedelta(days=365))  # some networks take days
    torch.distributed.barrier()
