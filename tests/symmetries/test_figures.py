"""The figures show what they are given."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from affscore_book.symmetries import figures
from affscore_book.symmetries.groups import PReLUGroup
from affscore_book.symmetries.rotations import load_rotations
from affscore_study.symmetries.gelu import plot_gelu

STORED = Path(__file__).parents[2] / "book" / "data" / "symmetries" / "rotations.json"

pytestmark = pytest.mark.usefixtures("figures_closed")


def test_both_sides_are_drawn_where_they_lie():
    left, right = torch.rand(2, 5), torch.rand(2, 5)
    figures.plot_sides({"double": (left, right)})
    (axes,) = plt.gcf().axes
    drawn = {line.get_marker(): line.get_xydata() for line in axes.lines if len(line.get_xdata()) == 5}
    np.testing.assert_allclose(drawn["s"], left.T)
    np.testing.assert_allclose(drawn["x"], right.T)


def test_each_activation_has_a_panel_with_both_signs():
    figures.plot_left_over([0.5, 1, 2], {"ReLU": ([0, 0, 0], [1, 1, 1]), "tanh": ([0.2, 0, 0.3], [0.2, 0, 0.3])})
    panels = {axes.get_title(): axes.lines for axes in plt.gcf().axes if axes.lines}
    assert list(panels) == ["ReLU", "tanh"]
    positive, negative = (line.get_ydata() for line in panels["ReLU"])
    assert list(positive) == [0, 0, 0] and list(negative) == [1, 1, 1]


def test_every_run_after_training_is_a_mark():
    stored = load_rotations(STORED)
    figures.plot_rotations(stored)
    for axes, names in zip(plt.gcf().axes, (stored.without_norm, stored.folded), strict=True):
        for mark, kind in (("s", "rotation"), ("o", "group")):
            drawn = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == mark])
            runs = np.concatenate([stored.penalties(at, kind, "after", names).ravel() for at in stored.layers])
            np.testing.assert_allclose(np.sort(drawn), np.sort(runs))


def test_the_others_are_drawn():
    figures.plot_rays({"one": torch.eye(2), "other": torch.eye(2).flip(0)}, torch.rand(2, 3))
    assert len(plt.gcf().axes[-1].lines) == 4
    figures.plot_block()
    plot_gelu([0.5, 1, 2], [0.1, 0, 0.2], 0.1)
    slopes = (1.0, 1.0, 4.0, 0.25)
    a = PReLUGroup(slopes).sample(4, 3)
    figures.plot_prelu(a, PReLUGroup(slopes).phi(a), slopes)
    assert len(plt.gcf().axes[0].texts) == int((a != 0).sum())
    figures.plot_residual({"relu": 1e-16, "block1.relu1": 0.5, "block1.relu2": 1e-15})
    between, inside = plt.gca().lines
    assert between.get_ydata().tolist() == [1e-16, 1e-15] and inside.get_xdata().tolist() == [2]
