"""Each check takes the right answer, refuses the likely wrong ones, and says what is wrong with them."""

from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest
import torch

from affscore import signature
from affscore_book.activations.laws import score_curve
from affscore_book.transformers import exercises
from affscore_book.transformers.gpt import build_gpt
from affscore_book.transformers.measured import load_minilm_scores

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers" / "minilm"


@pytest.fixture
def said(capsys):
    """What a check prints."""

    def run(check, *arguments) -> str:
        check(*arguments)
        return capsys.readouterr().out

    return run


def test_samples_of_pools(said):
    check = exercises.check_samples_of_pools
    assert said(check, 1537, 33, 49).startswith("Right")
    assert "other way round" in said(check, 33, 1537, 49)
    assert "one sample short" in said(check, 1536, 32, 48)
    assert "how many samples" in said(check, 512, 512, 512)


NETWORK = build_gpt("relu").eval()
WINDOWS = torch.randint(256, (16, 12), generator=torch.Generator().manual_seed(0))


def without(network, windows, block, output=torch.zeros_like, kept=False):
    """A hook on the attention, which may return something else or stay."""
    hook = network.blocks[block].attention.register_forward_hook(lambda module, given, result: output(result))
    try:
        return signature(network, [windows]).scores[0, block]
    finally:
        if not kept:
            hook.remove()


@pytest.mark.parametrize(("changed", "start"), [
    ({}, "Right"),
    ({"output": lambda result: 30 * result}, "where its attention adds nothing"),
    ({"output": torch.clone}, "score with its attention"),
    ({"kept": True}, "remove the hook"),
])  # fmt: skip
def test_attention_that_was_taken_out(said, changed, start):
    network = deepcopy(NETWORK)
    network.blocks[0].attention.out.bias.data.normal_(generator=torch.Generator().manual_seed(1))
    assert start in said(exercises.check_build, partial(without, **changed), network, WINDOWS)


@pytest.mark.parametrize("spread", [0.3, 1.2])
def test_lowest_mean(said, spread):
    means = torch.linspace(-4, 1, 501)
    best = float(means[score_curve("gelu", means, spread, coupling="paired").argmin()])
    check = exercises.check_lowest_mean
    assert said(check, best, spread).startswith("Right")
    assert said(check, best + 0.09, spread).startswith("Right")
    assert "try a grid" in said(check, best - 0.2, spread)
    assert "other side" in said(check, 0.5, spread)


def test_part_of_size(said):
    scores = load_minilm_scores(FOLDER / "scores.json")

    def part(pool):
        random = sum(scores.starts(pool=pool).ravel()) / 18
        moved = sum(scores.starts("rearranged", pool=pool).ravel()) / 18 - random
        return moved / (sum(scores.of(pool=pool)) / 6 - random)

    check = exercises.check_part_of_size
    assert said(check, part("trailing"), scores).startswith("Right")
    assert "two differences" in said(check, part("trailing") + 0.1, scores)
    assert "by the spatial pool" in said(check, part("spatial"), scores)
