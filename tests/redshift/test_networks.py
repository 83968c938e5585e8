"""Random networks: the paper's draws and numbers, what a pair of draws shares, and the symmetry of ReLU."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from affscore import affinity_score
from affscore_book.redshift.complexity import dct_frequency, fourier_frequency, unexplained_variance
from affscore_book.redshift.networks import PANELS, grid_points
from affscore_study.redshift.draws import PUBLISHED_SEED, image_of, layer_scores, random_network, sigmoid_twin


@pytest.mark.parametrize("panel", PANELS)
def test_the_papers_means_and_deviations(panel):
    shift, scale, activation = panel
    scores = layer_scores(activation, scale=scale, shift=shift, seed=PUBLISHED_SEED)
    mean, std = PANELS[panel]
    assert scores.dtype == torch.float64 and scores.shape == (3,)
    assert abs(scores.mean() - mean) < 0.01
    assert abs(scores.std(correction=0) - std) < 0.0101


@pytest.fixture(scope="module")
def lesson():
    """What the cells of the chapter define: a painter and three measures, in NumPy."""
    notebook = Path(__file__).resolve().parents[2] / "book" / "redshift.ipynb"
    defined = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] in ("redshift-draw", "redshift-paint", "redshift-fourier", "a2bbe5a2"):
            exec("".join(cell["source"]), defined)
    return defined


@pytest.mark.parametrize(
    ("draw", "scale", "depth"),
    [("paired", 1.0, 3), ("paired", 6.0, 3), ("published", 6.0, 3), ("paired", 2.0, 1), ("paired", 6.0, 5)],
)
@pytest.mark.parametrize("seed", [0, PUBLISHED_SEED])
def test_lesson_draws_the_same_networks_and_measures(lesson, draw, scale, depth, seed):
    """The code of the lesson draws the same networks, and its measures are those of the package."""
    ours = random_network(scale=scale, shift=-0.05, seed=seed, draw=draw, depth=depth)
    theirs = lesson["network"](seed, scale, -0.05, depth, second=draw == "published")
    for (weights, biases), weight, bias in zip(theirs, ours.weights, ours.biases, strict=True):
        np.testing.assert_allclose(weights, weight, atol=1e-12 if draw == "paired" else 1e-6)
        assert np.array_equal(biases, bias)
    if draw == "paired":
        image = image_of(ours, "tanh").numpy().T[::-1]
        np.testing.assert_allclose(lesson["paint"](theirs, np.tanh), image, rtol=1e-9, atol=1e-9)
        assert lesson["fourier"](image) / 32 == pytest.approx(fourier_frequency(image), rel=1e-9)
        assert lesson["frequency"](image) == pytest.approx(dct_frequency(image), rel=1e-9)
        assert lesson["unexplained"](image) == pytest.approx(unexplained_variance(image), rel=1e-9)


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


@pytest.mark.parametrize("draw", ["published", "paired"])
def test_a_draw_leaves_the_callers_random_numbers_alone(draw):
    before = torch.random.get_rng_state()
    random_network(seed=1, scale=2.0, draw=draw)
    assert torch.equal(torch.random.get_rng_state(), before)


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


def test_scores_are_those_of_the_networks_activations():
    network, points, expected = random_network(seed=3, draw="paired", depth=2), grid_points(9), []
    value = points
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        before = value @ weight.T + bias
        value = torch.tanh(before)
        expected.append(affinity_score(before, value).item())
    found = layer_scores("tanh", seed=3, draw="paired", depth=2, grid=9)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(network(points, torch.tanh), value @ network.weights[-1][0] + network.biases[-1])
    assert image_of(network, "tanh", grid=9).shape == (9, 9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation": "rleu"}, "activation is 'rleu'; it should be one of heaviside, sign"),
        ({"scale": 0.0}, "scale is 0.0; it should be a finite number greater than 0"),
        ({"grid": 1}, "grid is 1; it should be a whole number of at least 2"),
        ({"depth": 0}, "depth is 0; it should be a whole number of at least 1"),
        ({"draw": "first"}, "draw is 'first'; it should be one of 'published', 'paired'"),
        ({"covariance": "oas"}, "covariance is 'oas'; it should be one of"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        layer_scores(**{"activation": "relu", "seed": 0, "grid": 4} | change)


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


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_sigmoid_twin_computes_what_tanh_does(depth):
    """The sigmoid twin computes what tanh does, with weights of two and four times the size."""
    network, points = random_network(seed=depth, scale=3.0, draw="paired", depth=depth), grid_points(7)
    twin = sigmoid_twin(network)
    torch.testing.assert_close(twin(points, "sigmoid"), network(points, "tanh"), rtol=1e-12, atol=1e-12)
    factors = [(other / one).mean().item() for one, other in zip(network.weights, twin.weights, strict=True)]
    assert factors == pytest.approx([2, *[4] * (depth - 1), 2])
    pairs = zip(network.hidden(points, "tanh"), twin.hidden(points, "sigmoid"), strict=True)
    for (x, y), (u, v) in pairs:
        assert affinity_score(u, v).item() == pytest.approx(affinity_score(x, y).item(), abs=1e-7)


@pytest.mark.parametrize(("activation", "biases"), [("tanh", True), ("gelu", True), ("relu", False)])
def test_the_symmetry_needs_homogeneity_and_the_biases(activation, biases):
    network, points = random_network(seed=0), grid_points(8)
    scaled = network.rescaled(2.0, biases=biases)(points, activation)
    assert (scaled - 16 * network(points, activation)).abs().max() > 0.1
    with pytest.raises(ValueError, match=r"c is 0\.0"):
        network.rescaled(0.0, biases=True)
