"""Checks the parts and the stored form of a signature, for :mod:`affscore.signatures`."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from affscore.arguments import line_of
from affscore.calls import Call, Constant, Excluded, Undecided

__all__ = ["check_calls", "check_provenance", "check_that", "no_constant", "validated", "with_nulls"]

_KINDS = {kind.__name__: kind for kind in (Constant, Excluded, Undecided)}
_KEYS = {"pool", "covariance", "calls", "excluded", "batch_sizes", "scores", "provenance"}


def validated(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of a signature from its stored form, with the checks that the constructor cannot make."""
    unknown = sorted(content.keys() - _KEYS - {"schema", "companions"})
    check_that(not unknown, f"it has the unknown keys {unknown}")
    fields = {name: content[name] for name in _KEYS}
    calls = [Call(**{**call, "shape": tuple(call["shape"])}) for call in fields["calls"]]
    scores = _with_nans(fields["scores"], len(calls), "scores")
    companions = {name: _with_nans(rows, len(calls), name) for name, rows in content.get("companions", {}).items()}
    excluded = [_KINDS.get(item.get("kind"), Excluded)(item["name"], item["reason"]) for item in fields["excluded"]]
    return fields | {"calls": calls, "scores": scores, "excluded": excluded, "companions": companions}


def check_provenance(provenance: Any) -> None:
    """Raise ValueError unless it is a dictionary that JSON can hold."""
    check_that(isinstance(provenance, dict), f"provenance is {provenance!r:.80}; it should be a mapping")
    try:
        json.dumps(provenance, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"provenance cannot be stored as JSON: {line_of(error)}.") from error


def check_calls(calls: list[Call], axes: list[int] | None) -> None:
    """Raise ValueError if a call contradicts itself; ``axes`` are the axes allowed for channels, by default any."""
    for call in calls:
        numbers = (call.ordinal, call.channel_axis, *call.shape)
        sound = all(type(value) is int for value in numbers) and type(call.gate) is type(call.masked) is bool
        sound &= all(isinstance(value, str) for value in (call.name, call.module, call.function))
        check_that(sound, f"the call {call.name!r} has a value of a wrong type")
        check_that(all(length >= 1 for length in call.shape), f"the call {call.name!r} has the shape {call.shape}")
        known = call.channel_axis in (axes or range(1, len(call.shape) + 1))
        check_that(known, f"the channel_axis of {call.name!r} is {call.channel_axis}")
        named = f"{call.module}:{call.function}[{call.ordinal}]"
        check_that(call.ordinal >= 0 and call.name == named, f"the call {call.name!r} should be named {named!r}")
    check_that(len({call.name for call in calls}) == len(calls), "two calls have the same name")


def check_that(condition: bool, sentence: str) -> None:
    """Raise ValueError with the sentence unless the condition holds."""
    if not condition:
        raise ValueError(f"{sentence}.")


def no_constant(name: str) -> None:
    """Raise ValueError for a constant that Python's JSON reader accepts: NaN and infinities."""
    raise ValueError(f"it holds {name}, which is not JSON.")


def with_nulls(values: np.ndarray) -> list[list[float | None]]:
    """The rows of an array with null for NaN, as JSON holds them."""
    return [[None if math.isnan(value) else value for value in row] for row in values.tolist()]


def _with_nans(rows: Any, calls: int, name: str) -> np.ndarray:
    """Stored rows as an array (rows, calls), with null as NaN; ValueError for any other value that is not finite."""
    for row in rows:
        check_that(len(row) == calls, f"{name} has a row of {len(row)} numbers for {calls} calls")
        for value in row:
            sound = value is None or (type(value) in (int, float) and math.isfinite(value))
            check_that(sound, f"{name} holds {value!r}, which is not a finite number")
    return np.array(rows, dtype=np.float64).reshape(len(rows), calls)
