"""Moving the channels of a call undoes a shift that was planted, and nothing else does."""

from pathlib import Path

import pytest
import torch

from affscore import affinity_score
from affscore.zoo.models import load_model
from affscore_book.first_signature.zigzag import Block, Zigzag
from affscore_study.first_signature.zigzag import measure_blocks, pairs_of, zigzag_table

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "first_signature" / "zigzag.json"


@pytest.fixture(scope="module")
def images():
    """Pictures of 12 channels that differ in level as much as their pixels do."""
    noise = torch.Generator().manual_seed(0)
    return 2 * torch.randn(200, 12, 5, 5, generator=noise) + 2 * torch.randn(200, 12, 1, 1, generator=noise)


def test_moving_undoes_a_shift_and_the_control_does_not(images, twice):
    (block,) = measure_blocks(twice(torch.linspace(0.4, 6.0, 12)), [(3, True, 0, 1)], images.split(50))
    assert block.cut[1] > block.cut[0] + 0.2 and block.step < -0.05
    assert abs(block.moved - block.score[0]) < 0.01
    assert block.shuffled < block.score[0] - 0.05


def test_where_nothing_was_shifted_nothing_changes(images, twice):
    (block,) = measure_blocks(twice(torch.zeros(12)), [(3, True, 0, 1)], images.split(50))
    assert block.score[0] == block.score[1] and block.cut[0] == block.cut[1]
    assert max(abs(block.moved - block.score[0]), abs(block.shuffled - block.score[0])) < 0.01
    pooled = [side.mean((2, 3)).double() for side in (images, images.clamp(0, 6))]
    assert block.score[0] == pytest.approx(affinity_score(*pooled).item(), abs=1e-6)
    assert block.cut[0] == pytest.approx((images <= 0).double().mean().item())


def test_every_call_of_a_lite_but_three_is_in_a_pair():
    """The stem, the first block and the head have one call each."""
    net = load_model("efficientnet_lite0", weights="random").model
    pairs = pairs_of(net)
    assert [call for *_, first, second in pairs for call in (first, second)] == list(range(2, 32))
    blocks = {number: net._blocks[number] for number, *_ in pairs}
    joined = [blocks[number] for number, skip, *_ in pairs if skip]
    assert 0 < len(joined) < len(pairs)
    # Only where input and output have the same shape can one be added to the other.
    assert all(block._depthwise_conv.stride == (1, 1) for block in joined)
    assert all(block._expand_conv.in_channels == block._project_conv.out_channels for block in joined)


def test_a_row_averages_over_one_kind_of_blocks():
    blocks = [
        Block(1, True, (0.2, 0.6), (0.9, 0.7), 0.8, 0.75), Block(2, True, (0.2, 0.4), (0.9, 0.9), 1.0, 0.85),
        Block(3, False, (0.5, 0.1), (0.6, 0.9), 0.9, 0.9), Block(4, False, (0.5, 0.1), (0.6, 0.8), 0.9, 0.9),
    ]  # fmt: skip
    yes, no = zigzag_table([Zigzag("a", blocks)]).rows()
    assert (yes["second lower"], no["second lower"]) == ("1 of 2", "0 of 2")
    assert [yes[name] for name in ("extra cut", "step", "moved", "control")] == pytest.approx([0.3, -0.1, 0, -0.1])
    assert [yes[name] for name in ("low", "high")] == pytest.approx([-0.1 - 12.7062 * 0.1, -0.1 + 12.7062 * 0.1])
    assert no["step"] == pytest.approx(0.25)
