"""The repository's public address: where it is repeated, and how to change it everywhere.

The address is set in one place, `repository: url` in _config.yml. All other files may only repeat it, and this module
finds these mentions:

    python .ci/repository.py https://github.com/OWNER/NAME      # the same as: make set-repository URL=...
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIP = {".git", ".venv", "_build", "build", "dist", "node_modules", "vendor", "__pycache__", "shared"}
SUFFIXES = {".bib", ".cff", ".ipynb", ".js", ".json", ".md", ".mjs", ".py", ".toml", ".txt", ".yml", ".yaml"}

ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9-]+)/([A-Za-z0-9._-]+?)/?")
# The form of an address of this repository, whoever owns it: its page, its notebooks on Colab, its raw files
# and its site. The pattern contains the name of the project, which distinguishes it from other projects' pages.
PATTERNS = (
    r"github\.com/(?P<owner>[\w-]+)/(?P<name>{name})(?![\w-])",
    r"colab\.research\.google\.com/github/(?P<owner>[\w-]+)/(?P<name>[\w.-]+)/",
    r"raw\.githubusercontent\.com/(?P<owner>[\w-]+)/(?P<name>{name})/",
    r"(?<![\w.])(?P<owner>[\w-]+)\.github\.io/(?P<name>{name})(?![\w-])",
)


def read_address(root: Path = ROOT) -> tuple[str, str]:
    """Owner and name from `repository: url` in _config.yml."""
    line = re.search(r"^repository:\n(?:  .*\n)*?  url: *(\S+)", (root / "_config.yml").read_text(), re.M)
    if line is None:
        raise ValueError("_config.yml has no 'repository: url'; it should hold https://github.com/OWNER/NAME")
    return parse_address(line[1])


def parse_address(url: str) -> tuple[str, str]:
    match = ADDRESS.fullmatch(url.removesuffix(".git"))
    if match is None:
        raise ValueError(
            f"the repository address should look like https://github.com/OWNER/NAME, but is {url!r} "
            "(Colab opens notebooks from GitHub only)"
        )
    return match[1], match[2]


def files(root: Path = ROOT) -> Iterator[Path]:
    """Every text file that people wrote, without files that are built, installed or vendored."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIP)
        yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in SUFFIXES)


def mentions(root: Path = ROOT) -> Iterator[tuple[Path, re.Match]]:
    """Every place that names this repository, with `owner` and `name` as groups of the match."""
    names = {"affscore", read_address(root)[1]}
    alternatives = "|".join(sorted((re.escape(name) for name in names), key=len, reverse=True))
    found = [re.compile(pattern.format(name=alternatives)) for pattern in PATTERNS]
    for path in files(root):
        text = path.read_text(encoding="utf-8")
        for pattern in found:
            for match in pattern.finditer(text):
                yield path, match


def disagreements(root: Path = ROOT) -> list[str]:
    """One sentence for every mention that is not the address of _config.yml."""
    owner, name = read_address(root)
    return [
        f"{path.relative_to(root)} says {match[0]}, but _config.yml says https://github.com/{owner}/{name}"
        for path, match in mentions(root)
        if (match["owner"], match["name"]) != (owner, name)
    ]


def set_repository(url: str, root: Path = ROOT) -> int:
    """Replace the owner and the name in every mention; returns the number of mentions."""
    new = parse_address(url)
    spans: dict[Path, set[tuple[int, int, str]]] = {}
    for path, match in mentions(root):
        for group, value in zip(("owner", "name"), new, strict=True):
            spans.setdefault(path, set()).add((*match.span(group), value))
    for path, changes in spans.items():
        text = path.read_text(encoding="utf-8")
        for start, end, value in sorted(changes, reverse=True):
            text = text[:start] + value + text[end:]
        path.write_text(text, encoding="utf-8")
    return sum(len(changes) // 2 for changes in spans.values())


if __name__ == "__main__":
    try:
        count = set_repository(sys.argv[1] if len(sys.argv) > 1 else "")
    except ValueError as error:
        sys.exit(f"Nothing changed: {error}.")
    print(f"{count} mentions now say {sys.argv[1]}.")
