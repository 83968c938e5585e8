"""Neural redshift: the paper's draws, the complexity measures on signals of known frequency, symmetry, the widget."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from affscore import affinity_score
from affscore_book.redshift import exercises
from affscore_book.redshift.networks import (
    PANELS,
    PUBLISHED_SEED,
    Network,
    chebyshev_degree,
    dct_frequency,
    fourier_frequency,
    grid_points,
    image_of,
    layer_scores,
    lempel_ziv,
    load_study,
    random_network,
)
from affscore_book.redshift.widget import NAMES, RedshiftImage

STUDY = Path(__file__).resolve().parents[2] / "book" / "data" / "redshift" / "study.json"


# ------------------------------------------------------------------------------------------ the paper's numbers


@pytest.mark.parametrize("panel", PANELS)
def test_the_papers_means_and_deviations(panel):
    shift, scale, activation = panel
    scores = layer_scores(activation, scale=scale, shift=shift, seed=PUBLISHED_SEED)
    mean, std = PANELS[panel]
    assert scores.dtype == torch.float64 and scores.shape == (3,)
    assert abs(scores.mean() - mean) < 0.01
    assert abs(scores.std(correction=0) - std) < 0.015


@pytest.mark.parametrize("panel", PANELS)
def test_the_papers_means_without_shrinkage(panel):
    shift, scale, activation = panel
    scores = layer_scores(activation, scale=scale, shift=shift, seed=PUBLISHED_SEED, covariance="empirical")
    assert abs(scores.mean() - PANELS[panel][0]) < 0.025


def test_another_seed_misses_the_papers_numbers():
    """Agreement with the paper is not what any draw gives."""
    misses = [
        abs(layer_scores(a, scale=s, shift=t, seed=PUBLISHED_SEED + 1).mean() - mean) > 0.01
        for (t, s, a), (mean, _) in PANELS.items()
        if s == 6
    ]
    assert any(misses)


@pytest.mark.parametrize("shift", [0.0, -0.05])
def test_published_draw_is_torchs_in_the_papers_order(shift):
    """Written out once more: seed, four layers, their numbers; then four new layers and theirs, without a new seed."""
    torch.manual_seed(PUBLISHED_SEED)
    for scale in (1.0, 6.0):
        layers = [torch.nn.Linear(2, 40), torch.nn.Linear(40, 40), torch.nn.Linear(40, 40), torch.nn.Linear(40, 1)]
        for layer in layers:
            a = math.sqrt(6 / (layer.in_features + layer.out_features))
            torch.nn.init.uniform_(layer.weight, scale * (-a + shift), scale * (a + shift))
            torch.nn.init.uniform_(layer.bias, -1, 1)
        network = random_network(scale=scale, shift=shift, seed=PUBLISHED_SEED)
        for layer, weight, bias in zip(layers, network.weights, network.biases, strict=True):
            assert torch.equal(layer.weight.double(), weight) and torch.equal(layer.bias.double(), bias)


# --------------------------------------------------------------------------------------------------- the draws


@pytest.mark.parametrize("draw", ["published", "paired"])
def test_a_draw_leaves_the_callers_random_numbers_alone(draw):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    random_network(seed=1, scale=2.0, draw=draw)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("seed", range(3))
def test_paired_draws_differ_by_scale_and_shift_only(seed):
    one = random_network(seed=seed, draw="paired")
    other = random_network(seed=seed, scale=6.0, shift=-0.05, draw="paired")
    for a, b, p, q in zip(one.weights, other.weights, one.biases, other.biases, strict=True):
        torch.testing.assert_close(b, 6 * (a - 0.05), rtol=1e-12, atol=1e-12)
        assert torch.equal(p, q)
    published = random_network(seed=seed)
    for a, b in zip(one.weights, published.weights, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("draw", ["published", "paired"])
@pytest.mark.parametrize(("mode", "sign"), [("bounds", 1), ("symmetric", -1)])
def test_weights_fill_their_bounds(draw, mode, sign):
    network = random_network(seed=0, scale=2.0, shift=-0.05, shift_mode=mode, draw=draw, width=100)
    a = math.sqrt(6 / 200)
    weight = network.weights[1]
    low, high = 2 * (-a + sign * -0.05), 2 * (a - 0.05)
    assert low <= weight.min() < low + 0.001 and high - 0.001 < weight.max() <= high + 1e-7
    assert abs(weight.mean() - (low + high) / 2) < 0.01
    assert all(bias.abs().max() <= 1 for bias in network.biases)


def test_scores_are_those_of_the_networks_activations():
    network = random_network(seed=3, draw="paired", width=7, depth=2)
    points = grid_points(9)
    value = points
    expected = []
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        before = value @ weight.T + bias
        value = torch.tanh(before)
        expected.append(affinity_score(before, value).item())
    found = layer_scores("tanh", seed=3, draw="paired", width=7, depth=2, grid=9)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(network(points, torch.tanh), value @ network.weights[-1][0] + network.biases[-1])
    assert image_of(network, "tanh", grid=9).shape == (9, 9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"activation": "rleu"}, ValueError, "activation is 'rleu'; it should be one of heaviside, sign"),
        ({"scale": 0.0}, ValueError, "scale is 0.0; it should be a finite number greater than 0"),
        ({"scale": -1.0}, ValueError, "scale is -1.0"),
        ({"scale": math.nan}, ValueError, "scale is nan"),
        ({"shift": math.inf}, ValueError, "shift is inf; it should be a finite number"),
        ({"shift": -0.5, "shift_mode": "symmetric"}, ValueError, r"shift is -0\.5; with shift_mode 'symmetric'"),
        ({"grid": 1}, ValueError, "grid is 1; it should be at least 2"),
        ({"grid": 8.0}, TypeError, r"grid is 8\.0; it should be a whole number"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"depth": 0}, ValueError, "depth is 0; it should be at least 1"),
        ({"width": True}, TypeError, "width is True; it should be a whole number"),
        ({"draw": "first"}, ValueError, "draw is 'first'; it should be one of 'published', 'paired'"),
        ({"shift_mode": "both"}, ValueError, "shift_mode is 'both'; it should be one of 'bounds', 'symmetric'"),
        ({"covariance": "oas"}, ValueError, "covariance is 'oas'; it should be one of"),
    ],
)
def test_bad_arguments_are_named(change, error, message):
    with pytest.raises(error, match=message):
        layer_scores(**{"activation": "relu", "seed": 0, "grid": 4} | change)


# ---------------------------------------------------------------------------------------------------- symmetry


@pytest.mark.parametrize("c", [0.1, 2.0, 6.0])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "prelu", "abs", "identity"])
@pytest.mark.parametrize("depth", [1, 3])
def test_homogeneous_activations_only_scale_the_function(c, activation, depth):
    network = random_network(seed=depth, draw="paired", depth=depth)
    other = network.rescaled(c, biases=True)
    points = grid_points(8)
    expected = c ** (depth + 1) * network(points, activation)
    torch.testing.assert_close(other(points, activation), expected, rtol=1e-11, atol=1e-12 * expected.abs().max())
    pairs = zip(network.hidden(points, activation), other.hidden(points, activation), strict=True)
    for (x, y), (u, v) in pairs:
        assert affinity_score(u, v).item() == pytest.approx(affinity_score(x, y).item(), abs=1e-7)


@pytest.mark.parametrize(("activation", "biases"), [("tanh", True), ("gelu", True), ("relu", False)])
def test_the_symmetry_needs_homogeneity_and_the_biases(activation, biases):
    network, points = random_network(seed=0), grid_points(8)
    scaled = network.rescaled(2.0, biases=biases)(points, activation)
    assert (scaled - 16 * network(points, activation)).abs().max() > 0.1
    with pytest.raises(ValueError, match=r"c is 0\.0"):
        network.rescaled(0.0, biases=True)


# -------------------------------------------------------------------------------------------------- complexity


@pytest.mark.parametrize(("k", "m"), [(1, 0), (3, 4), (0, 9), (15, 8)])
def test_fourier_frequency_of_a_wave(k, m):
    x = 2 * np.pi * np.arange(32) / 32
    wave = 3 + np.cos(k * x[:, None] + m * x + 0.3)
    assert fourier_frequency(wave) == pytest.approx(math.hypot(k, m) / 16, rel=1e-12)


@pytest.mark.parametrize(("k", "m"), [(1, 0), (3, 4), (0, 9), (31, 20)])
def test_dct_frequency_of_a_wave_and_chebyshev_degree_of_a_polynomial(k, m):
    x = (np.arange(32) + 0.5) / 32
    wave = -7 + 2 * np.outer(np.cos(np.pi * k * x), np.cos(np.pi * m * x))
    assert dct_frequency(wave) == pytest.approx(math.hypot(k, m), rel=1e-12)
    nodes = grid_points(32, nodes="chebyshev").numpy()
    line = np.polynomial.chebyshev.Chebyshev
    product = line.basis(k)(nodes[:, 0]) * line.basis(m)(nodes[:, 1])
    assert chebyshev_degree(product.reshape(32, 32)) == pytest.approx(math.hypot(k, m), rel=1e-10)


def test_mixtures_are_weighted_by_power():
    x = (np.arange(32) + 0.5) / 32
    wave = np.add.outer(3 * np.cos(np.pi * 2 * x), 1 * np.cos(np.pi * 10 * x))
    assert dct_frequency(wave) == pytest.approx((9 * 2 + 1 * 10) / 10, rel=1e-12)


def test_fourier_has_a_floor_where_the_cosine_transform_has_none():
    """A ramp in any direction: the closed form of its Fourier series, |F_k|^2 ~ 1 / sin^2(pi k / n)."""
    n = 32
    k = np.arange(1, n)
    power = 1 / np.sin(np.pi * k / n) ** 2
    floor = (power * np.minimum(k, n - k)).sum() / power.sum() / (n / 2)
    points = grid_points(n)
    for angle in (0.0, 0.4, 0.7):
        ramp = (points[:, 0] * math.cos(angle) + points[:, 1] * math.sin(angle)).reshape(n, n)
        assert fourier_frequency(ramp) == pytest.approx(floor, rel=1e-9)
        assert 1 <= dct_frequency(ramp) < 1.04
    assert 0.147 < floor < 0.149


@pytest.mark.parametrize("measure", [fourier_frequency, dct_frequency, lempel_ziv])
def test_measures_have_no_unit_and_are_undefined_on_constants(measure):
    image = image_of(random_network(seed=1), "tanh", grid=16)
    assert measure(image * 2**20 + 2**22) == pytest.approx(measure(image), rel=1e-6)
    assert measure(image.T) == pytest.approx(measure(image), rel=1e-9)
    assert math.isnan(measure(np.full((8, 8), 0.1)))
    with pytest.raises(ValueError, match=r"image has shape \(4,\); it should be \(rows, columns\)"):
        measure(np.zeros(4))
    with pytest.raises(ValueError, match="image holds values that are NaN or infinite"):
        measure(np.array([[0.0, math.nan], [1.0, 2.0]]))


def test_lempel_ziv_orders_simple_and_complex_images():
    rng = np.random.default_rng(0)
    step = np.zeros((32, 32))
    step[:, 16:] = 1
    noise = [lempel_ziv(rng.uniform(size=(32, 32)), levels=levels) for levels in (2, 4, 10)]
    assert lempel_ziv(step) < 0.1
    assert all(0.9 < value < 1.3 for value in noise), noise
    waves = [lempel_ziv(np.cos(f * np.arange(32))[:, None] + np.cos(1.3 * f * np.arange(32))) for f in (0.05, 0.4, 2.0)]
    assert waves == sorted(waves)
    with pytest.raises(ValueError, match="levels is 1; it should be at least 2"):
        lempel_ziv(step, levels=1)


def test_grid_points_refuses_unknown_nodes():
    with pytest.raises(ValueError, match="nodes is 'legendre'; it should be 'even' or 'chebyshev'"):
        grid_points(4, nodes="legendre")


# ------------------------------------------------------------------------------------------------ stored results


def test_the_stored_study_is_whole_and_one_draw_of_it_is_found_again():
    study = load_study(STUDY)
    assert np.shape(study.scores) == (200, 8, 3) and study.dct.shape == study.fourier.shape == (200, 8)
    assert set(study.maps) == set(study.settings["maps"]["activations"]) and len(study.maps) >= 8
    for seed, index in ((0, 0), (7, 3), (199, 5)):
        shift, scale, activation = list(PANELS)[index]
        again = layer_scores(activation, scale=scale, shift=shift, seed=seed, draw="paired")
        np.testing.assert_allclose(study.scores[seed, index], again, atol=1e-6)
    for activation, depth, scale, seed in (("gelu", 2, 4.0, 3), ("sine", 1, 0.5, 9)):
        maps = study.settings["maps"]
        where = maps["depths"].index(depth), maps["scales"].index(scale), seed
        network = random_network(scale=scale, depth=depth, seed=seed, draw="paired")
        score, frequency = study.maps[activation]["depth"][where]
        again = layer_scores(activation, scale=scale, depth=depth, seed=seed, draw="paired", grid=16)
        assert score == pytest.approx(again.mean().item(), abs=1e-6)
        assert frequency == pytest.approx(dct_frequency(image_of(network, activation)), abs=1e-6)


# ----------------------------------------------------------------------------------------------------- the widget


def test_both_languages_offer_the_same_choices(node):
    assert node(RedshiftImage._esm, "m => m.OPTIONS") == [list(item) for item in NAMES.items()]


@pytest.mark.parametrize("activation", NAMES)
def test_widget_computes_the_network_the_spectrum_and_every_score(node, activation):
    widgets = [
        RedshiftImage(activation=activation, depth=depth, scale=scale, shift=shift)
        for depth, scale, shift in [(1, 0.5, 0.0), (2, 6.0, 0.1), (3, 6.0, -0.05), (4, 3.0, -0.15), (4, 6.0, 0.15)]
    ]
    found = node(
        RedshiftImage._esm, "(m, states) => states.map(state => m.evaluate(state))", [w.state() for w in widgets]
    )
    for widget, result in zip(widgets, found, strict=True):
        image = image_of(widget.network(), activation).numpy().ravel()
        np.testing.assert_allclose(result["image"], image, atol=1e-9 * np.abs(image).max())
        np.testing.assert_allclose(result["scores"], widget.scores(), atol=1e-6)
        assert result["frequency"] == pytest.approx(dct_frequency(image.reshape(32, 32)), rel=1e-6)


def test_widgets_javascript_runs_the_published_network(node):
    network = random_network(seed=PUBLISHED_SEED, scale=6.0, shift=-0.05)
    layers = [
        {"weight": w.ravel().tolist(), "bias": b.tolist(), "fanIn": w.shape[1], "fanOut": w.shape[0]}
        for w, b in zip(network.weights, network.biases, strict=True)
    ]
    body = "(m, net) => { const run = m.forward(net, m.gridPoints(12), Math.tanh); return [run.output, run.calls.map("
    output, scores = node(RedshiftImage._esm, body + "([x, y]) => m.affinityScore(x, y, 40))]; }", layers)
    np.testing.assert_allclose(output, network(grid_points(12), "tanh"), atol=1e-5)
    expected = [affinity_score(x, y).item() for x, y in network.hidden(grid_points(12), "tanh")]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(share * trace) / d", "(share * trace)"),
        ("image[r * d + j] += value * map", "image[r * d + j] += map"),
        ("prices[open[k]] += distance[open[k]] - distance[nearest]", "prices[open[k]] += 0"),
        ("(2 * spread)", "spread"),
    ],
)
def test_a_wrong_formula_in_the_widget_is_noticed(node, right, wrong):
    assert RedshiftImage._esm.count(right) == 1
    widget = RedshiftImage(activation="sine", scale=6.0)
    body = "(m, state) => m.evaluate(state).score"
    try:
        score = node(RedshiftImage._esm.replace(right, wrong), body, widget.state())
    except RuntimeError:
        return
    assert not abs(score - widget.score()) < 1e-6


# ----------------------------------------------------------------------------------------------------- exercises

HALF = random_network(seed=0, draw="paired").rescaled(0.5, biases=True)
RIGHT = {
    "scale": lambda: exercises.check_scale(1 / 2 ** (1 / 4)),
    "biases": lambda: exercises.check_symmetry(random_network(seed=0, draw="paired"), HALF),
    "floor": lambda: exercises.check_floor(np.add.outer(np.arange(32), np.arange(32))),
    "draws": lambda: exercises.check_share(0.25, np.array([1.0, 0.5, 0.5, 0.5]), np.array([0.9, 0.6, 0.7, 0.8])),
}
WRONG = {
    "scale": lambda: exercises.check_scale(0.5),
    "same network": lambda: exercises.check_symmetry(
        random_network(seed=0, draw="paired"), random_network(seed=0, draw="paired")
    ),
    "biases kept": lambda: exercises.check_symmetry(
        random_network(seed=0, draw="paired"), random_network(seed=0, draw="paired").rescaled(0.5, biases=False)
    ),
    "another net": lambda: exercises.check_symmetry(
        random_network(seed=0, draw="paired"), Network(HALF.weights[:-1], HALF.biases[:-1])
    ),
    "complex": lambda: exercises.check_floor(np.random.default_rng(0).normal(size=(32, 32))),
    "periodic": lambda: exercises.check_floor(np.tile(np.cos(2 * np.pi * np.arange(32) / 32), (32, 1))),
    "complement": lambda: exercises.check_share(0.75, np.array([1.0, 0.5]), np.array([0.9, 0.4])),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_answers_are_accepted(case, capsys):
    RIGHT[case]()
    assert capsys.readouterr().out.startswith("Right: ")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_answers_are_refused_with_a_hint(case, capsys):
    WRONG[case]()
    assert capsys.readouterr().out.startswith("Not yet: ")


def test_the_study_is_strict_json():
    json.loads(STUDY.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert STUDY.stat().st_size < 1_000_000
