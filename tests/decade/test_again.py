"""Stored networks do what was stored of them, and a wrong number is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted import FOLDER, stored

from affscore_book.decade import again
from affscore_book.decade.again import check_stored, stored_network
from affscore_book.decade.training import colour_data


def test_what_is_stored_agrees_and_a_wrong_number_is_found(monkeypatch):
    decade, data = stored(), colour_data()
    said = "Measured again and equal:\nthe signature of vgg11_bn, the accuracy of alexnet and vgg11_bn."
    assert check_stored(FOLDER, decade, data) == said
    right, measured = decade["vgg11_bn"][0], {"AlexNet": decade["alexnet"][0].accuracy}
    monkeypatch.setattr(again, "accuracy", lambda network, *_: measured.get(type(network).__name__, right.accuracy))
    other = replace(right, signatures=dict.fromkeys(right.signatures, right.signatures["start", "spatial"]))
    for wrong, said in (
        (replace(right, accuracy=right.accuracy + 0.01), r"vgg11_bn: the accuracy is 0\.0100 from the stored one"),
        (other, "vgg11_bn: a score is 0"),
    ):
        with pytest.raises(ValueError, match=said):
            check_stored(FOLDER, decade | {"vgg11_bn": {0: wrong}}, data)


def test_weights_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        stored_network(tmp_path, "alexnet")
