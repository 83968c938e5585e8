"""What a reader of a panel says: numbers with the digits of their axis, and every point in its order."""

import math
from pathlib import Path

import pytest

import affscore_book.kit as kit
from affscore_book.kit.bundle import bundle

READER = bundle(Path(kit.__file__).with_name("reader.js"))


@pytest.mark.parametrize(
    ("value", "span", "text"),
    [
        (0.87412, 1, "0.874"),
        (-1.25, 12, "\u22121.25"),
        (0.0, 1, "0.000"),
        (0.0001, 1, "< 0.001"),
        (-0.0001, 1, "> \u22120.001"),
        (4321.6, 9000, "4322"),
    ],
)
def test_number_has_the_digits_of_its_axis(node, value, span, text):
    """A number has as many digits as its axis can show, and is never shown as a false zero."""
    assert node(READER, "(m, [value, span]) => m.reading(value, span)", [value, span]) == text


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({"xlabel": "first input (vertical: second input)"}, ["first input", "second input", True]),
        ({"xlabel": "mean", "ylabel": "score"}, ["mean", "score", False]),
        ({"xlabel": "frequency (half periods)"}, ["frequency", "", False]),
    ],
)
def test_the_axes_are_named_as_their_labels_name_them(node, labels, names):
    assert node(READER, "(m, labels) => m.axes(labels)", labels) == names


def test_drawn_numbers_are_read_from_left_to_right(node):
    """Every number that is drawn is read once, from left to right."""
    layers = [
        {"className": "a", "xs": [3, 1, 2, 2], "ys": [0.3, 0.1, "NaN", 0.2], "names": []},
        {"className": "unnamed", "xs": [1], "ys": [1], "names": []},
        {"className": None, "xs": [2, 1], "ys": [5, 6], "stride": 2, "texts": ["x", "y"]},
        {"className": "a", "xs": [1], "ys": ["NaN"], "names": []},
    ]
    body = "(m, layers) => m.readable(layers, {a: 'A'}).map((points) => points.map(({x, y, i}) => [x, y, i]))"
    found = node(READER, body.replace("layers, {", "revive(layers), {").replace("(m, layers) =>", """(m, layers) => {
        const revive = (all) => all.map((each) => ({...each, ys: each.ys.map((y) => (y === 'NaN' ? NaN : y))}));
        return """) + "; }", layers)  # fmt: skip
    assert found == [[[1, 0.1, 1], [2, 0.2, 3], [3, 0.3, 0]], [[2, 5, 0], [1, 6, 1]]]
    assert not any(math.isnan(y) for points in found for _, y, _ in points)
