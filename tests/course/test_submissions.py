"""What a submission answers: found by tag or title, whatever the student did to the cells around it."""

import json
from pathlib import Path

import pytest

from affscore_book.course.submissions import (
    Cell,
    Chapter,
    answers,
    chapter_of,
    name_of,
    read_cells,
    starter,
)

BOOK = Path(__file__).resolve().parents[2] / "book"
NOTEBOOKS = sorted(BOOK.glob("*.ipynb"))


def markdown(source: str, *tags: str) -> Cell:
    return Cell("markdown", source, tags)


def code(source: str, *tags: str) -> Cell:
    return Cell("code", source, tags)


HALF = [markdown("### Exercise: Half\n\nHow?", "exercise:half"), code("my_x = 0\nexercises.check_half(my_x)")]
TWICE = [markdown("### Exercise: Twice\n\nHow?", "exercise:twice"), code("my_x = 0\nexercises.check_twice(my_x)")]
SOLUTION = [markdown("#### Solution", "solution:half"), code("exercises.check_half(2)", "solution:half")]
NOTEBOOK = [markdown("# Title"), code("import math"), *HALF, *SOLUTION, *TWICE, markdown("## End"), code("1")]


def written(path: Path, cells: list[Cell]) -> Path:
    content = [{"cell_type": c.kind, "source": c.source, "metadata": {"tags": list(c.tags)}} for c in cells]
    path.write_text(json.dumps({"cells": content}))
    return path


@pytest.fixture
def chapter(tmp_path) -> Chapter:
    return Chapter(written(tmp_path / "short.ipynb", NOTEBOOK))


def test_submission_chapter_has_starters_and_no_solution(chapter):
    """A chapter for submissions has its own code and its starters, but no solution."""
    assert chapter.steps == [("", "import math"), ("half", HALF[1].source), ("twice", TWICE[1].source), ("", "1")]
    assert chapter.labels == ["half", "twice"]


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_starter_of_the_book_asks_for_a_name_and_checks_it(path):
    chapter = Chapter(path)
    tags = {tag for cell in read_cells(path) for tag in cell.tags if tag.startswith("exercise:")}
    assert {f"exercise:{label}" for label in chapter.labels} == tags
    for label, source in chapter.steps:
        if label:
            parts = starter(source)
            assert parts.names and all(name in parts.check for name in parts.names)
            assert "my_" not in parts.setup


@pytest.mark.parametrize(
    "change",
    [
        lambda cell: cell,
        lambda cell: cell._replace(tags=()),  # the title is enough, or the tag
        lambda cell: cell._replace(source=cell.source.replace("Twice", "Two times")),
    ],
)
def test_answers_are_found(chapter, change):
    mine = [*HALF[:1], code("my_x = 1"), change(TWICE[0]), markdown("# My thoughts"), code("a = 2"), code("my_x = a")]
    found = answers([NOTEBOOK[0], *mine, *NOTEBOOK[-2:]], chapter)
    assert found == {"half": ["my_x = 1"], "twice": ["a = 2", "my_x = a"]}


def test_solutions_that_are_handed_in_are_no_answers(chapter):
    assert answers([*HALF[:1], *SOLUTION], chapter) == {"half": []}


def test_the_chapter_is_the_one_with_most_of_the_exercises(chapter, tmp_path):
    other = Chapter(written(tmp_path / "other.ipynb", [markdown("# Other"), *HALF]))
    assert chapter_of(NOTEBOOK, [other, chapter]) is chapter
    with pytest.raises(ValueError, match="no exercise of the book"):
        chapter_of([markdown("# Half")], [chapter])


def test_the_name_of_a_notebook_is_that_of_its_code():
    assert name_of([code('student("Ada")  # your name'), markdown('student("Bob")'), code("1")]) == "Ada"


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b'{"cells": 3}', b'{"cells": [{}]}', b'{"cells": ["a"]}', b"[" * 100_000]
)
def test_a_file_that_is_no_notebook_is_refused(content, tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.ipynb is not a notebook"):
        read_cells(path)


def test_a_mark_of_the_byte_order_is_passed_over(tmp_path):
    path = written(tmp_path / "a.ipynb", [code("1")])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_cells(path) == [code("1")]


def test_half_a_character_is_replaced(tmp_path):
    path = tmp_path / "a.ipynb"
    written(path, [code('student("\ud83d")')])
    assert name_of(read_cells(path)) == "?"


def test_a_starter_comes_apart():
    parts = starter("import numpy as np\nx, y = 1, 2\nmy_a, my_b = 0, 0\ndef my_f(x):\n    return x\n"
                    "print(x)\nexercises.check_all(\n    my_a, my_b, my_f, x)\n")  # fmt: skip
    assert parts.setup == "import numpy as np\nx, y = (1, 2)\nprint(x)"
    assert parts.names == ("my_a", "my_b", "my_f")
    assert parts.check == "exercises.check_all(my_a, my_b, my_f, x)"
