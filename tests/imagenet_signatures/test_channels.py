"""Equal numbers of channels: what is stored, the table, and a comparison that can go either way."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from made_signatures import made
from torch import nn

from affscore import signature
from affscore_book.imagenet_signatures.finding import before_training
from affscore_study.imagenet_signatures.channels import (
    channel_control,
    channel_gap,
    channel_medians,
    channel_scores,
    channel_table,
)
from affscore_study.imagenet_signatures.claims import channel_claims

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def few(vits):
    names = {"vit_b_16": vits[0], "vit_b_32": vits[1], "mnasnet0_5": 0.7, "mnasnet1_0": 0.71}
    return {name: {"spatial50": value} for name, value in names.items()}


@pytest.mark.parametrize(("vits", "with_50", "verdict"), [
    ((0.5, 0.51), (0.5, 0.51), "there before training"), ((0.9, 0.91), (0.9, 0.91), "not there before training"),
    ((0.5, 0.9), (0.5, 0.9), "undecided"), ((0.9, 0.91), (0.5, 0.51), "depends on the number of channels"),
])  # fmt: skip
def test_the_row_with_channel_control_can_go_either_way(vits, with_50, verdict):
    spatial = {name: made([row["spatial50"]] * 3) for name, row in few(vits).items()}
    rows = channel_claims(spatial, few(with_50))
    assert [claim.verdict for claim in rows] == [verdict] * 2
    assert "all channels" in rows[0].what and "50 channels" in rows[1].what
    assert channel_gap(few(with_50)).mean == pytest.approx(np.mean(with_50) - 0.705)


def test_stored_scores_of_all_channels_match_signatures():
    """The stored scores of the first batch with all channels are those of the signatures."""
    spatial, trailing = before_training(FOLDER), before_training(FOLDER, pool="trailing")
    for path in (FOLDER / "channels").glob("*.json"):
        if "." in path.stem:
            continue  # other weights
        stored = json.loads(path.read_text())
        for pool, known in (("spatial", spatial), ("trailing", trailing)):
            if pool in stored:
                scores = np.array(stored[pool], dtype=float)
                # Processors and layouts of memory round float32 convolutions differently.
                np.testing.assert_allclose(scores, known[path.stem].scores[0], atol=0.02, err_msg=path.stem)
        assert stored["images"] == 64 and stored["channels"] == 50
        assert ("trailing" in stored) is path.stem.startswith(("vit_", "swin_", "convnext_"))
        assert all(len(each) == len(stored["spatial"]) for each in stored.values() if isinstance(each, list))
    draws = channel_scores(FOLDER, "vgg16")
    assert len(draws) == 4 and len({tuple(each["spatial"]) for each in draws}) == 4
    assert len(channel_medians(FOLDER)) == 7, "one draw a network, and of ViT and MNASNet only"


def test_medians_skip_dead_calls_and_fall_back_on_equal_pool(tmp_path):
    """Medians skip dead calls, and the table falls back on the pool that is stored if both are equal."""
    with pytest.raises(FileNotFoundError, match="no scores with fewer channels"):
        channel_medians(tmp_path)
    (tmp_path / "channels").mkdir()
    content = {"network": "vit_b_32", "channels": 50}
    content |= {"spatial": [0.2, None, 0.4], "spatial50": [0.1, None, 0.2]}
    content |= {name: [0.9, None, 0.9] for name in ("spatial_twin", "spatial50_twin")}
    (tmp_path / "channels" / "vit_b_32.json").write_text(json.dumps(content))
    found = channel_medians(tmp_path)
    assert math.isclose(found["vit_b_32"]["spatial"], 0.3)
    (row,) = channel_table(found).rows()
    assert row["trailing"] == row["all channels"] != row["50 channels"] and row["twin, trailing"] == 0.9


def test_fewer_channels_are_channels_of_the_same_calls():
    """With more channels to keep than there are, nothing changes; with fewer, calls that are wider do."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 12, 3), nn.ReLU(), nn.Conv2d(12, 3, 3))
    images = torch.randn(24, 3, 9, 9)
    expected = signature(network, [images], companions=["twin"])
    for kept, same in ((20, [True, True]), (8, [True, False])):
        found = channel_control(network, images.split(8), kept)
        for all_, few_, scores in (("all", "few", expected.scores[0]),
                                   ("all_twin", "few_twin", expected.companions["twin"][0])):  # fmt: skip
            np.testing.assert_allclose(found[all_], scores, atol=1e-5)
            assert np.isclose(found[all_], found[few_], atol=2e-5).tolist() == same
