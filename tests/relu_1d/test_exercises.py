"""The checks of the exercises accept right answers and refuse wrong ones."""

import math

from answers import accepted, refused

from affscore_book.relu_1d import exercises
from affscore_book.relu_1d.exact import uniform_input

RIGHT = {
    "half": lambda: exercises.check_half(0.30347),
    "step": lambda: exercises.check_step(1 - (1 - (2 / math.pi) ** 0.5) ** 0.5),
    "steep leak": lambda: exercises.check_steep_leak(uniform_input(-3.0, 1.0, "leaky_relu", slope=0.5).score.item()),
    "mean": lambda: exercises.check_mean(1.4963026812),
}
WRONG = {
    "half": lambda: exercises.check_half(0.25),
    "no share": lambda: exercises.check_half(0.0),
    "step": lambda: exercises.check_step((2 / math.pi) ** 0.5),
    "steep leak, not turned": lambda: exercises.check_steep_leak(
        uniform_input(-1.0, 3.0, "leaky_relu", slope=0.5).score.item()
    ),
    "mean": lambda: exercises.check_mean(1.0),
}


test_exercises_accept_right_answers = accepted(RIGHT)
test_exercises_refuse_wrong_answers = refused(WRONG)
