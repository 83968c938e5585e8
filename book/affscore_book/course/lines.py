"""Lines from a pipe into which anybody may have written anything, for a limited time."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator

__all__ = ["read_lines"]

#: Bytes of the longest line that is kept whole.
LONGEST = 100_000
#: Seconds between two looks at whether the writer has ended.
LOOK = 0.1


def read_lines(pipe: int, seconds: float, ended: Callable[[], bool]) -> Iterator[bytes]:
    """The whole lines that come through a pipe, until its end, the end of its writer, or so many seconds.

    Whoever else holds the pipe open is not waited for.
    """
    deadline, rest = time.monotonic() + seconds, b""
    while True:
        last = ended()  # before the pipe is looked at: what was written before the end is still read
        left = deadline - time.monotonic()
        ready, _, _ = select.select([pipe], [], [], 0 if last else min(max(left, 0), LOOK))
        if left < 0 or (last and not ready):
            return
        if ready:
            if not (data := os.read(pipe, 1 << 16)):
                return
            *whole, rest = (rest[-LONGEST:] + data).split(b"\n")
            yield from whole
