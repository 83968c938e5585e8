"""Pictures of other kinds: each is what it says, and the same for every network."""

import pytest
import torch
from scipy import stats
from torch.nn import functional

from affscore_study.decade.pictures import PICTURES, other_pictures


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_are_distinct_and_reproducible(data, kind):
    """Pictures are distinct, in their range and the same at each call."""
    first = other_pictures(kind, 30, data)
    assert first.shape == (30, 1, 32, 32) and first.dtype == torch.float32
    assert torch.equal(first, other_pictures(kind, 30, data))
    assert len({tuple(picture.flatten().tolist()) for picture in first}) == 30
    assert kind == "noise" or (first.min() >= 0 and 128 < first.max() <= 255)


def test_shuffled_pictures_keep_their_pixels(data):
    """Shuffled pictures have the pixels of the validation images, each in an order of its own."""
    shuffled = other_pictures("shuffled", 40, data).flatten(1)
    original = data.validation.images.flatten(1).float()
    assert torch.equal(shuffled.sort(dim=1).values, original.sort(dim=1).values)
    assert not torch.equal(shuffled, original)
    where = [row.argmax().item() for row in shuffled]
    assert len(set(where)) > 20  # an order of its own for each


def test_noise_has_the_mean_and_spread_of_the_training_pixels(data):
    pixels = data.standardise(other_pictures("noise", 200, data))
    assert abs(pixels.mean().item()) < 0.01 and abs(pixels.std().item() - 1) < 0.01
    assert stats.kstest(pixels[:, 0].flatten()[:2000].numpy(), "norm").pvalue > 1e-3


def test_neighbouring_pixels_correlate_but_not_in_noise(data):
    """Neighbouring pixels are alike in enlarged digits and in photographs, but not in noise."""

    def smooth(kind: str) -> float:
        pictures = other_pictures(kind, 30, data)
        return float(torch.corrcoef(torch.stack([pictures[..., :-1].flatten(), pictures[..., 1:].flatten()]))[0, 1])

    assert smooth("digits") > 0.7 and smooth("photographs") > 0.7
    assert abs(smooth("noise")) < 0.05
    small = functional.avg_pool2d(other_pictures("digits", 5, data), 4)
    assert small.shape == (5, 1, 8, 8) and small.std() > 60


def test_an_unknown_kind_is_refused(data):
    with pytest.raises(ValueError, match="kind is 'cats'"):
        other_pictures("cats", 3, data)
