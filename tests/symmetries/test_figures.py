"""The figures show what they are given."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from affscore_book.symmetries import figures
from affscore_book.symmetries.groups import PReLUGroup
from affscore_book.symmetries.rotations import load_rotations

STORED = Path(__file__).parents[2] / "book" / "data" / "symmetries" / "rotations.json"

pytestmark = pytest.mark.usefixtures("figures_closed")


def test_kinks_lie_where_the_matrices_put_them():
    figures.plot_kinks({"double": 2 * torch.eye(2, dtype=torch.float64)})
    (axes,) = plt.gcf().axes
    start, stop = (np.array([line.get_xydata()[0] for line in axes.lines if line.get_marker() == m and len(
        line.get_xdata()) == 1]) for m in "sx")  # fmt: skip
    np.testing.assert_allclose(start, stop, atol=1e-12)  # a scaling passes through ReLU


def test_each_activation_has_a_panel_with_both_signs():
    figures.plot_violations(["relu", "square", "tanh"])
    panels = {axes.get_title(): axes.lines for axes in plt.gcf().axes if axes.lines}
    assert list(panels) == ["ReLU", "square", "tanh"]
    positive, negative = (line.get_ydata() for line in panels["ReLU"])
    assert positive.max() == 0 and negative.min() == 1
    positive, negative = (line.get_ydata() for line in panels["tanh"])
    np.testing.assert_allclose(positive, negative, atol=1e-12)
    assert positive.min() == 0 and positive.max() > 0.9


def test_every_run_after_training_is_a_mark():
    stored = load_rotations(STORED)
    figures.plot_rotations(stored)
    for axes, names in zip(plt.gcf().axes, (stored.without_norm, stored.folded), strict=True):
        for mark, kind in (("s", "rotation"), ("o", "group")):
            drawn = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == mark])
            runs = np.concatenate([stored.penalties(at, kind, "after", names).ravel() for at in stored.layers])
            np.testing.assert_allclose(np.sort(drawn), np.sort(runs))


def test_the_others_are_drawn():
    figures.plot_rays(torch.eye(2), torch.eye(2).flip(0), torch.eye(2).expand(3, 2, 2))
    figures.plot_gelu()
    slopes = (1.0, 1.0, 4.0, 0.25)
    a = PReLUGroup(slopes).sample(4, 3)
    figures.plot_prelu(a, PReLUGroup(slopes).phi(a), slopes)
    assert len(plt.gcf().axes[0].texts) == int((a != 0).sum())
    figures.plot_residual({"relu": 1e-16, "block1.relu1": 0.5, "block1.relu2": 1e-15})
    between, inside = plt.gca().lines
    assert between.get_ydata().tolist() == [1e-16, 1e-15] and inside.get_xdata().tolist() == [2]
