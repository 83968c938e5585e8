"""The checks of the exercises and the widget: right answers pass, the usual wrong ones do not."""

from pathlib import Path

import numpy as np
import torch
from answers import accepted, refused
from torch import nn

from affscore import affinity_score
from affscore_book.uses import exercises
from affscore_book.uses.replacing import calls_of, fit_lines, run_replaced
from affscore_book.uses.widget import CallsRemoved, calls_removed

FOLDER = Path(__file__).parents[2] / "book" / "data" / "uses"


def affine(network, layer, images):
    """As the book's own lines have it; the chapter's solution makes them by hooks."""
    at = {"1": 0, "3": 1}[layer]
    return run_replaced(network, images, {at: fit_lines(network, images, calls_of(network, images))[at]})


def leaves_hooks(network, layer, images):
    found = affine(network, layer, images)
    network.get_submodule(layer).register_forward_hook(lambda module, inputs, output: output + 1)
    return found


def entropy_of_signs(x, logarithm=np.log2):
    shares = [share for p in (x > 0).mean(axis=0) for share in (p, 1 - p) if share > 0]
    return -sum(share * logarithm(share) for share in shares) / x.shape[1]


IMAGES = torch.randn(60, 2, 8, 8, generator=torch.Generator().manual_seed(0))
BLOCK = exercises.block_and_images(nn.Sequential(nn.Identity(), nn.ReLU()), IMAGES, "1")
clean, wrong = exercises.distances_of(4)

test_right_answers_are_accepted = accepted({
    "affine": lambda: exercises.check_affine(affine),
    "block": lambda: exercises.check_block(affinity_score(*(each.mean((2, 3)) for each in BLOCK)), *BLOCK),
    "bar": lambda: exercises.check_threshold((wrong > clean.max()).mean(), clean, wrong),
    "entropy": lambda: exercises.check_entropy(entropy_of_signs),
})  # fmt: skip
test_wrong_answers_are_refused_with_a_hint = refused({
    "other logits": lambda: exercises.check_affine(lambda *given: affine(*given) + 1),
    "as it is": lambda: exercises.check_affine(lambda network, layer, images: network(images)),
    "no logits": lambda: exercises.check_affine(lambda network, layer, images: None),
    "left changed": lambda: exercises.check_affine(leaves_hooks),
    "flat maps": lambda: exercises.check_block(affinity_score(*(each.flatten(1) for each in BLOCK)), *BLOCK),
    "median": lambda: exercises.check_threshold((wrong > np.median(clean)).mean(), clean, wrong),
    "nats": lambda: exercises.check_entropy(lambda x: entropy_of_signs(x, np.log)),
})  # fmt: skip


def test_the_widget_draws_the_calls_that_are_gone():
    paths = [{"order": "a", "title": "A", "gone": [1, 0], "accuracy": [0.9, 0.5, 0.1]}]
    widget = CallsRemoved(calls=["first", "second"], paths=paths, order="a", count=1)
    assert widget.score() == 0.5
    assert widget.picture().count('class="image-dot"') == 1
    assert "last made affine: second" in widget.picture()
    assert repr(widget) == "CallsRemoved(2 calls, order='a', count=1)"
    assert "There is no network to show." in CallsRemoved().picture()
    stored = calls_removed(FOLDER)
    assert stored.count == 0 and len(stored.calls) + 1 == len(stored.paths[0]["accuracy"])
