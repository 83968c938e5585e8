"""Figures of the lesson show the numbers they are given, from NumPy alone; those of stored results draw."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from drawn import check_figure

from affscore_book.redshift import figures, stored_figures
from affscore_book.redshift.bitmap import bitmap
from affscore_book.redshift.study import load_draws
from affscore_study.redshift import figures as audit_figures

STORED = load_draws(Path(__file__).resolve().parents[2] / "book" / "data" / "redshift" / "study.json")
IMAGES = {"one & two": np.arange(12.0).reshape(3, 4), "other": np.eye(4)}


def drawn(drawing):
    """The panels of a drawing as texts."""
    return re.findall(r"<svg .*?</svg>", drawing._repr_html_())


def test_images_stand_under_their_names_and_above_their_notes():
    one, other = drawn(figures.show(IMAGES, ["score 0.50", "score 0.25"]))
    assert bitmap(IMAGES["one & two"]) in one and ">one &amp; two<" in one and ">score 0.50<" in one
    assert bitmap(IMAGES["other"]) in other and 'aria-label="other: score 0.25"' in other


def test_rows_of_wide_images_are_marked_where_copies_meet():
    image = np.tile(np.arange(8.0), (4, 1))
    wide, panel = drawn(figures.plot_edges({"tiled": image}, [2, 4, 6]))
    assert bitmap(image) in wide and ">tiled<" in wide
    assert panel.count('class="goal-curve"') == 3 + 1 and ">light<" in panel  # one more in the legend


def test_every_draw_is_a_line_and_the_median_is_said():
    (panel,) = drawn(figures.plot_draws([1, 2], np.array([[1.0, 2.0], [1.5, 1.2], [1.25, 3.0]])))
    assert panel.count('class="curve"') == 3 + 1 and "from 1.25 to 2.00" in panel


def test_figures_and_checks_need_no_large_libraries():
    """The lesson's figures and checks need neither PyTorch nor SciPy nor Matplotlib."""
    code = (
        "import sys, affscore_book.redshift.figures, affscore_book.redshift.exercises;"
        "print(sorted({'torch', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: stored_figures.plot_distributions(STORED), 1),
        (lambda: audit_figures.plot_waves(), 2),
        (lambda: audit_figures.plot_saturation(["softplus", "ricker"]), 3),
        (lambda: audit_figures.plot_heat_maps(STORED, "depth", "score"), 9),
        (lambda: audit_figures.plot_heat_maps(STORED, "shift", "complexity", ["tanh", "relu"]), 3),
        (lambda: stored_figures.plot_score_and_frequency(STORED), 2),
        (lambda: audit_figures.plot_precision([0.5] * 24, [-3.0] * 24), 1),
    ],
)
def test_figures(draw, panels):
    check_figure(draw, panels)
