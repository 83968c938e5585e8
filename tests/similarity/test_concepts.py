"""Concepts: what is drawn is what the masks say."""

import pytest
import torch

from affscore_book.similarity.concepts import Concepts, labelled_concepts
from affscore_study.similarity.drawn_concepts import generated_concepts


@pytest.mark.parametrize("side", [16, 48])
def test_generated_concepts(side):
    concepts = generated_concepts(200, side=side)
    assert torch.equal(concepts.images, generated_concepts(200, side=side).images), "the same each time"
    assert concepts.images.shape == (200, 3, side, side)
    assert concepts.masks.shape == (200, 18, side, side)
    shares = concepts.masks.double().mean((0, 2, 3))  # a unit on 0.5 % of the pixels can pass for each of them
    assert (shares > 0.005).all() and (shares < 0.125).all()
    colour, texture, shape = (concepts.masks[:, first : first + 6].sum(1) for first in (0, 6, 12))
    assert torch.equal(texture, shape) and bool((colour <= texture).all()) and int(texture.max()) <= 2
    bright = concepts.images.amax(1) > 45  # where pixels are lit
    assert (bright == (colour > 0)).double().mean() > 0.999


def test_labelled_concepts():
    """One bright square, upper left, of class 1."""
    images = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    images[0, 0, 1:4, 1:4] = 200
    concepts = labelled_concepts(images, torch.tensor([1, 0]), ["hat", "shoe"])
    masks = dict(zip(concepts.names, concepts.masks[0], strict=True))
    square = images[0, 0] > 0
    for name in ("shoe", "grey 190", "upper left"):
        assert torch.equal(masks[name], square), name
    for name in ("hat", "grey 25", "lower right", "upper right", "lower left"):
        assert not masks[name].any(), name
    assert masks["top"].nonzero().tolist() == [[0, 1], [0, 2], [0, 3]]
    # The corner at (3, 3) falls off in two directions, so it is no edge.
    assert masks["right"].nonzero().tolist() == [[1, 3], [2, 3]]
    assert not concepts.masks[1].any()


GOOD = generated_concepts(4)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Concepts(GOOD.images.float(), GOOD.masks, GOOD.names, GOOD.categories), "should be uint8"),
        (lambda: Concepts(GOOD.images, GOOD.masks[:3], GOOD.names, GOOD.categories), r"should be bool \(4, concepts"),
        (lambda: Concepts(GOOD.images, GOOD.masks, GOOD.names[:2], GOOD.categories), "there are 2 names"),
        (lambda: labelled_concepts(GOOD.images[:, :1], torch.tensor([0, 1]), ["a", "b"]), r"labels \(2,\)"),
    ],
)
def test_bad_arguments_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
