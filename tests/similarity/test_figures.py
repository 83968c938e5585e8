"""The figures show the arrays that they get."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from affscore_book.similarity import figures

pytestmark = pytest.mark.usefixtures("figures_closed")
LAYERS = ["relu1", "relu2", "relu3"]


def draw(*shape):
    return np.random.default_rng(0).uniform(0.2, 1, size=shape)


def test_maps_are_symmetric_on_one_colour_scale():
    """Maps are symmetric and share a colour scale from just below the lowest value to 1."""
    maps = dict(zip("ab", draw(2, 3, 3), strict=True))
    figures.plot_maps(LAYERS, maps)
    pictures = [axes.images[0] for axes in plt.gcf().axes[:2]]
    for picture, each in zip(pictures, maps.values(), strict=True):
        np.testing.assert_allclose(picture.get_array(), (each + each.T) / 2)
    lowest = min(picture.get_array().min() for picture in pictures)
    for low, high in (picture.get_clim() for picture in pictures):
        assert low <= lowest < low + 0.1 and high == 1


def test_layer_similarities_are_means_with_open_block_marks():
    """Similarities by layer are means over pairs, and the marks inside blocks are open."""
    values, null = draw(2, 6, 3)
    figures.plot_along(LAYERS, {"a": figures.Along(values, null, (0.1, 0.2, 0.3))}, inside=[False, True, False])
    (axes,) = plt.gcf().axes
    line, filled, opened, dashed, paper = axes.lines[:5]
    np.testing.assert_allclose(line.get_ydata(), values.mean(0))
    np.testing.assert_allclose(dashed.get_ydata(), null.mean(0))
    assert (filled.get_xdata().tolist(), opened.get_xdata().tolist()) == ([0, 2], [1])
    assert tuple(paper.get_ydata()) == (0.1, 0.2, 0.3)
    assert [text.get_text() for text in axes.texts] == ["ours", "our null"]
    figures.plot_decay(LAYERS, {"growing": {"linear": values, "max": null}})
    for drawn, kernel in zip(plt.gcf().axes[0].lines, (values, null), strict=True):
        np.testing.assert_allclose(drawn.get_ydata(), kernel.mean(0))


def test_rotation_curves_are_means_over_networks():
    values = draw(4, 3)
    figures.plot_rotation_curves([0, 0.5, 1], {"map": {"plain": values}, "pixels": {"plain": values}}, [0.0, 0.1])
    for panel, level in zip(plt.gcf().axes, (0.0, 0.1), strict=True):
        mean, *single, chance = (line.get_ydata() for line in panel.lines)
        np.testing.assert_allclose(mean, values.mean(0))
        np.testing.assert_allclose(single, values)
        assert set(chance) == {level}


def test_tables_stand_above_their_notes():
    table = draw(5, 5)
    figures.plot_tables({"K": table, "L": -table}, ["", "CKA -1"])
    first, second = plt.gcf().axes
    np.testing.assert_allclose(first.images[0].get_array(), table)
    assert (first.get_title(), second.get_xlabel(), first.get_ylabel()) == ("K", "CKA \u22121", "5 images, by class")


def test_similarities_of_nothing_are_drawn_as_they_are_given():
    figures.plot_floor([8, 16], {"a": [0.5, 0.4], "b": [0.6, 0.3]})
    assert [list(line.get_ydata()) for line in plt.gca().lines[:2]] == [[0.5, 0.4], [0.6, 0.3]]


def test_a_unit_lights_up_below_its_image():
    images = torch.arange(2 * 16, dtype=torch.uint8).reshape(2, 1, 4, 4)
    masks = images[:, 0] > 20
    figures.plot_concepts(images, {"boot": masks, "unit 3": ~masks})
    panels = plt.gcf().axes
    assert [panel.get_title() for panel in panels[::2]] == ["image", "boot", "unit 3"]
    assert np.array_equal(panels[3].images[0].get_array(), masks[1]) and panels[5].images[0].get_array()[0, 0]
