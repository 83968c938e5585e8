"""The program that runs a chapter and a student's answers to its exercises; ``verify`` starts it for each notebook.

It reads from standard input what to run and writes a line of JSON for each exercise: its label, a verdict, a detail.
The chapter's own code runs here. Each answer runs in a process forked from here, in a folder of its own, and is killed
when its time is over, so that no answer meets what another one broke. The check, and all that it is given but the
answer, come from the book's notebook and not from the submission.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from affscore_book.course.variants import student
from affscore_book.kit import checks

Verdict = tuple[str, str]


class _Shell(InteractiveShell):
    def enable_gui(self, gui: str | None = None) -> None:
        """Nothing to do for ``%matplotlib``."""


def main() -> None:
    """Run what standard input says."""
    plan = json.load(sys.stdin)
    # What is run prints to nowhere; the results have the real standard output.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    shell = _Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    student(plan["student"])
    checks.hint_after(0)
    finished: list[str] = []
    for step in plan["steps"]:
        if error := _error(shell, step["setup"]):
            print(json.dumps(("", "error", f"the chapter's own code fails: {error}")), file=results, flush=True)
            return
        if step.get("answer"):
            verdict, detail = _in_a_fork(partial(_judge, shell, step, []), plan["seconds"])
            if verdict == "error" and finished:  # perhaps it needs what an earlier answer made
                verdict, detail = _in_a_fork(partial(_judge, shell, step, finished), plan["seconds"])
            print(json.dumps((step["label"], verdict, detail)), file=results, flush=True)
            if verdict in ("right", "wrong"):
                finished += step["answer"]


def _error(shell: InteractiveShell, code: str) -> str:
    """Run a cell; what went wrong, or ""."""
    result = shell.run_cell(code, silent=True)
    error = result.error_before_exec or result.error_in_exec
    return f"{type(error).__name__}: {error}" if error else ""


def _in_a_fork(work: Callable[[], Verdict], seconds: float) -> Verdict:
    """What ``work`` returns, done in another process with a copy of this folder."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = shutil.copytree(".", os.path.join(folder, "book"))
        process = context.Process(target=_work, args=(work, copy, theirs))
        process.start()
        theirs.close()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            return "stopped", f"it ran longer than {seconds:g} seconds."
        # Not a plain recv(): a process that the answer has started may hold the other end open.
        with contextlib.suppress(EOFError):
            if ours.poll():
                return ours.recv()
        return "error", f"its process ended with status {process.exitcode}."


def _work(work: Callable[[], Verdict], folder: str, answer: Connection) -> None:
    os.chdir(folder)
    answer.send(work())


def _judge(shell: InteractiveShell, step: dict[str, Any], before: list[str]) -> Verdict:
    """Run an answer, after the code ``before``, and the book's check of it."""
    given = dict(shell.user_ns)
    modules = {name: module for name, module in sys.modules.items() if name.startswith("affscore")}
    contents = {name: dict(vars(module)) for name, module in modules.items()}
    for code in before:
        shell.run_cell(code, silent=True)
    for name in step["names"]:
        shell.user_ns.pop(name, None)
    errors = [error for code in step["answer"] if (error := _error(shell, code))]
    missing = [name for name in step["names"] if name not in shell.user_ns]
    if missing:
        return "error", (errors or [f"there is no {missing[0]}."])[0]

    # Whatever the answer did to the book's modules is undone before they check it.
    sys.modules.update(modules)
    for name, module in modules.items():
        vars(module).clear()
        vars(module).update(contents[name])
    checks.verdicts.clear()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(step["check"], given | {name: shell.user_ns[name] for name in step["names"]})
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    right = bool(checks.verdicts) and all(checks.verdicts.values())
    return ("right" if right else "wrong"), said.getvalue()


if __name__ == "__main__":
    main()
