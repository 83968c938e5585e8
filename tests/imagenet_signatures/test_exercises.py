"""Right answers are accepted, wrong ones get a hint."""

from __future__ import annotations

import numpy as np
from answers import accepted, refused
from made_signatures import made

from affscore import Signature
from affscore.calls import Call
from affscore_book.imagenet_signatures import exercises

GOOGLENET = made(np.full(57, 0.9))
TOKENS = Signature([Call("mlp:gelu[0]", "mlp", "gelu", 0, False, (56, 56, 384), 3)], np.array([[0.5]]))
WIDE = Signature(
    [Call(f"{d}:relu[0]", str(d), "relu", 0, False, (d, 4, 4), 1) for d in (64, 127, 128, 256)], np.full((1, 4), 0.5)
)
RIGHT = {
    "calls": lambda: exercises.check_calls(57, 0, GOOGLENET),
    "idempotent": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6"]),
    "shape": lambda: exercises.check_trailing_shape(56, TOKENS),
    "saturated": lambda: exercises.check_saturated(0.75, WIDE, 128),
}
WRONG = {
    "hooks see all": lambda: exercises.check_calls(57, 57, GOOGLENET),
    "another number": lambda: exercises.check_calls(58, 0, GOOGLENET),
    "silu too": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6", "silu"]),
    "one missing": lambda: exercises.check_idempotent(["relu", "hardtanh"]),
    "unknown": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6", "relu7"]),
    "channels": lambda: exercises.check_trailing_shape(384, TOKENS),
    "both sides": lambda: exercises.check_trailing_shape(56 * 56, TOKENS),
    "no intercept": lambda: exercises.check_saturated(0.5, WIDE, 128),
    "close": lambda: exercises.check_saturated(0.7, WIDE, 128),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
