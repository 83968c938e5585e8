"""The numbers of a student: the book's without a name, the same again with the same name, spread over the choices."""

from pathlib import Path

import nbformat
import pytest
from grids import each
from nbclient import NotebookClient

from affscore_book.course.variants import student, variant

OTHERS = [3, 5, 6, 8]
BOOK = Path(__file__).parents[2] / "book"
# Chapters with numbers of a student's own.
CHAPTERS = sorted(path.stem for path in BOOK.glob("*.ipynb") if "= variant(" in path.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def nobody():
    yield
    student("")


def of(name: str) -> int:
    student(name)
    return variant("width", 4, OTHERS)


@each("name", ["", "  "])
def test_without_a_name_the_book_stays_and_says_nothing(name, capsys):
    assert of(name) == 4
    assert capsys.readouterr().out == ""


def test_a_name_changes_the_number_and_says_so(capsys):
    number = of("Ada Lovelace")
    assert number in OTHERS
    assert capsys.readouterr().out == f"Your width: {number} (the book has 4).\n"


@each("other", ["ada lovelace", " Ada   Lovelace ", "ADA LOVELACE"])
def test_a_name_is_the_same_however_it_is_typed(other):
    assert of("Ada Lovelace") == of(other)


def test_an_accent_typed_in_two_ways_is_one_name():
    numbers = range(1000)
    student("Zo\u00eb")
    one = variant("seed", 7, numbers)
    student("Zoe\u0308")
    assert variant("seed", 7, numbers) == one


def test_names_are_spread_over_the_choices():
    found = [of(f"student {number}") for number in range(400)]
    assert all(60 < found.count(number) < 140 for number in OTHERS)


def test_two_numbers_of_a_student_are_drawn_apart():
    def both(name: str) -> tuple[int, int]:
        student(name)
        return variant("width", 4, OTHERS), variant("height", 4, OTHERS)

    assert len({both(f"student {number}") for number in range(200)}) == len(OTHERS) ** 2


@pytest.mark.weekly
@each("chapter", CHAPTERS)
def test_every_solution_is_right_for_a_student_with_a_name(chapter):
    notebook = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4)
    first = next(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    name = 'from affscore_book.course.variants import student\n\nstudent("Ada Lovelace")'
    notebook.cells.insert(first + 1, nbformat.v4.new_code_cell(name))
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(BOOK)}}).execute()
    solved = [
        cell for cell in notebook.cells if any(tag.startswith("solution:") for tag in cell.metadata.get("tags", []))
    ]
    said = ["".join(o.get("text", "") for o in cell.outputs) for cell in solved if "exercises.check_" in cell.source]
    assert len(said) > 2 and all("Right: " in text for text in said), said
