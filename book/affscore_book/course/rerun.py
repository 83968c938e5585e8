"""The program that runs a chapter and students' answers to its exercises; ``verify`` starts it.

Each line of standard input asks for one thing, the chapter's own code or one answer. The reply is a line of JSON: the
mark of the request, a verdict, a detail. The chapter's own code runs here, once. Each answer runs in a process forked
from here, in a folder of its own, and is killed when its time is over, so that no answer meets what another one broke
or said.

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
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from affscore_book.course.lines import read_lines
from affscore_book.course.variants import student
from affscore_book.kit import checks

Verdict = tuple[str, str]
#: Characters of a detail that are kept.
DETAIL = 2000


class _Shell(InteractiveShell):
    def enable_gui(self, gui: str | None = None) -> None:
        """Nothing to do for ``%matplotlib``."""


def main() -> None:
    """Do what standard input says, and reply to each line."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for pipe in (requests, replies):  # no answer has them
        os.register_at_fork(after_in_child=pipe.close)  # nothing waits in it: each reply is flushed
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    shell = _Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    checks.hint_after(0)
    for line in requests:
        request = json.loads(line)
        verdict = ("", _error(shell, request["setup"])) if "setup" in request else _verdict(shell, request)
        replies.write(json.dumps((request["mark"], *verdict)).encode() + b"\n")
        replies.flush()


def _verdict(shell: InteractiveShell, request: dict[str, Any]) -> Verdict:
    judge = partial(_judge, shell, request["step"], request["name"], request["answer"])
    found = _in_a_fork(judge, request["seconds"])
    if found[0] == "error" and request["before"]:  # perhaps it needs what an earlier answer made
        found = _in_a_fork(partial(judge, request["before"]), request["seconds"])
    return found


def _error(shell: InteractiveShell, code: str) -> str:
    """Run a cell; what went wrong, or ""."""
    result = shell.run_cell(code, silent=True)
    error = result.error_before_exec or result.error_in_exec
    return f"{type(error).__name__}: {error}" if error else ""


def _in_a_fork(work: Callable[[], Verdict], seconds: float) -> Verdict:
    """What ``work`` returns, done in another process with a copy of this folder.

    It comes as a line of JSON: to read a pickle would be to run what the answer has put into it.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = shutil.copytree(".", os.path.join(folder, "book"))
        process = context.Process(target=_work, args=(work, copy, theirs))
        began = time.monotonic()
        process.start()
        os.close(theirs)
        try:
            for line in read_lines(ours, seconds, lambda: not process.is_alive()):
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    verdict, detail = json.loads(line)
                    return str(verdict), str(detail)[:DETAIL]
            if process.is_alive() and time.monotonic() - began >= seconds:
                return "stopped", f"it ran longer than {seconds:g} seconds."
            process.join(seconds)
            return "error", f"its process ended with status {process.exitcode}."
        finally:
            process.kill()
            process.join()
            os.close(ours)


def _work(work: Callable[[], Verdict], folder: str, reply: int) -> None:
    os.chdir(folder)
    verdict, detail = work()
    os.write(reply, json.dumps((verdict, detail[:DETAIL])).encode() + b"\n")


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
    checks.asked.clear()
    errors = [error for code in answer if (error := _error(shell, code))]

    # Whatever the answer did to the book's modules is undone before they check it.
    sys.modules.update(modules)
    for content, names in contents.items():
        own = content.__dict__
        own.clear()
        own.update(names)
    found = {name: shell.user_ns[name] for name in step["names"] if name in shell.user_ns}
    called, places = _answers_of(step, given)
    if given_to := [arguments.arguments for check, arguments in checks.asked if check == called]:
        found |= {name: given_to[-1][place] for name, place in places.items() if place in given_to[-1]}
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
    if not checks.verdicts:  # the answer has another form
        return "error", said.getvalue()
    return ("right" if all(checks.verdicts.values()) else "wrong"), said.getvalue()


def _answers_of(step: dict[str, Any], given: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The check of the exercise, and by name of the answer the parameter that takes it."""
    call = ast.parse(step["check"]).body[0]
    if not (isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)):
        return "", {}
    function = call.value.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return "", {}
    parameters = inspect.signature(getattr(given[function.value.id], function.attr)).parameters
    order = zip(call.value.args, parameters, strict=False)
    places = {each.id: place for each, place in order if isinstance(each, ast.Name) and each.id in step["names"]}
    return function.attr, places


if __name__ == "__main__":
    main()
