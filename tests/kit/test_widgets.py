"""Every widget's JavaScript computes what Python computes, and its stored output is what a page needs.

The score of a state is compared with affscore's own, which is tested against independent code in tests/core.
"""

import itertools
import json
import math
import os
import re
import sys
import types
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import traitlets
from every_widget import WIDGETS

import affscore_book.kit as kit
from affscore_book.kit.bundle import bundle
from affscore_book.kit.widgets import ComputedWidget

FIGURE, PANEL = (bundle(Path(kit.__file__).with_name(name)) for name in ("figure.js", "panel.js"))


@pytest.mark.parametrize("name", WIDGETS)
def test_every_bundle_loads_by_itself_and_names_no_other_host(node, name):
    source = WIDGETS[name]._esm
    assert node(source, "m => [typeof m.default.render, typeof m.evaluate]") == ["function", "function"]
    hosts = set(re.findall(r"https?://[^\s\"'`)]+", source + WIDGETS[name]._css))
    assert hosts <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bimport\b|\bfetch\b|XMLHttpRequest|@import", source.replace("import.", ""))


def values(trait, default, count):
    """Every choice, ``count`` values of a bounded number and the ends of a bounded whole one."""
    if isinstance(trait, traitlets.Enum):
        return list(trait.values)
    if isinstance(trait, traitlets.Float) and math.isfinite(trait.min) and math.isfinite(trait.max):
        return np.linspace(trait.min, trait.max, count).tolist()
    if isinstance(trait, traitlets.Int) and math.isfinite(trait.min) and math.isfinite(trait.max):
        return [trait.min, trait.max]
    return [default]


def states(widget):
    """Widgets over the grid of their traits: as fine as has at most 80 states, but with the ends and the middle.

    Of a grid that has more with these alone a third is enough, in which every value of every trait occurs; weekly all.
    """
    default = widget().state()
    for count in (9, 5, 3):
        grid = [values(widget.class_traits()[name], value, count) for name, value in default.items()]
        if math.prod(map(len, grid)) <= 80:
            break
    some = math.prod(map(len, grid)) > 80 and not os.environ.get("AFFSCORE_WEEKLY")
    for places in itertools.product(*(range(len(column)) for column in grid)):
        if some and sum(places) % 3:
            continue
        choice = [column[at] for column, at in zip(grid, places, strict=True)]
        try:
            yield widget(**dict(zip(default, choice, strict=True)))
        except traitlets.TraitError:
            continue  # not every combination need be allowed


@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_computes_what_python_computes(node, name):
    widgets = list(states(WIDGETS[name]))
    assert widgets
    scores = node(widgets[0]._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                  [widget.state() for widget in widgets])  # fmt: skip
    for widget, score in zip(widgets, scores, strict=True):
        np.testing.assert_allclose(score, widget.score(), atol=1e-6, err_msg=repr(widget))


@pytest.mark.parametrize("name", WIDGETS)
def test_stored_outputs_are_complete_and_reproducible(name):
    """A stored output holds the widget's state and its picture and is the same on every machine.

    Made again from its repr it is the same text, and no coordinate carries digits that rounding could reach.
    """
    widget = WIDGETS[name]()
    data, _ = widget._repr_mimebundle_()
    text = data["text/html"]
    assert data["text/plain"] == repr(widget) and "application/vnd.jupyter.widget-view+json" in data
    tree = ElementTree.fromstring(text)  # well formed
    assert tree.tag == "div" and tree.get("class") == "affscore-widget" and tree.get("data-widget") == name
    assert json.loads(tree.get("data-state")) == widget.state()
    pictures = [node for node in tree.iter() if node.tag.endswith("svg")]
    assert pictures and all(picture.get("role") == "img" and picture.get("aria-label") for picture in pictures)
    assert eval(repr(widget), {name: WIDGETS[name]})._repr_mimebundle_()[0]["text/html"] == text
    for path in re.findall(r' (?:d|x|y|cx|cy|x1|x2|y1|y2|width)="([^"]*)"', text):
        assert not re.search(r"\.\d{2}|e-?\d|nan|inf|-0(?![\d.])", path), path


@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_refuses_what_it_cannot_show(name):
    """Unknown choices, and numbers just outside their bounds."""
    for trait, kind in WIDGETS[name].class_traits().items():
        wrong = ["no such choice"] if isinstance(kind, traitlets.Enum) else []
        if trait in WIDGETS[name]().state() and isinstance(kind, traitlets.Int | traitlets.Float):
            wrong += [end for end in (kind.min - 1, kind.max + 1) if math.isfinite(end)]
        for value in wrong:
            with pytest.raises(traitlets.TraitError):
                WIDGETS[name](**{trait: value})


def test_colab_gets_the_live_widget_and_its_manager(monkeypatch):
    calls = []
    output = types.ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: calls.append("enabled")
    output._widgets = types.SimpleNamespace(_installed_url="https://colab.example/manager.js")
    for name, module in (("google", types.ModuleType("google")), ("google.colab", types.ModuleType("google.colab")),
                         ("google.colab.output", output)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    import anywidget._util

    anywidget._util.enable_custom_widget_manager_once.cache_clear()
    try:
        data, metadata = next(iter(WIDGETS.values()))()._repr_mimebundle_()
    finally:
        anywidget._util.enable_custom_widget_manager_once.cache_clear()
    assert calls == ["enabled"]
    assert set(data) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert "custom_widget_manager" in json.dumps(metadata)


def test_a_widget_without_its_score_says_so():
    with pytest.raises(NotImplementedError, match=r"ComputedWidget should implement score\(\)"):
        ComputedWidget().score()


def test_a_readout_shows_no_false_zero(node):
    cases = [(0.0004, 3, "< 0.001"), (1e-98, 3, "< 0.001"), (0.0006, 3, "0.001"), (0, 3, "0.000"), (0.2, 0, "< 1"),
             (-0.5, 2, "\u22120.50"), (-1e-9, 3, "< 0.001")]  # fmt: skip
    found = node(PANEL, "(m, cases) => cases.map(([value, digits]) => m.readout(value, digits))", cases)
    assert found == [shown for *_, shown in cases]


def test_trail_has_what_a_drag_passes(node):
    """A trail holds the places that a drag passes and not those that a jump leaves out."""
    drags = [([0], [0]), ([0, 1], [0, 1]), ([4, 2], [2, 3, 4]), ([0, 15], [0, 15]), ([7.4], [7]),
             ([0, 15, 13], [0, 13, 14, 15])]  # fmt: skip
    body = """(m, drags) => drags.map(([places]) => {
      const trail = new m.Trail(Array.from({ length: 17 }, (_, i) => i));
      trail.visit("another", 9);
      const found = places.map((x) => trail.visit("curve", x)).at(-1);
      return found.flatMap((each, i) => (each ? [i] : []));
    })"""
    assert node(FIGURE, body, drags) == [seen for _, seen in drags]
