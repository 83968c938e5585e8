"""The process that judges answers, from the outside: it is given one answer at a time, and its results stay here.

An answer is a student's program, so nothing of another student is within its reach: neither code nor verdicts are in a
file, in a pipe or in the memory of the process from which it is forked. A process of the same user can still look into
any other one; ``teaching.md`` says what follows from that.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from affscore_book.course.lines import read_lines

__all__ = ["BOOK", "Verdict", "run_apart"]

BOOK = Path(__file__).resolve().parents[2]
#: What a piece of a chapter's own code may take, and what an answer may take beside its own seconds.
CHAPTER_SECONDS, MORE_SECONDS = 900, 60

Verdict = tuple[str, str]


def run_apart(plan: Mapping[str, Any], book: Path | None = None) -> dict[tuple[int, str], Verdict]:
    """Verdicts by number and label on the answers of a plan, each given to a process in a copy of the book.

    ``plan`` holds ``steps`` (the code of the chapter and its checks), ``students`` ((name, answers by label) for each)
    and the ``seconds`` that an answer may take. An answer may end the process; the next one gets a new one.
    """
    verdicts: dict[tuple[int, str], Verdict] = {}
    earlier: dict[int, list[str]] = defaultdict(list)
    asked = [
        (at, number) for at, step in enumerate(plan["steps"]) for number, (_, answers) in enumerate(plan["students"])
        if answers.get(step["label"])
    ]  # fmt: skip
    judge = _Judge(book or BOOK)
    try:
        for at, number in asked:
            step, (name, answers) = plan["steps"][at], plan["students"][number]
            answer = answers[step["label"]]
            request = {"step": step, "name": name, "answer": answer, "before": earlier[number]}
            limit = plan["seconds"] * (2 if earlier[number] else 1) + MORE_SECONDS
            verdict, again = None, True
            while verdict is None and again:
                again = judge.used  # an earlier answer may have broken it: this one meets a new one
                if failed := judge.prepare([each["setup"] for each in plan["steps"][: at + 1]]):
                    missing = [(n, plan["steps"][k]["label"]) for k, n in asked]
                    return dict.fromkeys(missing, ("error", failed)) | verdicts
                verdict = judge.ask(request | {"seconds": plan["seconds"]}, limit)
                judge.used = True
                if verdict is None:
                    judge.end()
                    judge = _Judge(book or BOOK)
            verdicts[number, step["label"]] = verdict or ("error", "the run ended with it.")
            earlier[number] += answer if verdict and verdict[0] in ("right", "wrong") else []
        return verdicts
    finally:
        judge.end()


class _Judge:
    """A process that runs a chapter and answers to it in a temporary copy of the book; started when it is asked."""

    def __init__(self, book: Path) -> None:
        self.used = False  # by an answer
        self._book = book
        self._ran = 0  # pieces of the chapter's own code
        self._process: subprocess.Popen[bytes] | None = None
        self._place = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def prepare(self, codes: Sequence[str]) -> str:
        """Run what has not yet run of the chapter's own code; says what went wrong, or ""."""
        for code in codes[self._ran :]:
            verdict = self.ask({"setup": code}, CHAPTER_SECONDS)
            if verdict is None:
                return "the chapter's own code does not come to an end."
            if verdict[1]:
                return f"the chapter's own code fails: {verdict[1]}"
            self._ran += 1
        return ""

    def ask(self, request: Mapping[str, Any], seconds: float) -> Verdict | None:
        """What the process replies; None if it ends or says nothing for so long.

        The reply repeats a mark that nobody could know before, so that nothing which an earlier answer has left in the
        pipe is taken for it.
        """
        process = self._process = self._process or self._start()
        mark, deadline = secrets.token_hex(16), time.monotonic() + seconds
        assert process.stdin and process.stdout
        if not _sent(process.stdin.fileno(), json.dumps({"mark": mark, **request}).encode() + b"\n", seconds):
            return None
        left = deadline - time.monotonic()
        for line in read_lines(process.stdout.fileno(), left, lambda: process.poll() is not None):
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                replied, verdict, detail = json.loads(line)
                if replied == mark:
                    return str(verdict), str(detail)
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        folder = self._place.name
        ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "_static", ".*")
        for source in (self._book.parent / "affscore", self._book):
            shutil.copytree(source, Path(folder, source.name), ignore=ignored)
        home = Path(folder, "home")
        home.mkdir()
        own = {"PYTHONPATH": f"{folder}:{folder}/book", "HOME": str(home), "TMPDIR": str(home)}
        process = subprocess.Popen(
            [sys.executable, "-m", "affscore_book.course.rerun"],
            cwd=Path(folder, "book"),
            env=os.environ | own | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def end(self) -> None:
        """End the process and what an answer may have left running in its group, and remove the copy."""
        if process := self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
        self._place.cleanup()


def _sent(pipe: int, data: bytes, seconds: float) -> bool:
    """Write to a pipe that may not be read: whether all of it was taken."""
    deadline = time.monotonic() + seconds
    while data:
        _, ready, _ = select.select([], [pipe], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            data = data[os.write(pipe, data) :]
        except OSError:
            return False
    return True
