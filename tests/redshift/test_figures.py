"""Every figure of the chapter on neural redshift draws."""

from pathlib import Path

import numpy as np
from drawn import check_figure
from grids import each

from affscore_book.redshift import figures
from affscore_book.redshift.networks import PANELS, image_of, layer_scores, random_network
from affscore_book.redshift.study import load_draws

STORED = load_draws(Path(__file__).resolve().parents[2] / "book" / "data" / "redshift" / "study.json")


@each(
    ("draw", "panels"),
    [
        (lambda: figures.plot_panels({(t, s, a): layer_scores(a, shift=t, seed=0, grid=4) for t, s, a in PANELS}), 8),
        (lambda: figures.plot_distributions(STORED), 1),
        (lambda: figures.plot_edges(image_of(random_network(seed=0), "tanh")), 4),
        (lambda: figures.plot_waves(), 2),
        (lambda: figures.plot_saturation(["softplus", "ricker"]), 3),
        (lambda: figures.plot_heat_maps(STORED, "depth", "score"), 9),
        (lambda: figures.plot_heat_maps(STORED, "shift", "complexity", ["tanh", "relu"]), 3),
        (lambda: figures.plot_score_and_frequency(STORED), 2),
        (lambda: figures.plot_single_draws([1, 2], np.array([[1.0, 2.0], [1.5, 1.2]])), 1),
        (lambda: figures.plot_precision([0.5] * 24, [-3.0] * 24), 1),
        (lambda: figures.plot_rescaling(c=2.0), 6),
    ],
)
def test_figures(draw, panels):
    check_figure(draw, panels)
