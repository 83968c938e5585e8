"""Verdicts on skewness turn with the scores, and levels are compared batch by batch."""

from pathlib import Path

import numpy as np
import pytest

from affscore import Signature
from affscore.calls import Call
from affscore_book.first_signature.claims import before_and_after, load_lites, skewness

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
LITES = load_lites(STORED)


def signature(scores, batch=256):
    calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (3,), 1) for i in range(len(scores))]
    return Signature(calls, np.array([scores]), batch_sizes=[batch])


LOW_TAIL = signature([0.3, 0.8, 0.85, 0.9, 0.9, 0.92, 0.95])
HIGH_TAIL = signature([0.9, 0.4, 0.35, 0.3, 0.3, 0.28, 0.25])


@pytest.mark.parametrize(
    ("signatures", "verdict"),
    [(LITES, "agrees"), ([LOW_TAIL], "agrees"), ([HIGH_TAIL], "disagrees"), ([LOW_TAIL, HIGH_TAIL], "undecided")],
)
def test_skewness_is_judged_over_all_networks(signatures, verdict):
    assert [row["verdict"] for row in skewness(signatures).rows()] == [verdict, verdict, "not run here"]


def test_training_widens_the_spread_in_every_batch_and_not_the_median():
    rows = before_and_after(STORED, signature([0.9, 0.9, 0.9]), signature([0.8, 0.9, 1.0])).rows()
    assert [row["batch"] for row in rows] == [64, 128, 256]
    assert all(row["spread after"] > row["spread before"] for row in rows)
    assert rows[2]["median before"] == rows[2]["median after"] == 0.9
    # The untrained level falls as the batch grows; the trained one does not follow.
    before, after = ([row[f"median {when}"] for row in rows[:2]] for when in ("before", "after"))
    assert before[0] > before[1] > after[1]
