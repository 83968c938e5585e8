"""Would the tests see a mistake? python .ci/planted.py [REVISION]

The errors of planted.toml are mistakes that a maintainer could make: a wrong axis, a missing root, a check that was
dropped. The script copies the tree of a revision (by default the last commit) to a temporary folder. There it plants
one error at a time and runs the tests named with the error until one of them fails: then the tests see the error. They
do not see it if all pass, or if a folder of tests takes longer than LIMIT seconds. Each run of tests is a fork of this
process, which has imported the slow modules. The results are kept in _build, one file for each revision, and a second
run continues where the first stopped. The tests that saw the error at another revision run first. This check is not
part of CI, because it takes the better part of an hour.
"""

import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: The number of seconds for the tests of one folder.
LIMIT = 600
#: The first failure is enough. The ignored warning says that plugins were imported before pytest.
OPTIONS = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
#: Statuses of pytest: all passed, no such test, no test.
PASSED = (0, 4, 5)
#: The modules that the tests import and that take long to import.
HEAVY = (
    "torch", "torchvision", "transformers", "timm", "sklearn.manifold", "scipy.stats", "matplotlib.pyplot", "ot",
)  # fmt: skip


Planted = tuple[str, str, str, list[str]]  # file, right text, wrong text, tests


def errors(tree: Path) -> list[Planted]:
    """The errors in the list of a tree; a tree that is older than the list gets the errors of this tree."""
    own = tree / ".ci" / "planted.toml"
    modules = tomllib.loads((own if own.exists() else ROOT / ".ci" / "planted.toml").read_text(encoding="utf-8"))
    return [(m["file"], right, wrong, m["tests"]) for m in modules["module"] for right, wrong in m["errors"]]


def wrongly_listed(tree: Path) -> list[str]:
    """A sentence for each error whose right text does not occur exactly once in its file."""
    sentences = []
    for file, right, wrong, _ in errors(tree):
        many = (tree / file).read_text(encoding="utf-8").count(right)
        if many != 1 or right == wrong:
            text = f"{file}: {right!r} occurs {many} times; it should occur once and differ from {wrong!r}."
            sentences.append(text)
    return sentences


def failing(tree: Path, tests: list[str]) -> str:
    """The first test that fails, or "" if all pass. Some of the named tests may belong to another revision."""
    log = tree / "planted.log"
    for test in (test for test in tests if (tree / "tests" / test.partition("::")[0]).exists()):
        if not (child := os.fork()):
            signal.alarm(LIMIT)  # the alarm ends the child
            os.chdir(tree)
            os.environ["PYTHONPATH"] = os.pathsep.join(places := [str(tree), str(tree / "book")])
            sys.path[:0] = places
            with log.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = 3  # an internal error of pytest
            try:
                status = pytest.main([*OPTIONS, f"tests/{test}"])
                sys.stdout.flush()
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status not in (*PASSED, -signal.SIGALRM):
            lines = re.findall("^(?:FAILED|ERROR).*", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
            if lines:
                return lines[0][:200]
            raise RuntimeError(f"pytest ended with status {status}: {log.read_text(errors='replace')[-500:]}")
    return ""


def elsewhere(store: Path) -> dict[str, list[str]]:
    """For each error, the tests that saw it at other revisions, which run first."""
    found: dict[str, list[str]] = {}
    for other in sorted(store.parent.glob("planted-*.json")):
        for key, text in json.loads(other.read_text(encoding="utf-8")).items() if other != store else ():
            found.setdefault(key, []).extend(re.findall(r"^FAILED tests/([\w/.]+::\w+)", text))
    return found


def seen(tree: Path, file: str, right: str, wrong: str, tests: list[str]) -> str:
    """The result of :func:`failing` with a planted error; the file is restored afterwards."""
    path = tree / file
    text = path.read_text(encoding="utf-8")
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        path.write_text(text.replace(right, wrong), encoding="utf-8")
        compiled.unlink(missing_ok=True)  # Python would use it if the source keeps its size and changes within a second
        return failing(tree, tests)
    finally:
        path.write_text(text, encoding="utf-8")
        compiled.unlink(missing_ok=True)


def main(revision: str) -> int:
    commit = subprocess.run(["git", "rev-parse", revision], cwd=ROOT, check=True, capture_output=True, text=True)
    name = commit.stdout.strip()[:10]
    store = ROOT / "_build" / f"planted-{name}.json"
    store.parent.mkdir(exist_ok=True)
    results = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    saw_it = elsewhere(store)
    tree = Path(tempfile.mkdtemp())  # the first test process to end would remove a TemporaryDirectory
    try:
        archive = subprocess.run(["git", "archive", name], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(tree, filter="data")
        if sentences := wrongly_listed(tree):
            print(*sentences, sep="\n")
            return 2
        keys = {hashlib.sha256(repr(each[:3]).encode()).hexdigest()[:16]: each for each in errors(tree)}
        for module in HEAVY:
            importlib.import_module(module)
        rooms = sorted({tests[-1] for *_, tests in keys.values()})
        if "sound" not in results and (failed := failing(tree, rooms)):
            print(f"Without an error planted the tests of {name} should pass, but: {failed}")
            return 2
        results["sound"] = "all tests pass"
        for number, (key, error) in enumerate(keys.items(), start=1):
            if key not in results:
                file, right, wrong, tests = error
                results[key] = seen(tree, file, right, wrong, [*saw_it.get(key, []), *tests])
                store.write_text(json.dumps(results, indent=1), encoding="utf-8")
                print(f"{number} of {len(keys)}: {error[0]}: {results[key] or 'not seen'}", flush=True)
    finally:
        shutil.rmtree(tree)
    missed = [error for key, error in keys.items() if not results[key]]
    print(f"{len(keys) - len(missed)} of {len(keys)} errors are seen by the tests of {name}.")
    for file, right, wrong, _ in missed:
        print(f"Not seen: {file}: {wrong!r} in place of {right!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
