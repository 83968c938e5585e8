"""The explorer has the same catalogue, functions and scores in JavaScript; the map names every activation."""

import re

import numpy as np
import pytest
import torch

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import score_curve, summarise
from affscore_book.activations.widget import ActivationExplorer, ZooMap, zoo_map

JAVASCRIPT = ActivationExplorer._esm


def test_javascript_has_the_same_catalogue_and_functions(node):
    rows = node(JAVASCRIPT, "m => Object.entries(m.CATALOGUE).map(([name, row]) => [name, row[0], row[2]])")
    assert rows == [[row.name, row.title, list(row.kinks)] for row in CATALOGUE.values()]
    kinks = np.array([-6, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 6.0])
    x = np.concatenate([np.linspace(-40, 24, 401), kinks, kinks - 1e-9, kinks + 1e-9])
    body = """(m, x) => Object.fromEntries(Object.entries(m.CATALOGUE).map(
        ([name, row]) => [name, [row[1], row[3] ?? null, row[4] ?? null].map((f) => f && x.map(f))]))"""
    for name, theirs in node(JAVASCRIPT, body, x.tolist()).items():
        row = CATALOGUE[name]
        for ours, values in zip((row.function, *row.tails), theirs, strict=True):
            assert (ours is None) == (values is None)
            if ours is not None:
                expected = ours(torch.from_numpy(x)).numpy()
                np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12, err_msg=name)


def test_javascript_scores(node):
    """Around the kinks; the ends of the sliders, with tails and dead ranges, are in the test of all widgets."""
    states = [
        {"activation": name, "mean": mean, "std": std}
        for name in CATALOGUE
        for mean in (-3.0, 0.7)
        for std in (0.05, 1.0)
    ]
    body = "(m, states) => states.map((s) => [m.evaluate(s).score, m.scoreCurve(s.activation, [s.mean], s.std)[0]])"
    fine, coarse = np.transpose(node(JAVASCRIPT, body, states))
    exact = np.array([score_curve(s["activation"], s["mean"], s["std"]).item() for s in states])
    np.testing.assert_allclose(fine, exact, rtol=0, atol=1e-6)
    assert not np.allclose(fine[4:], exact[:-4], atol=1e-2, equal_nan=True)
    alive = ~np.isnan(exact)
    np.testing.assert_allclose(coarse[alive], exact[alive], rtol=0, atol=0.02)


@pytest.fixture(scope="module")
def zoo():
    widget = zoo_map(named=["relu"])
    widget.selected = "gelu"
    return widget


def test_the_map_tells_every_activation_with_its_numbers(node, zoo):
    """Those that share a place are told together."""
    places = node(ZooMap._esm, "(m, all) => m.places(all)", zoo.activations)
    for row in CATALOGUE.values():
        told = [each for each in places if re.search(rf"(^|, ){re.escape(row.title)} \(", each["text"])]
        assert len(told) == 1, row.title
        summary = summarise(row.name)
        assert f"width {summary.width:.1f}, lowest score" in told[0]["text"]
        assert (told[0]["width"], told[0]["lowest"]) == (round(summary.width, 1), round(summary.lowest, 3))
    assert len({(each["width"], each["lowest"]) for each in places}) == len(places)


def test_the_map_has_a_mark_for_each_activation(node, zoo):
    """The map has a mark for each activation, and one for each family in its key."""
    families = node(ZooMap._esm, "m => Object.keys(m.SHAPES)")
    assert {row.family for row in CATALOGUE.values()} == set(families)
    marks = re.findall(r'<path class="zoo family-\d" d="([^"]*)"', zoo.picture())
    assert sum(path.count("M") for path in marks) == len(CATALOGUE) + len(families)


@pytest.mark.parametrize("selected", ["gelu", "heaviside", "identity"])
def test_the_map_says_what_is_known_of_an_activation(zoo, selected):
    """The map shows the lowest score, its place and the width of the range of the activation that is marked."""
    chosen = next(each for each in zoo.activations if each["name"] == selected)
    zoo.selected = selected
    picture, lowest = zoo.picture(), chosen["lowest"]
    assert zoo.score() == lowest and f"lowest score {'&lt; 0.001' if lowest < 0.0005 else f'{lowest:.3f}'}" in picture
    at = f"{chosen['at']:.1f}".replace("-", "\N{MINUS SIGN}")
    assert f"lowest at a mean of {at}; non-linear at {round(5 * chosen['width'])} of 201 means" in picture
