"""Make this working tree the edition of a version, to be committed on a separate branch and tagged:

    python .ci/release.py v0.2.0            # then: git switch -c v0.2 && git commit -am v0.2.0 && git tag v0.2.0
    python .ci/release.py --check v0.2.0    # the check that release.yml makes before it publishes

The rocket and the first cell of every notebook then open and install that tag, whatever happens to main. Both
pyproject.toml files and CITATION.cff must have this version, and CHANGELOG.md must have a heading for it.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BRANCH = re.compile(r"^(  branch: )\S+$", re.MULTILINE)
CLONE = re.compile(r"(git clone -q --depth 1 )(?:--branch \S+ )?(?=--filter)")


def pinned(text: str, name: str, tag: str) -> str:
    """The text of a file that names the branch, with ``tag`` in place of the branch."""
    return CLONE.sub(rf"\g<1>--branch {tag} ", text) if name.endswith(".ipynb") else BRANCH.sub(rf"\g<1>{tag}", text)


def files(root: Path) -> list[Path]:
    """The files that name the branch."""
    return [root / "_config.yml", *sorted((root / "book").glob("*.ipynb"))]


def unready(root: Path, tag: str) -> list[str]:
    """A sentence for each obstacle to a release of this version."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        return [f"the version is {tag!r}; it should look like v0.2.0"]
    version = tag.removeprefix("v")
    wanted = {
        "pyproject.toml": f'version = "{version}"',
        "book/pyproject.toml": f'version = "{version}"',
        "CITATION.cff": f"version: {version}",
        "CHANGELOG.md": f"## {version}",
    }
    return [
        f"{name} has no line that begins with {line!r}"
        for name, line in wanted.items()
        if not re.search(rf"^{re.escape(line)}(?![\w.])", (root / name).read_text(encoding="utf-8"), re.MULTILINE)
    ]


def unpinned(root: Path, tag: str) -> list[str]:
    """A sentence for each file that does not name this tag."""
    texts = {path: path.read_text(encoding="utf-8") for path in files(root)}
    others = [path for path, text in texts.items() if pinned(text, path.name, tag) != text]
    return [f"{path.relative_to(root)} does not name {tag}" for path in others]


def pin(root: Path, tag: str) -> None:
    for path in files(root):
        path.write_text(pinned(path.read_text(encoding="utf-8"), path.name, tag), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tag", help="such as v0.2.0")
    parser.add_argument(
        "--check", action="store_true", help="change nothing, only say whether this tree is the edition"
    )
    arguments = parser.parse_args()
    wrong = unready(ROOT, arguments.tag)
    if arguments.check:
        wrong += unpinned(ROOT, arguments.tag)
    elif not wrong:
        pin(ROOT, arguments.tag)
    if wrong:
        sys.exit("No edition: " + "; ".join(wrong) + ".")
