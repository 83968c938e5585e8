"""The map of architectures, the history plot and the explorer: their numbers are Python's and affscore's own."""

from __future__ import annotations

import base64
import html
import itertools
import json
import math
import re
import sys
import types

import numpy as np
import pytest
import torch
import traitlets
from made_signatures import published, random_scores
from torch import nn

from affscore import affinity_score
from affscore.companions import measure
from affscore.suite.architectures import facts
from affscore.suite.distances import distances, mds_map
from affscore_book.imagenet_signatures import widget as module
from affscore_book.imagenet_signatures.explorer import explorer
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
    given = distances(signatures)
    expected = mds_map(given)
    widget = architecture_map(signatures, given)
    for network in widget.models:
        row = expected.row(network["name"])
        np.testing.assert_allclose([network["x"], network["y"]], [row["x"], row["y"]], atol=6e-4)
    picture = widget.fallback()
    assert picture.count('class="mark') == len(NAMES) and picture.count('class="ring') == 1
    with pytest.raises(ValueError, match="given has no distances of resnet50"):
        architecture_map(signatures, distances({name: signatures[name] for name in NAMES[:-1]}))


def test_the_history_has_the_years_and_leaves_strangers_out(signatures):
    widget = score_history(signatures | {"mine": published("mine", random_scores(0, 2, 5))})
    assert [n["name"] for n in widget.models] == ["alexnet", "vgg11", "resnet18", "resnet50", "vit_b_16", "swin_t"]
    assert [n["year"] for n in widget.models] == [2012, 2014, 2015, 2015, 2020, 2021]
    with pytest.raises(ValueError, match="networks without a known year"):
        score_history({"mine": published("mine", random_scores(0, 2, 5))})


def test_gates_can_be_left_out(signatures):
    gated = {name: published(name, s.scores, gates=range(0, len(s.calls), 2)) for name, s in signatures.items()}
    for make in (architecture_map, score_history):
        for network in make(gated, gates=False).models:
            expected = gated[network["name"]].mean[1::2]
            np.testing.assert_allclose(
                [math.nan if value is None else value for value in network["scores"]], expected, atol=6e-5
            )


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


# -------------------------------------------------------------------------------------------------- the explorer


def small_networks():
    torch.manual_seed(3)
    convolutions = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 5, 3), nn.GELU(), nn.Flatten(), nn.Linear(5 * 16, 4), nn.Tanh()
    )
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 1), nn.Sigmoid())
    return {"convolutions": lambda: convolutions, "linear": lambda: linear}


def small_data():
    images = torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return {"normal": lambda _: images, "uniform": lambda _: images.sigmoid() - 2.0}


@pytest.fixture
def view():
    return explorer(small_networks(), small_data())


def expected(network, images, call):
    """The pooled input and output of a call, computed layer by layer; the calls are named by their layer."""
    x = images
    with torch.no_grad():
        for i, layer in enumerate(network):
            y = layer(x)
            if call.startswith(f"{i}:"):
                return (x.flatten(2).mean(2), y.flatten(2).mean(2)) if x.ndim == 4 else (x, y)
            x = y
    raise AssertionError(call)


def test_the_explorer_shows_the_score_of_what_is_chosen(view):
    networks, data = small_networks(), small_data()
    seen = set()
    for model, images in itertools.product(networks, data):
        view.model, view.data = model, images
        assert view.call in view.calls
        for call in view.calls:
            view.call = call
            before, after = expected(networks[model](), data[images](model), call)
            score = affinity_score(before.double(), after.double(), covariance="ledoit_wolf").item()
            assert view.score == pytest.approx(score, abs=1e-9)
            assert view.companions["cka"] == pytest.approx(measure(before.double(), after.double())["cka"], nan_ok=True)
            assert f"{score:.2f}" in view._table.value
            assert bytes(view._picture.value).startswith(b"\x89PNG")
            seen.add(round(score, 6))
    assert len(seen) == 2 * (3 + 1)


def test_the_lists_and_the_traits_follow_each_other(view):
    boxes = {box.description: box for box in view.children if hasattr(box, "description") and hasattr(box, "options")}
    assert list(boxes) == ["model", "data", "pool", "call", "view"]
    first = view.score
    boxes["call"].value = "3:gelu[0]"
    assert view.call == "3:gelu[0]" and view.score != first
    picture = view._picture.value
    boxes["view"].value = "principal components"
    assert view.view == "principal components" and view._picture.value != picture
    boxes["model"].value = "linear"
    assert view.model == "linear" and view.call == "2:sigmoid[0]" and list(boxes["call"].options) == ["2:sigmoid[0]"]
    view.model = "convolutions"
    assert boxes["model"].value == "convolutions" and boxes["call"].value == "1:relu[0]"


def test_the_pool_of_the_explorer_changes_what_is_pooled():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.act = nn.Linear(5, 7), nn.GELU()

        def forward(self, x):
            return self.act(self.linear(x))

    torch.manual_seed(0)
    network, tokens = Tokens(), torch.randn(30, 4, 5)
    view = explorer({"tokens": lambda: network}, {"normal": lambda _: tokens})
    with torch.no_grad():
        x = network.linear(tokens)
        y = network.act(x)
    for pool, axis in (("spatial", 1), ("trailing", 2)):
        view.pool = pool
        score = affinity_score(x.mean(axis).double(), y.mean(axis).double(), covariance="ledoit_wolf").item()
        assert view.score == pytest.approx(score, abs=1e-6)


def test_the_views_are_two_channels_and_the_principal_components(view):
    before, after = expected(small_networks()["convolutions"](), small_data()["normal"](""), view.call)
    two, _ = view.clouds()
    top = sorted(before.var(0).argsort(descending=True)[:2].tolist())
    np.testing.assert_allclose(two, before[:, top].double().numpy(), atol=1e-6)
    view.view = "principal components"
    for cloud, source in zip(view.clouds(), (before, after), strict=True):
        values = np.linalg.eigvalsh(np.cov(source.double().numpy().T, bias=True))[::-1]
        np.testing.assert_allclose(np.cov(cloud.T, bias=True), np.diag(values[:2]), atol=1e-6)


def test_a_dead_call_has_no_score_in_the_explorer():
    network = nn.Sequential(nn.ReLU())
    view = explorer({"dead": lambda: network}, {"negative": lambda _: -torch.rand(20, 3) - 1})
    assert math.isnan(view.score) and "affinity score" in repr(view.table()) and "-" in repr(view.table())
    silent = explorer({"none": lambda: nn.Linear(3, 2)}, {"x": lambda _: torch.rand(20, 3)})
    assert silent.calls == [] and math.isnan(silent.score) and "no activation call" in silent._status.value


@pytest.mark.parametrize(
    ("trait", "value"), [("model", "resnet"), ("data", "mnist"), ("pool", "max"), ("call", "9:relu[0]")]
)
def test_the_explorer_names_what_it_does_not_have(view, trait, value):
    before = view.score
    with pytest.raises(traitlets.TraitError):
        setattr(view, trait, value)
    assert view.score == before


def test_what_the_explorer_cannot_be_made_of_is_named():
    with pytest.raises(ValueError, match="at least one name"):
        explorer([], ["random"])
    with pytest.raises(ValueError, match="datasets should be a mapping to functions where models is one"):
        explorer(small_networks(), ["random"])
    with pytest.raises(ValueError, match="photo"):
        explorer(["efficientnet_lite0"], ["photograps"])


def test_data_that_cannot_be_had_is_said_in_the_explorer():
    def missing(_):
        raise OSError("no such data here")

    view = explorer(small_networks(), small_data() | {"missing": missing})
    with pytest.raises(OSError, match="no such data here"):
        view.data = "missing"
    assert view._status.value == "no such data here"
    view.data = "uniform"
    assert math.isfinite(view.score) and "40 samples" in view._status.value


def test_random_weights_are_named_in_the_explorer():
    view = explorer(["mnasnet0_5"], ["random"], samples=4, weights="random")
    assert view.model == "mnasnet0_5 (random weights)" and len(view.calls) == 35
    assert "random weights" in view._repr_mimebundle_()["text/html"]


def test_a_static_page_gets_the_picture_and_colab_the_widget(view, monkeypatch):
    data = view._repr_mimebundle_()
    assert data["text/plain"] == repr(view) and "application/vnd.jupyter.widget-view+json" in data
    (source,) = re.findall(r'src="data:image/png;base64,([^"]*)"', data["text/html"])
    assert base64.b64decode(source) == view._picture.value
    assert f"score {view.score:.3f}" in data["text/html"] and "<script" not in data["text/html"]
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert "text/html" not in view._repr_mimebundle_()
