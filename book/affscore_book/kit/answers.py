"""Converts a reader's answer to the form that a check takes; an answer of another form gets a sentence.

Numbers may come from Python, NumPy or PyTorch, be exact (``Fraction``, SymPy) or have many digits (``Decimal``,
mpmath). A result with a named field that is the number is accepted as well.
:func:`affscore_book.kit.checks.exercise` applies these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from affscore.arrays import is_tensor

__all__ = ["Unfit", "function", "instance", "layers", "mapping", "numbers", "one_number", "whole", "wholes"]

#: The fields that hold the number of a result, such as those of ``scipy.stats.spearmanr`` and ``root_scalar``.
FIELDS = ("statistic", "root", "x", "mean")


class Unfit(ValueError):
    """The answer has another form; the text is a sentence for the reader."""


def _shown(answer: Any) -> str:
    kind = type(answer).__name__
    return f"your answer is the text {answer!r:.60}" if isinstance(answer, str) else f"your answer is of type {kind}"


def _plain(answer: Any) -> Any:
    """The answer, with a tensor replaced by an array and a result by its number."""
    if is_tensor(answer) and not answer.is_complex():
        return answer.detach().cpu().double().numpy()
    if isinstance(answer, np.ndarray | np.generic):
        return answer
    named = (getattr(answer, name, None) for name in FIELDS)
    return next((_plain(value) for value in named if value is not None and not callable(value)), answer)


def _floats(answer: Any) -> np.ndarray:
    """The answer as a float64 array. Raises TypeError, ValueError or OverflowError if it holds anything but numbers."""
    plain = _plain(answer)
    if isinstance(plain, str | bytes | Mapping) or plain is None:
        raise TypeError
    if isinstance(plain, list | tuple | range):
        return np.array([_floats(each) for each in plain], dtype=np.float64)
    found = np.asarray(plain)
    if found.dtype.kind in "USV" or np.iscomplexobj(found):
        raise TypeError
    if found.dtype.hasobject and found.ndim == 0:
        return np.array(float(found.item()))  # a Fraction, a Decimal, a number of mpmath or SymPy
    if found.dtype.hasobject:
        return np.array([_floats(each) for each in found.tolist()], dtype=np.float64)
    return found.astype(np.float64)


def numbers(answer: Any) -> np.ndarray:
    """The numbers in an array, a list or a tensor, as an array of float64.

    >>> numbers([1, np.float32(0.5)]).tolist()
    [1.0, 0.5]
    """
    try:
        return _floats(answer)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unfit(f"{_shown(answer)}; it should be numbers, such as an array or a list.") from error


def one_number(answer: Any) -> float:
    """One number, which may be the only entry of an array, a list or a tensor.

    >>> from fractions import Fraction
    >>> one_number(Fraction(1, 4)), one_number([0.25]), one_number(np.float64(0.25))
    (0.25, 0.25, 0.25)
    >>> one_number("a third")
    Traceback (most recent call last):
    ...
    affscore_book.kit.answers.Unfit: your answer is the text 'a third'; it should be a number.
    """
    try:
        found = _floats(answer)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unfit(f"{_shown(answer)}; it should be a number.") from error
    if found.size != 1:
        raise Unfit(f"your answer has {found.size} numbers; it should be one number.")
    return float(found.reshape(()))


def whole(answer: Any) -> int:
    """A whole number, which may be a float.

    >>> whole(25.0)
    25
    """
    found = one_number(answer)
    if not found.is_integer():
        raise Unfit(f"your answer is {found:g}; it should be a whole number.")
    return int(found)


def wholes(answer: Any) -> tuple[int, ...]:
    """The whole numbers in an array, a list or a tensor."""
    return tuple(whole(each) for each in numbers(answer).ravel())


def function(answer: Any) -> Callable[..., Any]:
    """A function, or a network."""
    if not callable(answer):
        raise Unfit(f"{_shown(answer)}; it should be a function.")
    return answer


def instance(kind: type) -> Callable[[Any], Any]:
    """The form of an object of this type."""

    def form(answer: Any) -> Any:
        if not isinstance(answer, kind):
            raise Unfit(f"{_shown(answer)}; it should be of type {kind.__name__}.")
        return answer

    return form


def layers(answer: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The layers of a network, each a matrix of weights and a vector of biases, or an object with lists of both.

    >>> [(weights.shape, biases.shape) for weights, biases in layers([([[1, 2]], [0])])]
    [((1, 2), (1,))]
    """
    if hasattr(answer, "weights") and hasattr(answer, "biases"):
        answer = list(zip(answer.weights, answer.biases, strict=True))
    wanted = "it should be a list of layers, each with a matrix of weights and a vector of biases."
    try:
        found = [(numbers(weights), numbers(biases)) for weights, biases in answer]
    except (TypeError, ValueError) as error:
        raise Unfit(f"{_shown(answer)}; {wanted}") from error
    if not found or any(biases.shape != weights.shape[:1] or weights.ndim != 2 for weights, biases in found):
        raise Unfit(f"{_shown(answer)} with other shapes; {wanted}")
    return found


def mapping(form: Callable[[Any], Any]) -> Callable[[Any], dict[Any, Any]]:
    """The form of a dictionary whose values have this form."""

    def forms(answer: Any) -> dict[Any, Any]:
        if not isinstance(answer, Mapping):
            raise Unfit(f"{_shown(answer)}; it should be a dictionary.")
        found = {}
        for key, value in answer.items():
            try:
                found[key] = form(value)
            except Unfit as error:
                raise Unfit(f"for {key!r} {error}") from error
        return found

    return forms
