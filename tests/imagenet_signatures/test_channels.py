"""Equal numbers of channels: what is stored, the table, and a comparison that can go either way."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from affscore_book.imagenet_signatures.channels import channel_gap, channel_medians, channel_table
from affscore_book.imagenet_signatures.claims import pool_claims
from affscore_book.imagenet_signatures.finding import before_training

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def few(vits, mnasnets):
    names = {"vit_b_16": vits[0], "vit_b_32": vits[1], "mnasnet0_5": mnasnets[0], "mnasnet1_0": mnasnets[1]}
    return {name: {"spatial50": value} for name, value in names.items()}


@pytest.mark.parametrize(
    ("vits", "verdict"),
    [((0.5, 0.51), "there before training"), ((0.9, 0.91), "not there before training"), ((0.5, 0.9), "undecided")],
)
def test_the_row_with_few_channels_can_go_either_way(vits, verdict):
    medians = few(vits, (0.7, 0.71))
    (claim,) = pool_claims({}, medians)
    assert claim.verdict == verdict and claim.seen and "50 channels" in claim.what
    assert channel_gap(medians).mean == pytest.approx(np.mean(vits) - 0.705)


def test_stored_scores_with_all_channels_are_those_of_the_signatures():
    """First batch of both; with 50 channels a call scores no higher than 1, and its twin stands above the call."""
    spatial, trailing = before_training(FOLDER), before_training(FOLDER, pool="trailing")
    for path in (FOLDER / "channels").glob("*.json"):
        stored = json.loads(path.read_text())
        for pool, known in (("spatial", spatial), ("trailing", trailing)):
            if pool in stored:
                scores = np.array(stored[pool], dtype=float)
                # Processors and layouts of memory round float32 convolutions differently.
                np.testing.assert_allclose(scores, known[path.stem].scores[0], atol=0.02, err_msg=path.stem)
        assert stored["images"] == 64 and stored["channels"] == 50
        assert ("trailing" in stored) is path.stem.startswith(("vit_", "swin_", "convnext_"))
        assert all(len(each) == len(stored["spatial"]) for each in stored.values() if isinstance(each, list))


def test_medians_skip_dead_calls_and_the_table_falls_back_on_the_equal_pool(tmp_path):
    (tmp_path / "channels").mkdir()
    content = {"network": "alexnet", "channels": 50}
    content |= {"spatial": [0.2, None, 0.4], "spatial50": [0.1, None, 0.2]}
    content |= {name: [0.9, None, 0.9] for name in ("spatial_twin", "spatial50_twin")}
    (tmp_path / "channels" / "alexnet.json").write_text(json.dumps(content))
    found = channel_medians(tmp_path)
    assert math.isclose(found["alexnet"]["spatial"], 0.3)
    (row,) = channel_table(found).rows()
    assert row["trailing"] == row["all channels"] != row["50 channels"] and row["twin, trailing"] == 0.9


def test_no_stored_scores_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no scores with fewer channels"):
        channel_medians(tmp_path)
