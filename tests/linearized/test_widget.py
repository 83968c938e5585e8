"""The widget of the chapter on linearised networks: paths, function and graph, in JavaScript and in Python."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from affscore_book.linearized.slopes import channel_prelus
from affscore_book.linearized.widget import (
    DEPTH,
    GRID,
    NAMES,
    REACH,
    SEEDS,
    WIDTH,
    LinearizedNetwork,
)

LAYERS = [f"layer{layer}" for layer in range(1, DEPTH + 1)]
CONNECTIONS = NAMES


def random_widgets(count, seed=0, **fixed):
    random = np.random.default_rng(seed)
    for _ in range(count):
        chosen = {
            "connections": str(random.choice(CONNECTIONS)), "draw": int(random.integers(1, len(SEEDS) + 1)),
            **{layer: int(random.integers(0, WIDTH + 1)) for layer in LAYERS},
        }  # fmt: skip
        yield LinearizedNetwork(**{**chosen, **fixed})


def inputs(count=200, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).uniform(-REACH, REACH, (count, 1)))


def test_paths_are_those_of_the_traced_network(node):
    widgets = list(random_widgets(40))
    found = node(LinearizedNetwork._esm, "(m, states) => states.map(m.evaluate)", [w.state() for w in widgets])
    for widget, result in zip(widgets, found, strict=True):
        paths = widget.paths()
        assert result["linear"] == widget.linear_units().tolist()
        assert result["paths"] == paths.paths.sum()
        assert (result["apl"], result["napl"]) == (pytest.approx(paths.apl), pytest.approx(paths.napl)), widget
        length = paths.counts.shape[1]
        assert result["count"][:length] == paths.counts[0].tolist()
        np.testing.assert_allclose(result["weight"][:length], paths.shares("napl"), atol=1e-14)
        assert not any(result["count"][length:] + result["weight"][length:])


def test_picture_tells_path_lengths_and_linear_units():
    """The picture tells how long the paths are and shows linear units hollow.

    One picture is Figure 1 of the paper, the other has five linear units; both leave torch's random numbers alone.
    """
    state = torch.random.get_rng_state()
    text = LinearizedNetwork(connections="skip_all").picture()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert "257 paths; 16 of 16 units are ReLUs" in text and f"APL {1024 / 257:.3f}, NAPL 2.000" in text
    text = LinearizedNetwork(connections="plain", layer1=1, layer3=4).picture()
    graph = text[text.index("<svg") : text.index("</svg>")]
    assert (graph.count('class="input-dot"'), graph.count('class="hollow"')) == (11 + 1, 5 + 1)  # and the legend's
    assert "ReLUs by layer: 3, 4, 0, 4" in graph


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_the_network_is_what_its_connections_say(connections):
    """The function from the weights by matrix products, without SmallNetwork.forward."""
    widget = next(random_widgets(1, seed=5, connections=connections))
    network, x = widget.network(), inputs(50).numpy()
    linear = widget.linear_units()
    outputs = [x]
    for index, layer in enumerate(network.layers):
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        below = np.concatenate(outputs, axis=1) if connections == "concatenate" else outputs[-1]
        value = below @ weight.T + bias
        if index < DEPTH:
            value = np.where(linear[index], value, np.maximum(value, 0))
            if connections == "skip_each" and index > 0:
                value = value + outputs[-1]
        outputs.append(value)
    output = outputs[-1] + x if connections == "skip_all" else outputs[-1]
    np.testing.assert_allclose(network(torch.from_numpy(x)).detach(), output, rtol=1e-12, atol=1e-12)


def test_pieces_are_exact_and_as_few_as_possible(node):
    widgets = [*random_widgets(10, seed=3), *(LinearizedNetwork(connections=c, draw=3) for c in CONNECTIONS)]
    found = node(LinearizedNetwork._esm, "(m, states) => states.map(m.evaluate)", [w.state() for w in widgets])
    some = np.random.default_rng(0).uniform(0.05, 0.95, 4)
    for widget, result in zip(widgets, found, strict=True):
        x, y, kinks = (np.array(result[name]) for name in ("x", "y", "kinks"))
        scale = np.abs(y).max()
        at = inputs(500)
        value = widget.network()(at).detach().flatten().numpy()
        np.testing.assert_allclose(np.interp(at.flatten().numpy(), x, y) / scale, value / scale, atol=1e-10)
        # One slope a piece, another on the next.
        ends = np.array([-REACH, *kinks, REACH])
        points = torch.from_numpy((ends[:-1, None] + some * np.diff(ends)[:, None]).reshape(-1, 1)).requires_grad_()
        (slopes,) = torch.autograd.grad(widget.network()(points).sum(), points)
        pieces = slopes.reshape(-1, len(some))
        np.testing.assert_allclose(pieces, pieces[:, :1].expand_as(pieces), atol=1e-10 * slopes.abs().max().item())
        assert (pieces[:, 0].diff().abs() > 1e-9 * slopes.abs().max()).all()


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_the_fully_linear_network_is_a_line_without_length(connections, node):
    widget = LinearizedNetwork(connections=connections, **dict.fromkeys(LAYERS, WIDTH))
    found = node(LinearizedNetwork._esm, "(m, state) => m.evaluate(state)", widget.state())
    assert found["x"] == [-REACH, REACH] and found["kinks"] == []
    assert widget.score() == 0 and widget.paths().apl == 0
    assert "linear pieces: 1," in widget.picture()


@pytest.mark.parametrize("connections", CONNECTIONS)
@pytest.mark.parametrize("draw", [1, 2, len(SEEDS)])
def test_inputs_of_relus_are_standardised_and_the_function_turns(connections, draw):
    network = LinearizedNetwork(connections=connections, draw=draw).network()
    grid = torch.linspace(-REACH, REACH, GRID, dtype=torch.float64)[:, None]
    sums = torch.cat(network.sums(grid), 1).detach()
    np.testing.assert_allclose(sums.std(0, correction=0), 1, rtol=1e-10)
    assert sums.mean(0).abs().max() < 0.5
    assert all((layer.weight == 0).all() for layer in channel_prelus(network).values())
    fine = torch.linspace(-REACH, REACH, 6001, dtype=torch.float64)[:, None]
    assert (np.diff(np.sign(np.diff(network(fine).detach().flatten()))) != 0).sum() >= 2


@pytest.mark.parametrize("draw", range(1, len(SEEDS) + 1))
def test_units_become_linear_one_after_the_other(draw):
    sets = [LinearizedNetwork(draw=draw, layer2=count).linear_units() for count in range(WIDTH + 1)]
    for count, (fewer, more) in enumerate(itertools.pairwise(sets)):
        assert (fewer <= more).all() and more[1].sum() == more.sum() == count + 1


def test_both_languages_offer_the_same(node):
    options, seeds = node(LinearizedNetwork._esm, "m => [m.OPTIONS, m.SEEDS]")
    assert tuple(name for name, _ in options) == NAMES and seeds == list(SEEDS)
    assert LinearizedNetwork.draw.max == len(SEEDS)


def test_limits_hold_all_values(node):
    random = np.random.default_rng(0)
    cases = [random.normal(random.normal(0, 5), 10 ** random.uniform(-2, 2), 9) for _ in range(20)]
    found = node(LinearizedNetwork._esm, "(m, cases) => cases.map(m.steadyLimits)", [case.tolist() for case in cases])
    for values, (low, high) in zip(cases, found, strict=True):
        assert low < values.min() and values.max() < high and high - low < 3.1 * np.ptp(values)


HOST = """async ([source, state]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const listeners = {};
  const set = (name, value) => {
    const changed = state[name] !== value;
    state[name] = value;
    if (changed) (listeners[`change:${name}`] ?? []).forEach((call) => call());
  };
  const on = (event, call) => { (listeners[event] ??= []).push(call); };
  const model = { get: (name) => state[name], set, on, off: () => {}, save_changes: () => {} };
  window.drawings = 0;
  module.default.render({ model, el: document.body });
  new MutationObserver((changes) => { window.drawings += changes.length; })
    .observe(document.querySelector(".affscore-figure"), { attributes: true, attributeFilter: ["data-redraw-ms"] });
}"""


@pytest.mark.browser
def test_one_slider_moves_all_layers_and_draws_once(chromium):
    """One slider moves all layers, and the picture is drawn once."""
    tab = chromium.new_page()
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    widget = LinearizedNetwork(layer2=3, layer4=1)
    tab.evaluate(HOST, [widget._esm, widget.state()])
    root = tab.locator(".affscore-figure")
    master = tab.get_by_role("slider", name="Linear in all layers")
    assert (master.input_value(), master.get_attribute("aria-valuetext")) == ("1", "4 of 16")
    master.press("ArrowRight")
    expected = LinearizedNetwork(**dict.fromkeys(LAYERS, 2))
    assert tab.evaluate("drawings") == 1
    assert root.evaluate("root => JSON.parse(root.dataset.state)") == expected.state()
    assert float(root.get_attribute("data-score")) == pytest.approx(expected.score())
    assert tab.locator(".graph .hollow").count() == 8 + 1 + 1  # and the legend's, and the plus sign
    tab.get_by_role("slider", name="Layer 3").press("End")
    assert (master.input_value(), master.get_attribute("aria-valuetext")) == ("3", "10 of 16")
    assert math.isclose(float(root.get_attribute("data-score")), LinearizedNetwork(
        layer1=2, layer2=2, layer3=4, layer4=2).score())  # fmt: skip
    assert errors == []
    tab.close()
