"""The program that runs a chapter and students' answers to its exercises; ``verify`` starts it.

It reads from standard input what to run and writes a line of JSON for each answer: whose it is, the exercise's label,
a verdict, a detail. The chapter's own code runs here, once. Each answer runs in a process forked from here, in a folder
of its own, and is killed when its time is over, so that no answer meets what another one broke.

What is judged is what the answer gave to the check when it called it last, under whatever name; where it never did, the
names that begin with ``my_``. The check, and all that it is given beside the answer, come from the book's notebook.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import io
import json
import multiprocessing
import os
import pickle
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial, wraps
from multiprocessing.connection import Connection, wait
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from affscore_book.course.variants import student
from affscore_book.kit import checks

Verdict = tuple[str, str]
#: Characters of a detail that are kept.
DETAIL = 2000


class _Shell(InteractiveShell):
    def enable_gui(self, gui: str | None = None) -> None:
        """Nothing to do for ``%matplotlib``."""


def main() -> None:
    """Run what standard input says."""
    plan = json.load(sys.stdin)
    # What is run prints to nowhere; the results have the real standard output.
    results = os.fdopen(os.dup(1), "w")
    os.register_at_fork(after_in_child=results.close)  # nothing waits in it: each line is flushed
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    shell = _Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    checks.hint_after(0)
    finished: dict[int, list[str]] = defaultdict(list)
    for step in plan["steps"]:
        if error := _error(shell, step["setup"]):
            print(json.dumps((-1, "", "error", f"the chapter's own code fails: {error}")), file=results, flush=True)
            return
        for number, (name, answers) in enumerate(plan["students"]):
            if answer := answers.get(step["label"]):
                judge = partial(_judge, shell, step, name, answer)
                verdict, detail = _in_a_fork(judge, plan["seconds"])
                if verdict == "error" and finished[number]:  # perhaps it needs what an earlier answer made
                    verdict, detail = _in_a_fork(partial(judge, finished[number]), plan["seconds"])
                print(json.dumps((number, step["label"], verdict, detail)), file=results, flush=True)
                finished[number] += answer if verdict in ("right", "wrong") else []


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
        try:
            # For the process too: one that the answer has started may hold the other end open.
            if not wait([ours, process.sentinel], seconds):
                return "stopped", f"it ran longer than {seconds:g} seconds."
            with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError, ValueError):
                if ours.poll():
                    verdict, detail = ours.recv()
                    return str(verdict), str(detail)
            process.join()
            return "error", f"its process ended with status {process.exitcode}."
        finally:  # what it has left running goes with it
            process.kill()
            process.join()


def _work(work: Callable[[], Verdict], folder: str, answer: Connection) -> None:
    os.chdir(folder)
    verdict, detail = work()
    answer.send((verdict, detail[:DETAIL]))


def _judge(
    shell: InteractiveShell, step: dict[str, Any], name: str, answer: list[str], before: Sequence[str] = ()
) -> Verdict:
    """Run a student's answer, after the code ``before``, and the book's check of it."""
    student(name)
    shell.run_cell(step["setup"], silent=True)  # again, with the student's numbers
    given = dict(shell.user_ns)
    modules = {module: content for module, content in sys.modules.items() if module.startswith("affscore")}
    contents = {content: dict(vars(content)) for content in (builtins, *modules.values())}
    for code in before:
        shell.run_cell(code, silent=True)
    for wanted in step["names"]:
        shell.user_ns.pop(wanted, None)
    calls: list[inspect.BoundArguments] = []
    places = _record(given, step, calls)
    errors = [error for code in answer if (error := _error(shell, code))]

    # Whatever the answer did to the book's modules is undone before they check it.
    sys.modules.update(modules)
    for content, names in contents.items():
        own = content.__dict__
        own.clear()
        own.update(names)
    found = {name: shell.user_ns[name] for name in step["names"] if name in shell.user_ns}
    if calls:
        found |= {name: calls[-1].arguments[place] for name, place in places.items() if place in calls[-1].arguments}
    missing = [wanted for wanted in step["names"] if wanted not in found]
    if missing:
        return "error", (errors or [f"there is no {missing[0]}, and the check was not called."])[0]
    checks.verdicts.clear()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(step["check"], given | found)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    right = bool(checks.verdicts) and all(checks.verdicts.values())
    return ("right" if right else "wrong"), said.getvalue()


def _record(given: dict[str, Any], step: dict[str, Any], calls: list[inspect.BoundArguments]) -> dict[str, str]:
    """Let the check of the exercise note what it is called with; by name of the answer, the parameter that takes it."""
    call = ast.parse(step["check"]).body[0]
    if not (isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)):
        return {}
    function = call.value.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return {}
    module = given[function.value.id]
    check = getattr(module, function.attr)
    parameters = inspect.signature(check)

    @wraps(check)
    def noted(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError):
            calls.append(parameters.bind(*args, **kwargs))
        return check(*args, **kwargs)

    setattr(module, function.attr, noted)
    order = zip(call.value.args, parameters.parameters, strict=False)
    return {each.id: place for each, place in order if isinstance(each, ast.Name) and each.id in step["names"]}


if __name__ == "__main__":
    main()
