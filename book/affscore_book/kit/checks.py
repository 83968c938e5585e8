"""The base of the exercises' checks, which print whether an answer is right, and after some failures a hint."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from affscore.arguments import whole_number
from affscore_book.kit.answers import Unfit

P = ParamSpec("P")

#: The last verdict on each exercise, by its label.
verdicts: dict[str, bool] = {}
#: The calls of the checks: the name of each check, and the arguments that it was given.
asked: list[tuple[str, inspect.BoundArguments]] = []
_failures: Counter[str] = Counter()
# "Run all" fails each exercise once, with the unchanged cell; the reader then has two tries before the hint.
_allowed = 2
_case = ""


def hint_after(failures: int) -> None:
    """Set how often an exercise must fail before a further failure prints its hint: at first 2, 0 for hints at once."""
    global _allowed
    whole_number("failures", failures, 0)
    _allowed = failures
    _failures.clear()


def exercise(label: str, **forms: Callable[[Any], Any]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a check of the exercise with this label, in which the named arguments are answers of the given forms.

    An answer of another form (:mod:`affscore_book.kit.answers`) gets a sentence at once and no verdict.
    """

    def decorate(check: Callable[P, None]) -> Callable[P, None]:
        parameters = inspect.signature(check)

        @wraps(check)
        def checked(*args: P.args, **kwargs: P.kwargs) -> None:
            given = parameters.bind(*args, **kwargs)
            asked.append((check.__name__, parameters.bind(*args, **kwargs)))
            try:
                for name, form in forms.items():
                    given.arguments[name] = form(given.arguments[name])
                check(*given.args, **given.kwargs)
            except Unfit as error:
                verdicts.pop(label, None)
                print(f"Not yet: {error}")

        vars(checked)["label"], vars(checked)["forms"] = label, forms
        return checked

    return decorate


@contextmanager
def case(name: str) -> Iterator[None]:
    """Name the case in which the reader's function is called; a failure or an error in the block mentions the name."""
    global _case
    before, _case = _case, name
    try:
        yield
    except Unfit as error:
        raise Unfit(f"with {name}: {error}") from error
    except Exception as error:
        error.add_note(f"The check called your function with {name}.")
        raise
    finally:
        _case = before


def report(exercise: str, right: bool, praise: str, hint: str) -> None:
    """Print the verdict on an answer to the exercise with this label, and the case that failed.

    The third failure prints the hint, since the first failure may come from the unchanged cell.

    >>> hint_after(2)
    >>> report("more", 2 > 1, "two is more.", "try counting.")
    Right: two is more.
    >>> for _ in range(3):
    ...     with case("one"):
    ...         report("more", 1 > 2, "one is more.", "try counting.")
    Not yet, with one.
    Not yet, with one. The next wrong answer brings a hint.
    Not yet: try counting.
    """
    verdicts[exercise] = bool(right)
    if right:
        print(f"Right: {praise}")
        return
    _failures[exercise] += 1
    if _failures[exercise] > _allowed:
        print(f"Not yet: {hint}")
        return
    where = f", with {_case}" if _case else ""
    soon = " The next wrong answer brings a hint." if _failures[exercise] == _allowed else ""
    print(f"Not yet{where}.{soon}")
