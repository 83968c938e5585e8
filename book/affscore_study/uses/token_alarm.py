"""Experiment E5 with monitors that read single positions, to see if averages handicapped the score (exploratory).

E5 (:mod:`affscore_book.uses.alarm`) gave the score a handicap: it scored averages over positions, while the cost of a
call was predicted by the score of single positions; paired R2, which predicts that cost as well, was no monitor; and
the deviations of calls' inputs were those of averages. What follows was written after E5's results had been seen, and a
reviewer's first numbers for such monitors. It decides none of E5's rules, and was committed before its own first run,
``book/data/uses/make.py token_alarms``.

*Same as there*: the five networks, all batches, the ten faults and their strengths, the distance, the bar, and what is
counted. *Other monitors*, each with its readings of every call that is no gate:

-   *token score*: the affinity score of :data:`POSITIONS` random positions of the batch's images, at the same places in
    every batch;
-   *token R²*: the share of the output's variance at these very positions that the least-squares line of each channel
    explains, fitted to them;
-   *raw means of calls*: the mean and the deviation of all entries of the input, none averaged before.

Reported: the sensitivity of each, and the differences token score − raw means, token R² − raw means, and token score −
score, with Student's intervals over the five networks. All networks get the same four batches of wrong images, so each
interval is conditional on these images: it says what other networks would do with them, not what other images would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from affscore import affinity_score
from affscore.calls import Call
from affscore_book.kit.statistics import shown, student_interval
from affscore_book.kit.tables import Table
from affscore_book.uses.alarm import sensitivity
from affscore_book.uses.replacing import channel_line, run_watched
from affscore_study.uses.alarm import ranked_above
from affscore_study.uses.costs import tokens

__all__ = ["POSITIONS", "TOKEN_MONITORS", "joined_alarms", "token_alarm_table", "token_lead_table", "token_readings"]

#: The number of positions of a batch that the token score and R2 take as samples.
POSITIONS = 512
TOKEN_MONITORS = ("token score", "token R²", "raw means of calls")
#: The differences that are reported.
TOKEN_LEADS = (("token score", "raw means of calls"), ("token R²", "raw means of calls"), ("token score", "score"))


def _explained(x: Tensor, y: Tensor) -> float:
    """The share of the variance of ``y`` (n, channels), summed over channels, that lines explain; NaN if constant."""
    spread = float(y.var(0, unbiased=False).mean())
    return 1 - float((channel_line(x, y, 1)(x) - y).square().mean()) / spread if spread > 0 else math.nan


def token_readings(network: nn.Module, inputs: Tensor, calls: Sequence[Call]) -> dict[str, list[float]]:
    """The readings of the monitors :data:`TOKEN_MONITORS` for one batch.

    Parameters
    ----------
    network
        It runs in evaluation mode.
    inputs
        Images of shape (n, channels, H, W), as the network receives them.
    calls
        The calls of :func:`affscore_book.uses.replacing.calls_of`.
    """
    found: dict[str, list[float]] = {monitor: [] for monitor in TOKEN_MONITORS}

    def read(at: int, x: Tensor, y: Tensor) -> None:
        if calls[at].gate:
            return
        before, after = (tokens(value, calls[at].channel_axis, at, POSITIONS) for value in (x, y))
        found["token score"].append(affinity_score(before, after).item())
        found["token R²"].append(_explained(before, after))
        found["raw means of calls"] += [float(x.double().mean()), float(x.double().std())]

    run_watched(network, inputs, read)
    return found


def joined_alarms(
    alarms: Mapping[str, Mapping[str, Any]], again: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The distances of E5 joined with those of the other monitors, for the networks that have both.

    Raises ValueError if the faults of a network, or their order, differ between the two.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, new in again.items():
        old = alarms[name]
        kinds = [[(each["fault"], each["share"]) for each in record["faulty"]] for record in (old, new)]
        if kinds[0] != kinds[1] or len(old["clean"]) != len(new["clean"]):
            raise ValueError(f"{name}: the batches of both records differ; book/data/uses/make.py makes the same.")
        found[name] = {part: [a | b for a, b in zip(old[part], new[part], strict=True)] for part in ("clean", "faulty")}
    return found


def token_alarm_table(joined: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of the sensitivity in percent by monitor, with a column for each network and one for the mean.

    The last column is the share of pairs that are ranked rightly. ``joined`` comes from :func:`joined_alarms`.
    """
    rows = []
    for monitor in ("score", "token score", "token R²", "means of calls", "raw means of calls"):
        found = {name: sensitivity(each, monitor) for name, each in joined.items()}
        row: dict[str, Any] = {"monitor": monitor} | {name: round(100 * value) for name, value in found.items()}
        row["mean"] = round(100 * float(np.mean(list(found.values()))))
        ranked = float(np.mean([ranked_above(each, monitor) for each in joined.values()]))
        rows.append(row | {"pairs ranked rightly": round(100 * ranked)})
    return Table.from_rows(rows, digits=0)


def token_lead_table(joined: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of the differences :data:`TOKEN_LEADS` in sensitivity, with Student's interval over the networks."""
    rows = []
    for one, other in TOKEN_LEADS:
        gaps = [sensitivity(each, one) - sensitivity(each, other) for each in joined.values()]
        rows.append({"sensitivity": f"{one} − {other}", "networks": len(gaps)}
                    | {"difference": shown(student_interval(gaps))}
                    | {"above 0 in": sum(gap > 0 for gap in gaps)})  # fmt: skip
    return Table.from_rows(rows, digits=2)
