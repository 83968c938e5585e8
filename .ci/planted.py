"""Would the tests see a mistake? python .ci/planted.py [REVISION]

The errors of planted.toml are mistakes that a maintainer could make: a wrong axis, a missing root, a check that was
dropped. The tree of a revision (by default the last commit) is copied to a temporary folder. There each error is
planted alone, and the tests named with it run until one fails: then the error is seen. It is not seen if all pass, or
if a folder of tests takes longer than LIMIT seconds. The results are kept in _build, one file a revision, and a second
run goes on where the first stopped. Not part of CI: it takes an hour.
"""

import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Seconds for the tests of one folder.
LIMIT = 600


def errors() -> list[tuple[str, str, str, list[str]]]:
    """File, right text, wrong text and tests of each error. A test that the revision does not have is left out."""
    modules = tomllib.loads((ROOT / ".ci" / "planted.toml").read_text(encoding="utf-8"))["module"]
    return [(m["file"], right, wrong, m["tests"]) for m in modules for right, wrong in m["errors"]]


def wrongly_listed(tree: Path) -> list[str]:
    """A sentence for each error whose right text does not stand exactly once in its file."""
    sentences = []
    for file, right, wrong, _ in errors():
        many = (tree / file).read_text(encoding="utf-8").count(right)
        if many != 1 or right == wrong:
            sentences.append(f"{file}: {right!r} stands there {many} times; it should once, and differ from {wrong!r}.")
    return sentences


def failing(tree: Path, tests: list[str]) -> str:
    """The first test that fails, or "" if none does."""
    environment = os.environ | {"PYTHONPATH": f"{tree}:{tree / 'book'}", "OMP_NUM_THREADS": "1"}
    for test in (test for test in tests if (tree / "tests" / test).exists()):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", f"tests/{test}"]
        try:
            done = subprocess.run(
                command, cwd=tree, env=environment, timeout=LIMIT, check=False, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            continue
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return (lines or [f"pytest ended with status {done.returncode}: {done.stderr[-200:]}"])[0][:200]
    return ""


def seen(tree: Path, file: str, right: str, wrong: str, tests: list[str]) -> str:
    """What :func:`failing` finds with an error planted; the file is restored afterwards."""
    path = tree / file
    text = path.read_text(encoding="utf-8")
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        path.write_text(text.replace(right, wrong), encoding="utf-8")
        compiled.unlink(missing_ok=True)  # it counts as current if the file has the same size within one second
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
    keys = {hashlib.sha256(repr(each[:3]).encode()).hexdigest()[:16]: each for each in errors()}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        archive = subprocess.run(["git", "archive", name], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(tree, filter="data")
        if sentences := wrongly_listed(tree):
            print(*sentences, sep="\n")
            return 2
        rooms = sorted({tests[-1] for *_, tests in errors()})
        if "sound" not in results and (failed := failing(tree, rooms)):
            print(f"Without an error planted the tests of {name} should pass, but: {failed}")
            return 2
        results["sound"] = "all tests pass"
        for number, (key, error) in enumerate(keys.items(), start=1):
            if key not in results:
                results[key] = seen(tree, *error)
                store.write_text(json.dumps(results, indent=1), encoding="utf-8")
                print(f"{number} of {len(keys)}: {error[0]}: {results[key] or 'not seen'}", flush=True)
    missed = [error for key, error in keys.items() if not results[key]]
    print(f"{len(keys) - len(missed)} of {len(keys)} errors are seen by the tests of {name}.")
    for file, right, wrong, _ in missed:
        print(f"Not seen: {file}: {wrong!r} in place of {right!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
