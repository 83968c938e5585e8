"""The student edition holds no solution, in its notebooks or on its pages, and points to itself."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import edition
import pytest
import repository
import yaml
from test_notebooks import CHAPTERS, PAGES, toc_files

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
OTHER = "https://github.com/some" + "one/course.9"  # in two pieces, or this file would hold a stale mention itself


def cells_of(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("path", [ROOT / f"{page}.ipynb" for page in CHAPTERS])
def test_only_the_solutions_go_and_only_the_name_comes(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    before, after = notebook["cells"], edition.for_students(notebook)["cells"]
    assert [cell for cell in before if cell not in after] == [
        cell for cell in before if edition.tags_of(cell, "solution")
    ]
    (place,) = (index for index, cell in enumerate(after) if cell not in before)
    assert edition.tags_of(after[place + 1], "exercise") and "student(" in after[place]["source"]
    assert "what you pass to its check; the last call counts" in after[place]["source"]


@pytest.mark.parametrize(("kind", "url"), [("teacher", OTHER), ("student", "https://example.org/course")])
def test_an_edition_that_cannot_be_changes_nothing(kind, url, tmp_path):
    with pytest.raises(ValueError, match="should"):
        edition.make_edition(kind, url, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """The student edition before its pages are built."""
    folder = tmp_path_factory.mktemp("student")
    (folder / ".git").mkdir()
    (folder / "gone.md").touch()
    assert edition.make_edition("student", OTHER, folder) == OTHER
    return folder


@pytest.fixture(scope="module")
def student(sources, tmp_path_factory) -> Path:
    """The same with its pages in docs/."""
    folder, pages = sources, tmp_path_factory.mktemp("pages")
    book = Path(sys.executable).with_name("jupyter-book")
    command = [book, "build", folder, "--path-output", pages, "-W", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (pages / "_build" / "html").rename(folder / "docs")
    return folder


def test_student_edition_has_no_solutions(sources):
    """The students' edition has no solution in its notebooks and nothing for teachers in its contents."""
    check_no_solution(path for path in (*sources.glob("*"), *sources.glob("book/*")) if path.is_file())
    assert not (sources / "gone.md").exists() and (sources / ".git").is_dir()
    contents = set(toc_files(yaml.safe_load((sources / "_toc.yml").read_text(encoding="utf-8"))))
    assert set(PAGES) - contents == {"book/teaching"} and not contents - set(PAGES)
    assert "teach" not in (sources / "book" / "intro.md").read_text(encoding="utf-8").lower()
    with pytest.raises(ValueError, match="no section '## E'"):
        edition.without_section("# A\n", "E")


@pytest.mark.weekly
def test_no_solution_is_in_the_pages(student):
    check_no_solution(path for path in student.glob("docs/**/*.*") if path.suffix in (".html", ".ipynb"))


def check_no_solution(paths: Iterable[Path]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert any("Not yet." in text for text in texts)
    assert not any(sign in text for text in texts for sign in ("solution:", "Solution to", "#### Solution", "Right: "))
    everything = "\n".join(texts)
    lines = {
        line.strip()
        for path in NOTEBOOKS
        for cell in cells_of(path)
        if edition.tags_of(cell, "solution")
        for line in "".join(cell["source"]).splitlines()
    }
    taught = {line.strip() for path in NOTEBOOKS for cell in edition.for_students(json.loads(path.read_text()))["cells"]
              for line in "".join(cell["source"]).splitlines()}  # fmt: skip
    assert not [line for line in lines - taught if len(line) > 30 and line in everything]


@pytest.mark.weekly
def test_it_points_to_itself_and_says_where_it_comes_from(student):
    owner, name = repository.parse_address(OTHER)
    (book_owner, book_name) = repository.read_address()
    page = (student / "docs" / "book" / "theory.html").read_text(encoding="utf-8")
    assert f"colab.research.google.com/github/{owner}/{name}/blob/main/book/theory.ipynb" in page
    assert f"https://github.com/{owner}/{name}/issues" in page
    stale = [path.name for path in student.rglob("*.*") if path.suffix in repository.SUFFIXES | {".html"}
             if f"{book_owner}/{book_name}" in path.read_text(encoding="utf-8")]  # fmt: skip
    assert sorted(stale) == ["CITATION.cff", "README.md"]
    assert not [path for name in ("teaching*", "lecture*", "week*") for path in student.rglob(name)]


def test_the_solutions_edition_has_them_and_another_address(tmp_path):
    assert edition.make_edition("solutions", "", tmp_path).endswith("-solutions")
    copies = sorted((tmp_path / "book").glob("*.ipynb"))
    assert [path.read_text().count('"solution:') for path in copies] == [
        path.read_text().count('"solution:') for path in NOTEBOOKS
    ]
    assert repository.read_address(tmp_path)[1].endswith("-solutions")
