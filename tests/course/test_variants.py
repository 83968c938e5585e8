"""The numbers of a student: the book's without a name, the same again with the same name, spread over the choices."""

import pytest

from affscore_book.course.variants import student, variant

OTHERS = [3, 5, 6, 8]


@pytest.fixture(autouse=True)
def nobody():
    yield
    student("")


def of(name: str) -> int:
    student(name)
    return variant("width", 4, OTHERS)


def test_a_name_changes_the_number_and_says_so(capsys):
    assert of("") == of("  ") == 4, "without a name the book stays"
    assert capsys.readouterr().out == ""
    number = of("Ada Lovelace")
    assert number in OTHERS
    assert capsys.readouterr().out == f"Your width: {number} (the book has 4).\n"


def test_a_name_is_the_same_however_it_is_typed():
    for other in ("ada lovelace", " Ada   Lovelace ", "ADA LOVELACE"):
        assert of("Ada Lovelace") == of(other)
    numbers = range(1000)
    student("Zo\u00eb")
    one = variant("seed", 7, numbers)
    student("Zoe\u0308")  # an accent typed in another way
    assert variant("seed", 7, numbers) == one


def test_names_are_spread_over_the_choices():
    found = [of(f"student {number}") for number in range(400)]
    assert all(60 < found.count(number) < 140 for number in OTHERS)

    def both(name: str) -> tuple[int, int]:
        student(name)
        return variant("width", 4, OTHERS), variant("height", 4, OTHERS)

    pairs = {both(f"student {number}") for number in range(200)}
    assert len(pairs) == len(OTHERS) ** 2, "two numbers of a student are drawn apart"
