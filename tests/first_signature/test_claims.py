"""Levels before and after training, on signatures whose scores are known."""

import pytest
from made_signatures import made

from affscore_study.first_signature.claims import before_and_after


def test_levels_are_compared_batch_by_batch(tmp_path):
    scores = {("calibrated0", 64): [0.5, 0.6, 0.7], ("calibrated0", 128): [0.4, 0.5, 0.6],
              ("imagenet", 64): [0.1, 0.6, 0.9], ("imagenet", 128): [0.2, 0.5, 0.8]}  # fmt: skip
    for (kind, size), row in scores.items():
        made(row, size=size).save(tmp_path / f"efficientnet_lite0.{kind}.photographs.{size}.spatial.json")
    small, large = before_and_after(tmp_path).rows()
    assert (small["batch"], large["batch"]) == (64, 128)
    assert (small["median before"], small["median after"]) == pytest.approx((0.6, 0.6))
    assert (large["spread before"], large["spread after"]) == pytest.approx(((2 / 300) ** 0.5, 0.06**0.5))
