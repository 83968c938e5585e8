"""The widget of the chapter on linearised networks: paths, function and graph, in JavaScript and in Python."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
import traitlets
from grids import each

from affscore_book.linearized.slopes import channel_prelus
from affscore_book.linearized.widget import (
    DEPTH,
    GRID,
    NAMES,
    REACH,
    SEEDS,
    WIDTH,
    LinearizedNetwork,
    limits,
    lines,
)

LAYERS = [f"layer{layer}" for layer in range(1, DEPTH + 1)]
CONNECTIONS = list(NAMES)


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


def parents(connections, place):
    """Summands of a place, each a list of the places it may come from. Sums and units are places: (kind, layer, i)."""
    kind, layer, i = place
    if kind == "unit":
        return [[("sum", layer, i)]]
    if kind == "added":  # what a layer hands on where there is a skip over it
        return [[("unit", layer, i)], [("added" if layer > 2 else "unit", layer - 1, i)]]
    if kind == "output":
        return [[("sum", DEPTH + 1, 0)]] + ([[("input", 0, 0)]] if connections == "skip_all" else [])
    if layer == 1:
        return [[("input", 0, 0)]]
    name = "added" if connections == "skip_each" and layer > 2 else "unit"
    chain = [(name, layer - 1, j) for j in range(WIDTH)]
    if connections != "concatenate":
        return [chain]
    older = [("unit", below, j) for below in range(1, layer - 1) for j in range(WIDTH)]
    return [[("input", 0, 0), *older, *chain]]


def all_paths(connections, linear):
    """(length, NAPL weight) of every path, one by one."""
    unfinished = [(("output", 0, 0), 0, Fraction(1))]
    while unfinished:
        place, length, weight = unfinished.pop()
        kind, layer, i = place
        if kind == "input":
            yield length, weight
            continue
        length += kind == "unit" and not linear[layer - 1][i]
        summands = parents(connections, place)
        for choices in summands:
            share = weight / len(summands) / len(choices)
            unfinished += [(choice, length, share) for choice in choices]


def by_length(connections, linear):
    counts, weights = [0] * (DEPTH + 1), [Fraction(0)] * (DEPTH + 1)
    for length, weight in all_paths(connections, linear):
        counts[length] += 1
        weights[length] += weight
    return counts, weights


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_paths_are_those_of_brute_force_for_any_units(node, connections):
    random = np.random.default_rng(1)
    cases = [random.random((DEPTH, WIDTH)) < share for share in np.linspace(0, 1, 15)]
    found = node(LinearizedNetwork._esm, "(m, [c, cases]) => cases.map(linear => m.pathLengths(c, linear))",
                 [connections, [case.tolist() for case in cases]])  # fmt: skip
    for linear, result in zip(cases, found, strict=True):
        counts, weights = by_length(connections, linear)
        assert sum(weights) == 1
        assert result["count"] == counts and result["paths"] == sum(counts)
        np.testing.assert_allclose(result["weight"], [float(weight) for weight in weights], atol=1e-15)
        assert result["apl"] == pytest.approx(sum(k * c for k, c in enumerate(counts)) / sum(counts), abs=1e-14)
        assert result["napl"] == pytest.approx(float(sum(k * w for k, w in enumerate(weights))), abs=1e-14)


def test_paths_are_those_of_the_traced_network(node):
    widgets = list(random_widgets(60))
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


@pytest.mark.parametrize(
    ("connections", "paths", "apl", "napl"),
    [
        ("plain", 4**4, 4, 4),
        ("skip_all", 257, 1024 / 257, 2),  # figure 1 of the paper
        ("skip_each", 4 * 5**3, 1 + 3 * 4 / 5, 1 + 3 / 2),
        ("concatenate", 5**4, 4 * 4 / 5, None),
    ],
)
def test_paths_of_networks_of_relus(connections, paths, apl, napl):
    found = LinearizedNetwork(connections=connections).paths()
    assert (found.paths.tolist(), found.apl) == ([paths], pytest.approx(apl))
    if napl is not None:
        assert found.napl == napl
    text = LinearizedNetwork(connections=connections).fallback()
    assert f"{paths} paths; 16 of 16 units are ReLUs" in text and f"APL {apl:.3f}, NAPL {found.napl:.3f}" in text


@pytest.mark.parametrize("seed", range(4))
def test_napl_adds_up_over_layers(seed):
    for widget in random_widgets(6, seed=seed, connections=["plain", "skip_each", "skip_all", "plain"][seed]):
        shares = 1 - widget.linear_units().mean(axis=1)
        factors = {"plain": [1, 1, 1, 1], "skip_each": [1, 0.5, 0.5, 0.5], "skip_all": [0.5] * 4}[widget.connections]
        assert widget.score() == pytest.approx(shares @ factors)


def test_the_function_is_torchs(node):
    widgets = list(random_widgets(40, seed=2))
    x = inputs()
    body = (
        "(m, [states, x]) => states.map(s => m.forward(m.network(s.connections, s.draw), m.linearUnits(s), x).output)"
    )
    found = node(LinearizedNetwork._esm, body, [[w.state() for w in widgets], x.flatten().tolist()])
    for widget, result in zip(widgets, found, strict=True):
        points = x.clone().requires_grad_()
        values = widget.network()(points)
        assert values.dtype == torch.float64
        (slopes,) = torch.autograd.grad(values.sum(), points)
        for name, expected in (("value", values), ("slope", slopes)):
            scale = expected.abs().max().item()
            np.testing.assert_allclose(
                np.array(result[name]) / scale, expected.detach().flatten() / scale, atol=1e-11, err_msg=repr(widget)
            )


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
    widgets = [*random_widgets(30, seed=3), *(LinearizedNetwork(connections=c, draw=3) for c in CONNECTIONS)]
    found = node(LinearizedNetwork._esm, "(m, states) => states.map(m.evaluate)", [w.state() for w in widgets])
    some = np.random.default_rng(0).uniform(0.05, 0.95, 4)
    for widget, result in zip(widgets, found, strict=True):
        x, y, kinks = widget.pieces()
        scale = np.abs(y).max()
        np.testing.assert_allclose(result["x"], x, atol=1e-9)
        np.testing.assert_allclose(np.array(result["y"]) / scale, y / scale, atol=1e-10)
        np.testing.assert_allclose(result["kinks"], kinks, atol=1e-9)
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


@each("connections", CONNECTIONS)
@each("draw", [1, 5])
def test_the_fully_linear_network_is_a_line_without_length(connections, draw):
    widget = LinearizedNetwork(connections=connections, draw=draw, **dict.fromkeys(LAYERS, WIDTH))
    x, _, kinks = widget.pieces()
    assert x.tolist() == [-REACH, REACH] and kinks.size == 0
    assert widget.score() == 0 and widget.paths().apl == 0
    assert "linear pieces: 1," in widget.fallback()


@each("connections", CONNECTIONS)
@each("draw", range(1, len(SEEDS) + 1))
def test_inputs_of_relus_are_standardised_and_the_function_turns(connections, draw):
    widget = LinearizedNetwork(connections=connections, draw=draw, layer1=3)
    network = widget.network(linear=False)
    grid = torch.linspace(-REACH, REACH, GRID, dtype=torch.float64)[:, None]
    sums = torch.cat(network.sums(grid), 1).detach()
    np.testing.assert_allclose(sums.std(0, correction=0), 1, rtol=1e-10)
    assert sums.mean(0).abs().max() < 0.5
    assert all((layer.weight == 0).all() for layer in channel_prelus(network).values())
    assert (np.diff(np.sign(np.diff(widget.pieces(linear=False)[1]))) != 0).sum() >= 2


def test_units_become_linear_in_an_order_of_the_draw():
    orders = set()
    for draw, layer in itertools.product(range(1, len(SEEDS) + 1), range(DEPTH)):
        sets = [LinearizedNetwork(draw=draw, **{LAYERS[layer]: count}).linear_units() for count in range(WIDTH + 1)]
        for count, (fewer, more) in enumerate(itertools.pairwise(sets)):
            assert (fewer <= more).all() and more[layer].sum() == more.sum() == count + 1
        orders.add(tuple(np.argsort(-np.sum(sets, axis=0)[layer])))
    assert len(orders) > 10


def test_both_languages_offer_and_draw_the_same(node):
    options, seeds, drawn = node(
        LinearizedNetwork._esm, "(m, names) => [m.OPTIONS, m.SEEDS, names.map(m.lines)]", CONNECTIONS
    )
    assert options == [list(item) for item in NAMES.items()] and seeds == list(SEEDS)
    assert LinearizedNetwork.draw.max == len(SEEDS)
    for connections, found in zip(CONNECTIONS, drawn, strict=True):
        edges, skips, plus = lines(connections)
        assert (found["edges"], found["skips"]) == (edges, skips)
        assert found["plus"] == [list(place) for place in plus]
        widget = LinearizedNetwork(connections=connections)
        assert node(widget._esm, "(m, c) => m.graphLabel(c, [4, 4, 4, 4])", connections) in widget.fallback()


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_the_graph_has_an_edge_for_each_choice_of_a_path(connections):
    edges, skips, plus = lines(connections)
    between = 4 + 3 * 16 + 4
    assert edges.count("M") == between + len(plus)
    # Concatenation: one arc for each pair of layers that are not neighbours, whatever their units.
    assert skips.count("M") == {"plain": 0, "skip_each": 12, "skip_all": 1, "concatenate": 10}[connections]
    assert len(plus) == {"skip_each": 12, "skip_all": 1}.get(connections, 0)


@pytest.mark.parametrize("layers", [(0, 0, 0, 0), (1, 0, 4, 2)])
def test_the_picture_shows_linear_units_hollow(layers):
    text = LinearizedNetwork(connections="plain", **dict(zip(LAYERS, layers, strict=True))).fallback()
    graph = text[text.index("<svg") : text.index("</svg>")]
    # One of each is the legend's.
    assert graph.count('class="input-dot"') == 16 - sum(layers) + 1
    assert graph.count('class="hollow"') == sum(layers) + 1
    assert re.findall(r">p = ([\d.]+)<", graph) == [f"{1 - count / 4:g}" for count in layers]
    assert f"ReLUs by layer: {', '.join(str(4 - count) for count in layers)}" in graph


def test_limits_hold_all_values_in_both_languages(node):
    random = np.random.default_rng(0)
    cases = [random.normal(random.normal(0, 5), 10 ** random.uniform(-2, 2), 9) for _ in range(60)]
    found = node(LinearizedNetwork._esm, "(m, cases) => cases.map(m.limits)", [case.tolist() for case in cases])
    for values, result in zip(cases, found, strict=True):
        low, high = limits(values)
        assert low < values.min() and values.max() < high and high - low < 3.1 * np.ptp(values)
        assert result == pytest.approx([low, high])


@each(
    "wrong",
    [{"connections": "dense"}, {"draw": 0}, {"draw": len(SEEDS) + 1}, {"layer1": 5}, {"layer4": -1}, {"layer2": 0.5}],
)
def test_widget_refuses_what_it_cannot_show(wrong):
    with pytest.raises(traitlets.TraitError):
        LinearizedNetwork(**wrong)


def test_the_picture_leaves_the_random_numbers_alone():
    state = torch.random.get_rng_state()
    LinearizedNetwork().fallback()
    assert torch.equal(torch.random.get_rng_state(), state)


HOST = """async ([source, state]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const listeners = {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      for (const call of listeners[`change:${name}`] ?? []) call();
    },
    on: (event, call) => { (listeners[event] ??= []).push(call); },
    off: () => {},
    save_changes: () => {},
  };
  window.drawings = 0;
  module.default.render({ model, el: document.body });
  const root = document.querySelector(".affscore-figure");
  new MutationObserver((changes) => { window.drawings += changes.length; })
    .observe(root, { attributes: true, attributeFilter: ["data-redraw-ms"] });
}"""


@pytest.mark.browser
def test_one_slider_moves_all_layers_and_the_picture_is_drawn_once(chromium):
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
