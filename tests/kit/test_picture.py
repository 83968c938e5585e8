"""Static pictures: limits, gaps, styles and escapes, with the same ticks as JavaScript's."""

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import affscore_book.kit
from affscore_book.kit.bundle import bundle
from affscore_book.kit.picture import LOOKS, Panel, ticks

KIT = Path(affscore_book.kit.__file__).parent


def test_lines_are_broken_where_they_are_undefined():
    panel = Panel(label="", xlim=(0, 4), ylim=(0, 1), xlabel="")
    panel.line("curve", [0, 1, 2, 3, 4], [0, 1, math.nan, 0, 1])
    assert re.findall(r'd="([^"]*)"', panel.svg()) == ["M42 208L114 26M258 208L330 26"]


def test_every_look_has_its_style_and_an_unknown_one_is_refused():
    style = (KIT / "figure.css").read_text(encoding="utf-8")
    assert all(re.search(rf"\.{name}\b", style) or name == "label" for name in LOOKS)
    with pytest.raises(KeyError, match="sigma-curve"):
        Panel(label="", xlim=(0, 1), ylim=(0, 1), xlabel="").line("sigma-curve", [0], [0])


def test_texts_of_pictures_are_escaped():
    text = Panel(label='a "<b>"', xlim=(0, 1), ylim=(0, 1), xlabel="x < 1 & y").svg()
    assert ElementTree.fromstring(text).get("aria-label") == 'a "<b>"'


@pytest.mark.parametrize(("low", "high"), [(-6, 6), (0, 1), (-0.3, 1.2), (1e-7, 4e-7), (-1e5, 2e5)])
def test_ticks_are_even_and_inside_in_both_languages(node, low, high):
    values = np.array(ticks(low, high))
    assert 3 <= len(values) <= 8
    assert values.min() >= low - 1e-9 * (high - low) and values.max() <= high + 1e-9 * (high - low)
    np.testing.assert_allclose(np.diff(values), np.diff(values)[0], rtol=1e-6)
    figure = bundle(KIT / "panel.js")
    np.testing.assert_allclose(node(figure, f"m => m.ticks({low}, {high})"), values, rtol=1e-11, atol=1e-20)


def test_a_minus_is_no_hyphen_and_a_hyphen_no_minus():
    panel = Panel(label="a", xlim=(-1, 1), ylim=(0, 1), xlabel="non-linear at -2, from 3 - 1")
    assert "non-linear at \u22122, from 3 \u2212 1" in panel.svg()
