"""What is said of skewness is so in the stored signatures, and levels are compared batch by batch."""

from pathlib import Path

import numpy as np

from affscore import Signature
from affscore.calls import Call
from affscore_book.first_signature.claims import before_and_after, not_run, skewness_table

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def signature(scores, batch=256):
    calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (3,), 1) for i in range(len(scores))]
    return Signature(calls, np.array([scores]), batch_sizes=[batch])


def test_skewness_was_there_before_training():
    rows = skewness_table(STORED).rows()
    trained, untrained = rows[:3], rows[3:]
    assert {row["weights"] for row in trained} == {"trained"} and len(untrained) == 3
    assert all(row["skewness"] < -0.5 and row["median \u2212 middle"] > 0 for row in rows)
    assert all(after["skewness"] > before["skewness"] for after, before in zip(trained, untrained, strict=True))
    # One low call makes most of it: without the first, the untrained ones are far less skewed.
    assert all(row["without first call"] > row["skewness"] + 2 for row in untrained)
    assert [row["verdict"] for row in not_run().rows()] == ["not run here"]


def test_training_widens_the_spread_in_every_batch_and_not_the_median():
    rows = before_and_after(STORED, signature([0.9, 0.9, 0.9]), signature([0.8, 0.9, 1.0])).rows()
    assert [row["batch"] for row in rows] == [64, 128, 256]
    assert all(row["spread after"] > row["spread before"] for row in rows)
    assert rows[2]["median before"] == rows[2]["median after"] == 0.9
    # The untrained level falls as the batch grows; the trained one does not follow.
    before, after = ([row[f"median {when}"] for row in rows[:2]] for when in ("before", "after"))
    assert before[0] > before[1] > after[1]
