"""A grid as one test: every value is tried, an error names its values, and a grid of nothing is an error."""

import pytest
from grids import each


def test_every_pair_is_tried_and_the_error_names_it():
    tried = []

    @each("a", [1, 2])
    @each(("b", "c"), [(3, 4), (5, 6)])
    def check(a, b, c):
        tried.append((a, b, c))
        assert (a, b, c) != (2, 5, 6)

    with pytest.raises(AssertionError) as error:
        check()
    assert tried == [(1, 3, 4), (1, 5, 6), (2, 3, 4), (2, 5, 6)]
    assert error.value.__notes__ == ["with {'b': 5, 'c': 6}", "with {'a': 2}"]


@each("number", [3])
def test_what_is_no_value_of_the_grid_is_a_fixture(number, tmp_path):
    assert number == 3 and tmp_path.is_dir()


def test_a_grid_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="there is no value for a"):
        each("a", [])
    with pytest.raises(ValueError, match="check has no parameter b"):

        @each("b", [1])
        def check(a): ...
