"""Right answers are accepted, wrong ones get a hint."""

from __future__ import annotations

import numpy as np
from answers import accepted, refused

from affscore import Signature
from affscore.calls import Call
from affscore_book.imagenet_signatures import exercises

MODULES = ["relu", "a.relu", "a.relu", "a.relu", "b.relu", "b.relu"]
SHARED = Signature(
    [Call(f"{m}:relu[{i}]", m, "relu", i, False, (4,), 1) for i, m in enumerate(MODULES)], np.full((1, 6), 0.5)
)
TOKENS = Signature([Call("mlp:gelu[0]", "mlp", "gelu", 0, False, (197, 3072), 2)], np.array([[0.5]]))
WIDE = Signature(
    [Call(f"{d}:relu[0]", str(d), "relu", 0, False, (d, 4, 4), 1) for d in (64, 127, 128, 256)], np.full((1, 4), 0.5)
)
RIGHT = {
    "lists": lambda: exercises.check_lists(3, 2, SHARED),
    "idempotent": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6"]),
    "lengths": lambda: exercises.check_lengths(3072, 577, TOKENS, 384, 16),
    "saturated": lambda: exercises.check_saturated(0.75, WIDE, 128),
}
WRONG = {
    "calls": lambda: exercises.check_lists(6, 6, SHARED),
    "all mixed": lambda: exercises.check_lists(3, 3, SHARED),
    "silu too": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6", "silu"]),
    "one missing": lambda: exercises.check_idempotent(["relu", "hardtanh"]),
    "unknown": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6", "relu7"]),
    "swapped": lambda: exercises.check_lengths(577, 3072, TOKENS, 384, 16),
    "no class token": lambda: exercises.check_lengths(3072, 576, TOKENS, 384, 16),
    "no intercept": lambda: exercises.check_saturated(0.5, WIDE, 128),
    "close": lambda: exercises.check_saturated(0.7, WIDE, 128),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
