"""A network that is fed wrongly still answers: which monitor raises the alarm? (experiment E5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["MONITORS", "TOUCHED", "sensitivity", "threshold"]

#: Share of the images of a batch that the fault touches: the strength, the same for every kind of fault.
TOUCHED = (0.125, 0.5, 1.0)
#: The monitors, and the reading of :func:`affscore_study.uses.alarm.readings` that each compares with stored ones.
MONITORS = ("score", "means of calls", "channel means of calls", "batch norm", "input", "confidence")


def threshold(clean: np.ndarray) -> float:
    """The largest distance of a hundred clean batches: a further one lies above it once in a hundred times.

    Raises ValueError if there are fewer than a hundred.
    """
    if len(clean) < 100:
        raise ValueError(f"clean has {len(clean)} batches; one false alarm in a hundred needs 100.")
    return float(np.sort(clean)[-(len(clean) // 100)])


def sensitivity(stored: Mapping[str, Any], monitor: str, fault: str | None = None, share: float | None = None) -> float:
    """Share of the faulty batches of one network that raise the alarm, of one kind or strength where it is named.

    ``stored`` is what :func:`affscore_study.uses.alarm.in_distances` gives; NaN where the network has
    nothing that the monitor reads.
    """
    clean = np.array([each[monitor] for each in stored["clean"]])
    if np.isnan(clean).any():
        return math.nan
    some = [each[monitor] for each in stored["faulty"]
            if fault in (None, each["fault"]) and share in (None, each["share"])]  # fmt: skip
    return float((np.array(some) > threshold(clean)).mean())
