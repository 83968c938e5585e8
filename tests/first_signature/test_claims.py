"""Levels are compared batch by batch."""

from pathlib import Path

from affscore_study.first_signature.claims import before_and_after

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def test_training_widens_the_spread_in_every_batch():
    """Training widens the spread in every batch and does not widen the median."""
    rows = before_and_after(STORED).rows()
    assert [row["batch"] for row in rows] == [64, 128]
    assert all(row["spread after"] > row["spread before"] for row in rows)
    # The untrained level falls as the batch grows; the trained one does not follow.
    before, after = ([row[f"median {when}"] for row in rows] for when in ("before", "after"))
    assert before[0] > before[1] > after[1]
