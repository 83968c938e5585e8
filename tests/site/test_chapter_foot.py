"""The foot of a chapter, and the page on the package: functions, versions, checksums, and links both ways."""

import inspect
import pydoc
import re
import subprocess

import chapter_foot
import pytest
from grids import each
from test_notebooks import NOTEBOOKS, ROOT, markdown, planted

ENTRIES = chapter_foot.entries(ROOT / "book")


def cells(source: str) -> list[dict]:
    return [markdown("`affscore.signature`"), *planted(source=source)["cells"]]


@each(
    ("source", "name"),
    [
        ("from affscore import signature", "affscore.signature"),
        ("import affscore\nscores = affscore.signature(net, x).scores", "affscore.signature"),
        ("from affscore.zoo.models import load_model as load", "affscore.zoo.models.load_model"),
    ],
)
def test_what_cells_use_is_found(source, name):
    assert name in chapter_foot.names_used(cells(source))
    assert not any("affscore.s" in found for found in chapter_foot.names_used(cells("%pip list\nx = 1")))


@pytest.fixture
def stored(tmp_path):
    """Stored files of two chapters."""
    for name in ("one/a.json", "one/b-0.json", "one/make.py", "one/.hidden", "one/work/step.json", "two/c.json"):
        path = tmp_path / "book" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "book"


@each(
    ("source", "names"),
    [
        ('load("data/one")', ["a.json", "b-0.json"]),
        ('load("data/one/a.json", "data/two/c.json")', ["a.json", "c.json"]),
        ('load(f"data/one/b-{seed:d}.json")', ["b-0.json"]),
        ('load("data")', ["c.json"]),
        ('load(f"{folder}/data/none.json")', []),
    ],
)
def test_the_stored_files_that_cells_name_are_found(stored, source, names):
    assert [path.name for path in chapter_foot.files_read(cells(source), stored, "two")] == names


def test_checksums_are_those_of_sha256sum(stored):
    shell = {"shell": True, "capture_output": True, "text": True, "check": True}
    few = chapter_foot.files_read(cells('load("data/one")'), stored, "two")
    lines = "\n".join(chapter_foot.checksums(few, stored))
    assert subprocess.run("sha256sum --check", input=lines, cwd=stored.parent, **shell).stdout.count(": OK") == 2
    folder = stored / "data" / "three"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number}.json").write_text(str(number))
    (line,) = chapter_foot.checksums(sorted(folder.iterdir()), stored)
    together = subprocess.run("LC_ALL=C sha256sum * | sha256sum", cwd=folder, **shell).stdout
    assert line == f"{together.split()[0]}  book/data/three: 20 files"


@each("page", NOTEBOOKS)
def test_the_page_of_a_chapter_ends_with_its_foot(site, page):
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    foot = text[text.rindex("Functions, versions and data of this chapter") :].partition("</article>")[0]
    assert re.search(r"torch \d+\.\d+", foot) and "<h2" not in foot
    for name in re.findall(r'"api\.html#([\w.]+)"', foot):
        assert name in ENTRIES


@each("name", ENTRIES)
def test_a_public_name_is_documented_and_names_its_chapter(site, name):
    chapter = re.search(r"book's\s+chapter\s+``(\w+)``", inspect.getdoc(pydoc.locate(name)))[1]
    assert f"book/{chapter}" in NOTEBOOKS
    page = (site / "book" / "api.html").read_text(encoding="utf-8")
    entry = page[page.index(f'id="{name}"') :]
    assert f'href="{chapter}.html"' in entry[: entry.find("<dt ", 10)]


def test_every_name_of_the_package_is_on_its_page():
    import affscore

    documented = [pydoc.locate(entry) for entry in ENTRIES]
    assert [name for name in affscore.__all__ if getattr(affscore, name) not in documented] == []
