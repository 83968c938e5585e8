"""The image of a random network: its JavaScript against the chapter's Python and affscore."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from affscore import affinity_score
from affscore_book.redshift.bitmap import bitmap
from affscore_book.redshift.complexity import dct_frequency
from affscore_book.redshift.networks import grid_points
from affscore_book.redshift.widget import NAMES, RedshiftImage
from affscore_study.redshift.draws import PUBLISHED_SEED, image_of, random_network


def test_widget_computes_network_spectrum_and_scores(node):
    """The widget computes the network, the spectrum and every score."""
    assert tuple(name for name, _ in node(RedshiftImage._esm, "m => m.OPTIONS")) == NAMES
    widgets = [
        RedshiftImage(activation=activation, depth=depth, scale=scale, shift=shift, seed=seed)
        for activation in NAMES
        for depth, scale, shift, seed in [
            (1, 0.5, 0.0, 0),
            (2, 6.0, 0.1, 1),
            (3, 6.0, -0.05, 0),
            (4, 3.0, -0.15, 99),
            (4, 6.0, 0.15, 7),
        ]
    ]
    found = node(RedshiftImage._esm, "(m, states) => states.map(m.evaluate)", [widget.state() for widget in widgets])
    for widget, result in zip(widgets, found, strict=True):
        image = image_of(widget.network(), widget.activation).numpy().ravel()
        np.testing.assert_allclose(result["image"], image, atol=1e-9 * np.abs(image).max())
        np.testing.assert_allclose([*result["scores"], result["score"]], [*widget.scores(), widget.score()], atol=1e-6)
        assert result["frequency"] == pytest.approx(dct_frequency(image.reshape(32, 32)), rel=1e-6)


def test_every_draw_has_its_own_numbers_and_draws_share_none():
    numbers = [
        np.concatenate([np.ravel(part) for part in (*network.weights, *network.biases)])
        for network in (RedshiftImage(depth=5, seed=seed).network() for seed in range(3))
    ]
    assert len(np.unique(np.concatenate([each.round(12) for each in numbers]))) > 0.999 * 3 * len(numbers[0])


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


def test_picture_is_the_networks_image_in_greys(node):
    """The picture on the page is the network's image from black to white.

    The greys run from 0 to 255, with the first input to the right and the second upwards; a constant image is grey.
    """
    image = image_of(RedshiftImage(activation="sine", scale=3.0).network(), "sine").numpy()
    body = "(m, images) => images.map((image) => m.bitmap(Float64Array.from(image)))"
    painted = []
    addresses = node(RedshiftImage._esm, body, [image.ravel().tolist(), [1.0] * 1024])
    assert addresses == [bitmap(image.T[::-1]), bitmap(np.ones((32, 32)))]
    assert addresses[0] in RedshiftImage(activation="sine", scale=3.0).picture()
    for address in addresses:
        with Image.open(BytesIO(b64decode(address.removeprefix("data:image/bmp;base64,")))) as picture:
            painted.append(np.array(picture.convert("L"), dtype=float)[::-1].T)
    greys = 255 * (image - image.min()) / np.ptp(image)
    assert np.abs(painted[0] - greys).max() <= 0.5 + 1e-9
    assert (painted[1] == 128).all()
