"""The explorer: its numbers are affscore's own, its lists and traits agree, and it says what it cannot show."""

from __future__ import annotations

import base64
import itertools
import math
import re
import sys
import types

import numpy as np
import pytest
import torch
import traitlets
from torch import nn

from affscore import affinity_score
from affscore.companions import measure
from affscore_book.imagenet_signatures.explorer import VIEWS, Explorer, explorer, projected


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
    return Explorer(small_networks(), small_data())


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
    view = Explorer({"tokens": lambda: network}, {"normal": lambda _: tokens})
    with torch.no_grad():
        x = network.linear(tokens)
        y = network.act(x)
    for pool, axis in (("spatial", 1), ("trailing", 2)):
        view.pool = pool
        score = affinity_score(x.mean(axis).double(), y.mean(axis).double(), covariance="ledoit_wolf").item()
        assert view.score == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_the_views_are_two_channels_and_the_principal_components(channels):
    generator = np.random.default_rng(channels)
    clouds = [generator.normal(size=(40, channels)) @ generator.normal(size=(channels, channels)) for _ in range(2)]
    two, names = projected(*clouds, VIEWS[0])
    top = sorted(np.argsort(-clouds[0].var(axis=0))[:2])
    for plane, cloud in zip(two, clouds, strict=True):
        np.testing.assert_array_equal(plane[:, : len(top)], cloud[:, top])
    assert names == ([f"channel {channel}" for channel in top] + [""])[:2]
    if channels > 1:
        components, _ = projected(*clouds, VIEWS[1])
        for plane, cloud in zip(components, clouds, strict=True):
            values = np.linalg.eigvalsh(np.cov(cloud.T, bias=True))[::-1]
            np.testing.assert_allclose(np.cov(plane.T, bias=True), np.diag(values[:2]), atol=1e-9)


def test_a_dead_call_has_no_score_in_the_explorer():
    network = nn.Sequential(nn.ReLU())
    view = Explorer({"dead": lambda: network}, {"negative": lambda _: -torch.rand(20, 3) - 1})
    assert math.isnan(view.score) and "affinity score" in repr(view.table()) and "-" in repr(view.table())
    silent = Explorer({"none": lambda: nn.Linear(3, 2)}, {"x": lambda _: torch.rand(20, 3)})
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
    with pytest.raises(ValueError, match="photo"):
        explorer(["efficientnet_lite0"], ["photograps"])


def test_data_that_cannot_be_had_is_said_in_the_explorer():
    def missing(_):
        raise OSError("no such data here")

    view = Explorer(small_networks(), small_data() | {"missing": missing})
    with pytest.raises(OSError, match="no such data here"):
        view.data = "missing"
    assert view._status.value == "no such data here"
    view.data = "uniform"
    assert math.isfinite(view.score) and "40 samples" in view._status.value


def test_networks_and_data_are_found_by_name():
    view = explorer(["efficientnet_lite0"], ["random"], samples=4)
    assert len(view.calls) == 33 and "4 samples" in view._status.value


def test_a_static_page_gets_the_picture_and_colab_the_widget(view, monkeypatch):
    data = view._repr_mimebundle_()
    assert data["text/plain"] == repr(view) and "application/vnd.jupyter.widget-view+json" in data
    (source,) = re.findall(r'src="data:image/png;base64,([^"]*)"', data["text/html"])
    assert base64.b64decode(source) == view._picture.value
    assert f"score {view.score:.3f}" in data["text/html"] and "<script" not in data["text/html"]
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert "text/html" not in view._repr_mimebundle_()
