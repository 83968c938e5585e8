"""Many pairs at once: the similarities are those of the one function for a pair."""

import pytest
import torch

from affscore_book.similarity.procrustes import procrustes
from affscore_study.similarity.many_pairs import layer_of, pair_similarities

MEASURES = ["relu", "orthogonal", "relu_uncentred", "orthogonal_uncentred"]


def features(seed, channels=5, shape=(3, 3)):
    """ReLU features of 40 images, of which a channel is dead."""
    draw = torch.Generator().manual_seed(seed)
    made = torch.randn(40, channels, *shape, generator=draw).relu() + torch.rand(channels, 1, 1, generator=draw)
    made[:, seed % channels] = 0.0
    return made


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("channels", [5, 7])
def test_a_pair_is_as_near_as_procrustes_says(measure, channels):
    x, y = features(1), features(2, channels)
    group, _, uncentred = measure.partition("_")
    expected = procrustes(x, y, group, centred=not uncentred, null=2)
    found = pair_similarities(layer_of(x), layer_of(y), MEASURES, 2)[measure]
    assert found == pytest.approx([expected.value, expected.null_mean], abs=1e-9)


def test_vectors_without_pixels_are_compared_too():
    x, y = (features(seed).flatten(1) for seed in (1, 2))
    expected = procrustes(x, y, null=1)
    found = pair_similarities(layer_of(x), layer_of(y), ["relu"], 1)["relu"]
    assert found == pytest.approx([expected.value, expected.null_mean], abs=1e-9)


def test_dead_channels_are_those_of_procrustes():
    x, y = features(1), features(2)
    expected = procrustes(x, y, null=0)
    dead = [(~layer_of(value).live[True]).nonzero()[:, 0].tolist() for value in (x, y)]
    assert dead == [list(expected.dead_x), list(expected.dead_y)] == [[1], [2]]
