"""A grid of values as one test: the loop that `pytest.mark.parametrize` would make cases of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Callable], Callable]:
    """Calls the test once for every value (a tuple where there are several names); an error names the values.

    For grids of one property, which share one setup; what needs a fixture of its own stays parametrised. A grid
    without a value would pass, so it is an error.
    """
    names = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    rows = [dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values]
    if not rows:
        raise ValueError(f"there is no value for {', '.join(names)}; a test of nothing passes.")

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def loop(**given: Any) -> None:
            for row in rows:
                try:
                    test(**given, **row)
                except BaseException as error:
                    error.add_note(f"with {row}")
                    raise

        signature = inspect.signature(test)
        missing = set(names) - set(signature.parameters)
        if missing:
            raise ValueError(f"{test.__name__} has no parameter {', '.join(sorted(missing))}.")
        rest = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        loop.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return loop

    return decorate
