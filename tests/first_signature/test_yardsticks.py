"""Three yardsticks of the same steps, on a shift that was planted and in what is stored."""

from pathlib import Path

import numpy as np
import pytest
import torch

from affscore import affinity_score
from affscore_book.first_signature.zigzag import load_zigzag
from affscore_study.first_signature.yardsticks import (
    load_yardsticks,
    measure_yardsticks,
    yardsticks_table,
)

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "first_signature"


def test_each_yardstick_is_what_its_name_says(twice):
    noise = torch.Generator().manual_seed(0)
    images = 2 * torch.randn(200, 6, 1, 1, generator=noise) + 4 + torch.randn(200, 6, 3, 3, generator=noise)
    found = measure_yardsticks(twice(torch.full((6,), 5.0)), [(0, True, 0, 1)], images.split(50))
    (score,), (gap,), (plain,) = (found[name] for name in ("score", "score − twin", "score without shrinkage"))
    pooled = [[side.mean((2, 3)).double() for side in (x, x.clamp(0, 6))] for x in (images, images - 5)]
    for i, (x, y) in enumerate(pooled):
        twin = (x - x.mean(0)) / x.std(0) * y.std(0) + y.mean(0)
        assert score[i] == pytest.approx(affinity_score(x, y).item(), abs=1e-5)
        assert gap[i] == pytest.approx((affinity_score(x, y) - affinity_score(x, twin)).item(), abs=1e-5)
        assert plain[i] == pytest.approx(affinity_score(x, y, covariance="empirical").item(), abs=1e-5)
    for row in (score, gap, plain):  # every channel was lowered alike, so moving undoes it
        assert row[1] < row[0] - 0.05 and abs(row[2] - row[0]) < 0.02


def test_the_table_has_mean_steps_and_what_is_the_amounts():
    rows = np.array([[0.9, 0.7, 0.8, 0.75], [0.9, 0.9, 1.0, 0.85], [0.9, 0.5, 0.9, 0.8]])
    (row,) = yardsticks_table({"score": rows}).rows()
    assert row["by"] == "score"
    assert [row[name] for name in ("step", "moved", "control")] == pytest.approx([-0.2, 0, -0.1])
    without = [-0.15 / -0.4, -0.25 / -0.6, -0.2 / -0.2]  # ratios of sums, a block left out
    half = 4.3027 * np.sqrt(2 / 3 * ((without - np.mean(without)) ** 2).sum())  # Student's quantile for 2
    assert [row[name] for name in ("part", "low", "high")] == pytest.approx([0.5, 0.5 - half, 0.5 + half], rel=1e-4)


def test_what_the_chapter_says_of_the_three_yardsticks():
    stored = load_yardsticks(STORED / "yardsticks.json")
    blocks = load_zigzag(STORED / "zigzag.json")[0].of(skip=True)
    as_there = [[*block.score, block.moved, block.shuffled] for block in blocks]
    np.testing.assert_allclose(stored["score"], as_there, atol=1e-3)  # the same calls, the same draws
    table = yardsticks_table(stored).rows()
    for row in table:
        assert row["moved"] > 0 > row["step"] and row["low"] < row["part"] < row["high"]
        assert row["high"] < 1  # the choice of channels counts
        assert row["high"] > 0.5  # that it is most of the step is not sure
    assert min(row["low"] for row in table) < 0  # nor is it that the amount counts
    assert all((rows[:, 1] < rows[:, 0]).all() for rows in stored.values())  # in every block
