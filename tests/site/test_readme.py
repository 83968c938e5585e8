"""What the README and CONTRIBUTING promise: the example runs, the commands and files exist."""

import re
from pathlib import Path

import pytest
from PIL import Image

from affscore.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = {name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")}


def test_the_five_lines_print_a_signature(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGES["README.md"], re.S)
    exec(compile(example, "README.md", "exec"), {})
    assert "Signature" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES)
def test_every_make_command_named_is_a_target(page):
    targets = set(" ".join(re.findall(r"^([a-z -]+):(?!=)", (ROOT / "Makefile").read_text(), re.M)).split())
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)", " ".join(re.findall(r"`+[^`]*`+", PAGES[page]))))
    assert named and named <= targets


@pytest.mark.parametrize("page", PAGES)
def test_every_path_named_exists(page):
    folders, files = r"(?:book|affscore|tests|benchmarks|\.ci|\.github)/[\w./-]*", r"[\w.-]+\.(?:yml|toml|txt|lock|cff)"
    named = [path for path in re.findall(f"`({folders}|{files})`", PAGES[page]) if "NAME" not in path]
    roots = (ROOT, ROOT / ".github" / "workflows")
    missing = [path for path in named if not any((root / path).exists() for root in roots)]
    assert named and missing == []


def test_the_first_picture_comes_from_the_command_beside_it(tmp_path, monkeypatch):
    """A picture carries in words what it shows; compared are these, since drawing differs between versions."""
    (command,) = re.findall(r"`affscore (signature [^`]*--picture[^`]*)`", PAGES["README.md"])
    assert "(book/_static/readme.png)" in PAGES["README.md"] and "readme.png" in command
    monkeypatch.chdir(tmp_path)
    assert main([*command.split(), "--quiet"]) == 0
    shown, drawn = (Image.open(path).text["Description"] for path in (ROOT / "book/_static/readme.png", "readme.png"))
    assert shown == drawn
