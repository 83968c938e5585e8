"""The division of a list of work among processes, which read their numbers from the environment as under torchrun."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["share"]

T = TypeVar("T")


def share(items: Sequence[T]) -> list[T]:
    """This process's part of a list: every WORLD_SIZE-th item, from item RANK on.

    >>> share(["alexnet", "vgg11", "resnet18"])                                 # all, if the variables are not set
    ['alexnet', 'vgg11', 'resnet18']

    Raises ValueError if RANK is not from 0 to WORLD_SIZE - 1.
    """
    rank, world = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    if not 0 <= rank < world:
        raise ValueError(f"RANK is {rank} and WORLD_SIZE is {world}; RANK should be from 0 to WORLD_SIZE - 1.")
    return list(items[rank::world])
