"""Lines that come through a pipe: junk, floods and writers that hold on or end."""

import os
import threading

from affscore_book.course.lines import LONGEST, read_lines


def test_lines_are_read_although_the_pipe_stays_open():
    """All complete lines are read after the end, although another process holds the pipe open."""
    ours, theirs = os.pipe()
    os.write(theirs, b"one\n\xfftwo\nhalf")
    assert list(read_lines(ours, 60, lambda: True)) == [b"one", b"\xfftwo"]


def test_a_writer_that_says_nothing_is_not_waited_for_longer():
    ours, _ = os.pipe()
    assert list(read_lines(ours, 0.2, lambda: False)) == []


def test_a_flood_without_an_end_ends_in_time_and_takes_no_room():
    ours, theirs = os.pipe()

    def flood():
        while True:
            try:
                os.write(theirs, b"x" * LONGEST)
            except OSError:
                return

    thread = threading.Thread(target=flood)
    thread.start()
    assert list(read_lines(ours, 0.5, lambda: False)) == []
    os.close(ours)
    thread.join()
    os.close(theirs)
