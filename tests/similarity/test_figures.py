"""The figures show the stored similarities."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from affscore_book.similarity import figures
from affscore_book.similarity.concepts import generated_concepts
from affscore_book.similarity.kernels import centred_gram, gram
from affscore_book.similarity.study import load_similarity

pytestmark = pytest.mark.usefixtures("figures_closed")


@pytest.fixture(scope="module")
def study():
    return load_similarity(Path(__file__).parents[2] / "book" / "data" / "similarity" / "study.json")


def test_maps_are_symmetric_means_in_colours_from_below_the_lowest_of_all_panels_to_1(study):
    figures.plot_maps(study, "myrtle", ["linear", "max"])
    pictures = [axes.images[0] for axes in plt.gcf().axes[:2]]
    mean = study.maps("myrtle", "linear").mean(0)
    np.testing.assert_allclose(pictures[0].get_array(), (mean + mean.T) / 2)
    lowest = min(picture.get_array().min() for picture in pictures)
    for low, high in (picture.get_clim() for picture in pictures):
        assert low <= lowest < low + 0.1 and high == 1


def test_similarities_by_layer_are_means_over_pairs(study):
    figures.plot_procrustes(study, "myrtle", ["relu"])
    np.testing.assert_allclose(plt.gca().lines[0].get_ydata(), study.procrustes("myrtle", "relu")[..., 0].mean(0))
    figures.plot_decay(study, {"myrtle": "growing", "resnet20": "ResNet20"})
    for panel, kind in zip(plt.gcf().axes, ("myrtle", "resnet20"), strict=True):
        for line, kernel in zip(panel.lines, ("linear", "max"), strict=True):
            np.testing.assert_allclose(line.get_ydata(), study.diagonal(kind, kernel).mean(0))


def test_rotation_curves_are_means_over_networks_for_each_cut(study):
    figures.plot_rotation_curves(study, {"plain": {"prefix": "resnet20"}})
    for panel, top_of in zip(plt.gcf().axes, ("map", "pixels"), strict=True):
        mean, *single = (line.get_ydata() for line in panel.lines)
        assert mean[0] - mean[-1] == pytest.approx(study.drops("resnet20", top_of=top_of).mean())
        np.testing.assert_allclose(np.mean(single[: len(study.drops("resnet20"))], axis=0), mean)


def test_tables_of_the_same_features_are_the_same_until_the_images_are_shuffled():
    x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(60) % 3
    figures.plot_tables(x, 2 * x[:, [1, 2, 3, 4, 0]] + 1, labels, each=15)
    first, second, shuffled = plt.gcf().axes
    tables = [axes.images[0].get_array() for axes in (first, second)]
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-12)
    assert "1.00" in second.get_xlabel()
    assert abs(float(shuffled.get_xlabel().split()[-1].replace("\u2212", "-"))) < 0.3
    rows = torch.cat([(labels == k).nonzero()[:15, 0] for k in range(3)])
    np.testing.assert_allclose(tables[0], centred_gram(gram(x[rows], "linear")))


def test_a_unit_that_is_a_concept_lights_up_where_the_concept_is():
    concepts = generated_concepts(40)
    lit = concepts.masks[:, 0].flatten(1).any(1).nonzero()[:2, 0].tolist()
    features = concepts.masks[:, :1].float() * torch.rand(40, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    figures.plot_concepts(concepts, features, unit=0, images=lit, concept="red")
    _, _, *masks = (np.asarray(axes.images[0].get_array()) for axes in plt.gcf().axes)
    for mask, unit in zip(masks[:2], masks[2:], strict=True):
        assert mask.any() and not (unit.astype(bool) & ~mask.astype(bool)).any()
