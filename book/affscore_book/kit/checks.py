"""Checks of the exercises: one module a chapter. They print whether an answer is right, and why not."""


def report(right: bool, praise: str, hint: str) -> None:
    """Print the verdict on an answer.

    >>> report(2 > 1, "two is more.", "try counting.")
    Right: two is more.
    >>> report(1 > 2, "one is more.", "try counting.")
    Not yet: try counting.
    """
    print(f"Right: {praise}" if right else f"Not yet: {hint}")
