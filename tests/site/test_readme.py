"""What the README, CONTRIBUTING and MAINTAINING promise: the example runs, the commands and files exist."""

import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import affscore
from affscore.cli.main import main, parser
from affscore.cli.options import settings_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = {name: (ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md", "MAINTAINING.md")}


def test_the_first_lines_print_what_stands_below_them(capsys):
    (example, printed) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGES["README.md"], re.S)[0]
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_example_for_your_own_network_runs(capsys):
    """The example for a network of one's own runs, with a data loader of pairs, and prints a row a call."""
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(4, 4), nn.Tanh())))
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.zeros(64).long()), batch_size=32)
    (example,) = (each for each in re.findall(r"```python\n(.*?)```", PAGES["README.md"], re.S) if "loader" in each)
    exec(compile(example, "README.md", "exec"), {"affscore": affscore, "model": model, "loader": loader})
    assert capsys.readouterr().out.count("tanh[0]") == 6


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_every_path_named_is_there(page):
    targets = set(" ".join(re.findall(r"^([a-z -]+):(?!=)", (ROOT / "Makefile").read_text(), re.M)).split())
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)", " ".join(re.findall(r"`+[^`]*`+", PAGES[page]))))
    assert named and named <= targets

    folders, files = r"(?:book|affscore|tests|benchmarks|\.ci|\.github)/[\w./-]*", r"[\w.-]+\.(?:yml|toml|txt|lock|cff)"
    named = [path for path in re.findall(f"`({folders}|{files})`", PAGES[page]) if "NAME" not in path]
    roots = (ROOT, ROOT / ".github" / "workflows")
    missing = [path for path in named if not any((root / path).exists() for root in roots)]
    assert named and missing == []


def picture_command() -> list[str]:
    (command,) = re.findall(r"`affscore (signature [^`]*--picture[^`]*)`", PAGES["README.md"])
    return command.split()


def words_of(picture: str | Path) -> str:
    """What a picture of a signature says that it shows."""
    with Image.open(picture) as image:
        return image.text["Description"]


def test_first_picture_is_that_of_its_command():
    """The first picture of the README is the one that the command beside it makes."""
    command = parser().parse_args(picture_command())
    assert f"(book/_static/{command.picture})" in PAGES["README.md"]
    assert words_of(ROOT / "book" / "_static" / command.picture).startswith(f"Signature of {command.model}: 33 ")
    assert (command.batch_size, settings_of(command).companions) == (256, ("twin",))  # as the words below it say


@pytest.mark.weekly
def test_the_command_draws_the_first_picture_again(tmp_path, monkeypatch):
    """A picture carries in words what it shows; compared are these, since drawing differs between versions."""
    monkeypatch.chdir(tmp_path)
    assert main([*picture_command(), "--quiet"]) == 0
    assert words_of("readme.png") == words_of(ROOT / "book" / "_static" / "readme.png")


def test_no_page_installs_affscore_from_an_index():
    """No page installs the package from an index, which does not have it.

    The name is free there: a stranger's package could answer.
    """
    pages = [*ROOT.glob("*.md"), *ROOT.glob("book/*.md"), *ROOT.glob("book/*.ipynb")]
    plain = re.compile(r"pip install (?:-\S+ )*[\\\"']*affscore(?:\[\w+\])?[\\\"'`]*(?! @)(?=\s|$|\\n)")
    found = {path.name: plain.findall(path.read_text()) for path in pages}
    assert plain.search("pip install affscore\n") and plain.search('pip install "affscore[text]"')
    assert {name for name, lines in found.items() if lines} <= {"MAINTAINING.md"}
