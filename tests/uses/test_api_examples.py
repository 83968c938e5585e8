"""The examples on the page of the package run as they stand."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "book" / "api.md"


def test_every_example_of_the_page_gives_what_it_says():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0
