"""Three yardsticks of the same steps, on a shift that was planted and in what is stored."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from affscore import affinity_score
from affscore_book.first_signature.yardsticks import load_yardsticks, measure_yardsticks, yardsticks_table
from affscore_book.first_signature.zigzag import load_zigzag

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "first_signature"


class Lower(nn.Module):
    """ReLU6 on the inputs, and on the same inputs lowered by a constant."""

    def __init__(self, shift):
        super().__init__()
        self.first, self.second, self.shift = nn.ReLU6(), nn.ReLU6(), shift

    def forward(self, x):
        return self.first(x) + self.second(x - self.shift)


def test_each_yardstick_is_what_its_name_says():
    noise = torch.Generator().manual_seed(0)
    images = 2 * torch.randn(200, 6, 1, 1, generator=noise) + 4 + torch.randn(200, 6, 3, 3, generator=noise)
    found = measure_yardsticks(Lower(5.0).eval(), [(0, True, 0, 1)], images.split(50))
    (score,), (gap,), (plain,) = (found[name] for name in ("score", "score − twin", "score without shrinkage"))
    pooled = [[side.mean((2, 3)).double() for side in (x, x.clamp(0, 6))] for x in (images, images - 5)]
    for i, (x, y) in enumerate(pooled):
        twin = (x - x.mean(0)) / x.std(0) * y.std(0) + y.mean(0)
        assert score[i] == pytest.approx(affinity_score(x, y).item(), abs=1e-5)
        assert gap[i] == pytest.approx((affinity_score(x, y) - affinity_score(x, twin)).item(), abs=1e-5)
        assert plain[i] == pytest.approx(affinity_score(x, y, covariance="empirical").item(), abs=1e-5)
    for row in (score, gap, plain):  # every channel was lowered alike, so moving undoes it
        assert row[1] < row[0] - 0.05 and abs(row[2] - row[0]) < 0.02


def test_the_table_has_mean_steps():
    (row,) = yardsticks_table({"score": np.array([[0.9, 0.7, 0.8, 0.75], [0.9, 0.9, 1.0, 0.85]])}).rows()
    assert row["by"] == "score"
    assert [row[name] for name in ("step", "moved", "control")] == pytest.approx([-0.1, 0, -0.1])


def test_what_the_chapter_says_of_the_three_yardsticks():
    stored = load_yardsticks(STORED / "yardsticks.json")
    blocks = load_zigzag(STORED / "zigzag.json")[0].of(skip=True)
    as_there = [[*block.score, block.moved, block.shuffled] for block in blocks]
    np.testing.assert_allclose(stored["score"], as_there, atol=1e-3)  # the same calls, the same draws
    for row in yardsticks_table(stored).rows():
        assert (
            row["moved"] > 0 > row["step"] and 0 < row["control"] / row["step"] < 0.5
        )  # most is the choice of channels
    assert all((rows[:, 1] < rows[:, 0]).all() for rows in stored.values())  # in every block
    score, gap, plain = (row["control"] / row["step"] for row in yardsticks_table(stored).rows())
    assert gap < plain < score  # how much is the amount's, the yardsticks do not agree on


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "yardsticks.json").write_text(json.dumps({"blocks": {"score": [[1, 2, 3, 4]]}}))
    with pytest.raises(ValueError, match=r"is not a complete file of book/data/first_signature/yardsticks\.py"):
        load_yardsticks(tmp_path / "yardsticks.json")
