"""Stored networks do what was stored of them, and a wrong number is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from affscore_book.decade.again import check_stored, stored_network
from affscore_book.decade.collection import load_decade
from affscore_book.decade.training import colour_data

FOLDER = Path(__file__).parents[2] / "book" / "data" / "decade"


@pytest.fixture(scope="module")
def stored():
    return load_decade(FOLDER), colour_data()


@pytest.mark.parametrize("name", ["alexnet", "vgg11_bn"])
def test_what_is_stored_agrees(stored, name):
    said = check_stored(FOLDER, *stored, [name], [name])
    assert said == f"Measured again and equal:\nthe signature of {name}, the accuracy of {name}."


def test_a_wrong_number_is_found(stored):
    decade, data = stored
    right = decade["alexnet"][0]
    with pytest.raises(ValueError, match=r"alexnet: the accuracy is 0\.0100 from the stored one"):
        check_stored(FOLDER, {"alexnet": {0: replace(right, accuracy=right.accuracy + 0.01)}}, data, [], ["alexnet"])
    other = replace(right, signatures=dict.fromkeys(right.signatures, right.signatures["start", "spatial"]))
    with pytest.raises(ValueError, match="alexnet: a score is 0"):
        check_stored(FOLDER, {"alexnet": {0: other}}, data, ["alexnet"], [])


def test_weights_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        stored_network(tmp_path, "alexnet")
