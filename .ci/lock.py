"""Write requirements.lock, the exact version of everything that builds the book and runs the tests, and pages.lock,
the part of it that building the pages needs (the extra `pages` of book/pyproject.toml: no torch).

pip resolves both packages with all their extras from an empty environment (nothing is installed) and reports
what it would install; this script keeps name and version of each. Run it with `make lock`.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# Exact versions for Python 3.11, written by `make lock`: do not edit. Installed by `make {target}` with --no-deps.
# What a reader needs, as ranges, is in requirements.txt; where they come from, in both pyproject.toml.
"""
# torch brings these on Linux only.
LINUX_ONLY = ("nvidia-", "cuda-", "triton")


def resolve(projects: list[dict]) -> list[dict]:
    """What pip would install for the packages with all their extras.

    For Python 3.11.0 and not for the one that runs: Debian 12 has 3.11.2, and some packages want 3.11.5.
    """
    requirements = [
        line
        for project in projects
        for lines in (project["dependencies"], *project["optional-dependencies"].values())
        for line in lines
    ]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command += ["--python-version", "3.11.0", "--only-binary=:all:"]
    command += ["--target", str(ROOT / "build"), *requirements]  # pip asks for a target, and a dry run writes nothing
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["install"]


def needed(install: list[dict], wanted: list[str]) -> list[dict]:
    """The part of ``install`` that the requirements ``wanted`` need, directly or not."""
    items = {canonicalize_name(item["metadata"]["name"]): item for item in install}
    found: dict[tuple[str, frozenset[str]], dict] = {}
    todo = [(Requirement(line), {""}) for line in wanted]
    while todo:
        requirement, extras = todo.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in found or not (
            requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
        ):
            continue
        found[key] = items[key[0]]
        todo += [(Requirement(line), {"", *key[1]}) for line in items[key[0]]["metadata"].get("requires_dist", [])]
    return list({item["metadata"]["name"]: item for item in found.values()}.values())


def lines(install: list[dict]) -> list[str]:
    """One `name==version` line a package; refuse what a plain PyPI does not serve."""
    pins = []
    for item in install:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        url = item["download_info"]["url"]
        if "+" in version or not url.startswith("https://"):
            sys.exit(f"{name} {version} comes from {url}, not from PyPI. Nothing written.")
        marker = ' ; sys_platform == "linux"' if name.startswith(LINUX_ONLY) else ""
        pins.append(f"{name}=={version}{marker}")
    return sorted(pins, key=str.lower)


if __name__ == "__main__":
    if sys.version_info[:2] != (3, 11):
        sys.exit(f"The lock file is for Python 3.11, this is {sys.version.split()[0]}: make lock PYTHON=python3.11.")
    library, book = (tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in ("", "book"))
    everything = resolve([library, book])
    pages = needed(everything, book["optional-dependencies"]["pages"])
    for name, target, install in (("requirements.lock", "env", everything), ("pages.lock", "book", pages)):
        pins = lines(install)
        (ROOT / name).write_text(HEADER.format(target=target) + "\n".join(pins) + "\n")
        print(f"{name}: {len(pins)} packages")
