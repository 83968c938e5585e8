"""The map of architectures and the history plot: their numbers are Python's and affscore's own."""

from __future__ import annotations

import html
import json
import math
import re

import numpy as np
import pytest
from made_signatures import published, random_scores

from affscore.suite.architectures import facts
from affscore.suite.distances import distances, mds_map
from affscore_book.imagenet_signatures import widget as module
from affscore_book.imagenet_signatures.widget import ArchitectureMap, ScoreHistory, architecture_map, score_history
from affscore_book.kit.widgets import ComputedWidget

NAMES = ["alexnet", "vgg11", "resnet18", "vit_b_16", "swin_t", "resnet50"]
FILTERS = [
    {"selected": selected, "family": family, "weights": weights}
    for selected in ("", "resnet18", "stranger")
    for family in ("all", "ResNet", "Swin", "no such family")
    for weights in ("all", "pretrained", "random", "unknown")
]


@pytest.fixture(scope="module")
def signatures():
    """Six networks, every other one with trained weights, one with a dead call, one with a negative score."""
    result = {}
    for i, name in enumerate(NAMES):
        rows = random_scores(i, 2, 7 + 4 * i)
        if name == "vgg11":
            rows[:, 3] = math.nan
        if name == "swin_t":
            rows[:, 1] = -0.25
        weights = "X_Weights.IMAGENET1K_V1" if i % 2 else "random initialisation, seed 0"
        result[name] = published(name, rows, weights)
    return result


@pytest.fixture(scope="module", params=["map", "history"])
def widget(request, signatures):
    return architecture_map(signatures) if request.param == "map" else score_history(signatures)


def again(widget, **changes):
    return type(widget)(**(widget.state() | changes))


def test_scores_are_the_medians_of_the_signatures(widget, signatures):
    for name in NAMES:
        shown = again(widget, selected=name)
        assert shown.score() == pytest.approx(np.nanmedian(signatures[name].mean), abs=1e-4)
        assert f"{shown.score():.3f}" in shown.fallback() and name in shown.fallback()


def test_javascript_chooses_counts_and_describes_as_python_does(widget, node):
    states = [again(widget, **filters) for filters in FILTERS]
    found = node(
        widget._esm.replace("export { evaluate };", "export { evaluate, chosen, describe, summary };"),
        "(m, all) => all.map(s => [m.evaluate(s).score, m.chosen(s).name, m.describe(s), m.summary(m.chosen(s))])",
        [state.state() for state in states],
    )
    seen = set()
    for state, (score, name, text, summary) in zip(states, found, strict=True):
        assert score == pytest.approx(state.score(), abs=1e-12)
        assert name == state.chosen()["name"] and text == state._text()
        median, low, high, calls = module._summary(state.chosen())
        assert [summary["score"], summary["low"], summary["high"], summary["calls"]] == [median, low, high, calls]
        seen.add(name)
    assert len(seen) > 2


def test_javascript_draws_where_python_draws(widget, node):
    radius = 6 if isinstance(widget, ArchitectureMap) else 3.5
    points = [(group, x, y) for group in module.GROUPS for x, y in ((10.0, 20.0), (33.3, 7.7))]
    found = node(
        widget._esm.replace("export { evaluate };", "export { evaluate, outline };"),
        f"(m, points) => points.map(([g, x, y]) => m.outline(g, x, y, {radius}))", points,
    )  # fmt: skip
    expected = [module._outline(module.GROUPS.index(group), x, y, radius) for group, x, y in points]
    assert found == expected and len(set(found)) == len(found)
    if isinstance(widget, ArchitectureMap):
        limits, low = node(widget._esm, "(m, models) => [m.square(models), m.floor(models)]", widget.models)
        np.testing.assert_allclose(limits, module._square(widget.models), rtol=1e-12)
        assert low == module._floor(widget.models) < -0.2
    else:
        times = node(widget._esm, "(m, models) => m.times(models)", widget.models)
        np.testing.assert_allclose(times, module._times([n["year"] for n in widget.models]), rtol=1e-12)
        assert [math.floor(t + 0.5) for t in times] == [n["year"] for n in widget.models]
        assert len(set(times)) == len(times)


def test_filters_keep_what_they_say(widget):
    for filters in FILTERS:
        shown = again(widget, **filters)
        passing = [n for n in shown.models if shown._fits(n)]
        for network in passing:
            assert filters["family"] in ("all", network["family"]) and filters["weights"] in ("all", network["weights"])
        if passing:
            assert shown.chosen() in passing
        else:
            assert shown._text().startswith("No network passes both filters.")
    assert again(widget, weights="random", family="ResNet").chosen()["name"] == "resnet18"


def test_the_text_never_passes_random_weights_off_as_trained(widget, signatures):
    for i, name in enumerate(NAMES):
        text = again(widget, selected=name)._text()
        assert ("trained weights" in text) == bool(i % 2) and ("random weights" in text) == (not i % 2)
        assert ("of the published weights" in text) == (not i % 2)
        assert f"{facts(name).accuracy:.1f} %" in text
    assert "hollow: random weights" in widget.fallback()
    assert widget.fallback().count('class="mark') == widget.fallback().count("<title>")
    hollow = re.findall(r'class="mark g\d hollow[^>]*><title>([^<]*)', widget.fallback())
    assert set(hollow) == {name for i, name in enumerate(NAMES) if not i % 2}


def test_the_map_has_the_places_of_the_arrangement(signatures):
    expected = mds_map(distances(signatures))
    widget = architecture_map(signatures)
    for network in widget.models:
        row = expected.row(network["name"])
        np.testing.assert_allclose([network["x"], network["y"]], [row["x"], row["y"]], atol=6e-4)
    picture = widget.fallback()
    assert picture.count('class="mark') == len(NAMES) and picture.count('class="ring') == 1


def test_the_history_has_the_years_and_leaves_strangers_out(signatures):
    widget = score_history(signatures | {"mine": published("mine", random_scores(0, 2, 5))})
    assert [n["name"] for n in widget.models] == ["alexnet", "vgg11", "resnet18", "resnet50", "vit_b_16", "swin_t"]
    assert [n["year"] for n in widget.models] == [2012, 2014, 2015, 2015, 2020, 2021]


def test_every_class_of_a_mark_has_its_style(widget):
    css = ComputedWidget.registry[repr(widget).split("(")[0]]._css
    used = set(re.findall(r'class="((?:mark|bar|ring)[^"]*)"', widget.fallback()))
    for name in {name for classes in used for name in classes.split()} | {"dim", "now", "affscore-key"}:
        assert re.search(rf"\.{name}\b", css), name


def test_stored_state_is_json_and_the_text_stays_short(widget):
    data, _ = widget._repr_mimebundle_()
    (state,) = re.findall(r'data-state="([^"]*)"', data["text/html"])
    assert json.loads(html.unescape(state)) == widget.state()
    assert len(repr(widget)) < 200 and "6 networks, weights: 3 pretrained, 3 random" in repr(widget)
    assert repr(ScoreHistory()) == "ScoreHistory(family='all', models=[], selected='', weights='all')"


def test_dead_networks_and_empty_widgets_have_no_score():
    dead = {"name": "dead", "family": "VGG", "group": "Pre-residual", "year": 2014, "accuracy": None,
            "weights": "unknown", "x": 0.0, "y": 0.0, "scores": [None, None]}  # fmt: skip
    for kind in (ArchitectureMap, ScoreHistory):
        assert math.isnan(kind().score()) and "no network to show" in kind().fallback()
        shown = kind(models=[dead])
        assert math.isnan(shown.score()) and "2 dead" in shown.fallback() and "not recorded" in shown.fallback()
