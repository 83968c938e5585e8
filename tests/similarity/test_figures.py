"""The figures show the stored similarities."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.similarity import figures
from affscore_book.similarity.procrustes import procrustes
from affscore_book.similarity.study import load_similarity

pytestmark = pytest.mark.usefixtures("figures_closed")


@pytest.fixture(scope="module")
def study():
    return load_similarity(Path(__file__).parents[2] / "book" / "data" / "similarity" / "study.json")


def test_clouds_are_what_their_names_say():
    first, moved, turned, other = figures.related_clouds().values()
    assert procrustes(first, moved, null=0).distance < 1e-10 < 0.1 < procrustes(first, turned, null=0).distance
    assert procrustes(first, turned, "orthogonal", null=0).distance < 1e-10
    assert procrustes(first, other, "orthogonal", null=0).distance > 0.1


def test_similarities_by_layer_are_means_over_pairs(study):
    figures.plot_procrustes(study, "myrtle", ["relu"])
    np.testing.assert_allclose(plt.gca().lines[0].get_ydata(), study.procrustes("myrtle", "relu")[..., 0].mean(0))


def test_maps_are_symmetric_means(study):
    figures.plot_maps(study, "myrtle", ["linear"])
    shown = plt.gcf().axes[0].images[0].get_array()
    mean = study.maps("myrtle", "linear").mean(0)
    np.testing.assert_allclose(shown, (mean + mean.T) / 2)


def test_rotation_curves_are_means_over_networks(study):
    figures.plot_rotation_curves(study, {"plain": {"prefix": "resnet20"}})
    curve = plt.gca().lines[0].get_ydata()
    assert curve[0] - curve[-1] == pytest.approx(study.drop("resnet20"))
