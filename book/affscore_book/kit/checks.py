"""Checks of the exercises: one module a chapter. They print whether an answer is right, and later why not."""

from collections import Counter

from affscore.arguments import whole_number

#: The last verdict on each exercise, by its label.
verdicts: dict[str, bool] = {}
_failures: Counter[str] = Counter()
# "Run all" fails each exercise once, on the cell as it stands; two tries of the reader's own follow.
_allowed = 2


def hint_after(failures: int) -> None:
    """Say how many times an exercise must have failed before its hint is printed: 2 at first, 0 for hints at once."""
    global _allowed
    whole_number("failures", failures, 0)
    _allowed = failures
    _failures.clear()


def report(exercise: str, right: bool, praise: str, hint: str) -> None:
    """Print the verdict on an answer to the exercise with this label; the hint comes with the third failure.

    >>> hint_after(2)
    >>> report("more", 2 > 1, "two is more.", "try counting.")
    Right: two is more.
    >>> for _ in range(3):
    ...     report("more", 1 > 2, "one is more.", "try counting.")
    Not yet.
    Not yet.
    Not yet: try counting.
    """
    verdicts[exercise] = bool(right)
    if right:
        print(f"Right: {praise}")
        return
    _failures[exercise] += 1
    print(f"Not yet: {hint}" if _failures[exercise] > _allowed else "Not yet.")
