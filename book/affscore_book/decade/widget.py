"""The widget of the chapter on the decade: a network's signature while it is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from affscore_book.decade.collection import Course
from affscore_book.kit.picture import Panel, picture
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["TrainingCourse", "training_course"]


class TrainingCourse(ComputedWidget):
    """The signature of a network at one moment of its training, beside start and end, and its accuracy so far.

    Make it with :func:`training_course`. Everything was measured before; the page only draws.

    Parameters
    ----------
    networks
        Each with name; steps of the training at the moments that were measured, the first 0; accuracy at each; scores,
        a list for each moment, of one number a call (None for a dead one).
    selected
        The name of the network that is shown; by default the first.
    moment
        The number of the chosen moment, from 0; the last one where the network has fewer.
    """

    networks = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    moment = traitlets.Int(0, min=0, max=99).tag(sync=True)

    _esm = Path(__file__).with_name("training_course.js")

    def score(self) -> float:
        """The mean score over the calls at the chosen moment, without dead ones; NaN if there is no network."""
        chosen = self._chosen()
        return math.nan if chosen is None else _mean(chosen["scores"][_moment(chosen, self.moment)])

    def __repr__(self) -> str:
        if not self.networks:
            return super().__repr__()
        return f"TrainingCourse({len(self.networks)} networks, selected={self.selected!r}, moment={self.moment})"

    def fallback(self) -> str:
        """The signature beside those of start and end, and the accuracy at all moments."""
        chosen = self._chosen()
        calls = len(chosen["scores"][0]) if chosen else 1
        left = Panel(
            label="The signature at this step, at the start and at the end", xlim=(0, calls + 1), ylim=(0.3, 1),
            xlabel="activation call", ylabel="affinity score",
            legend=[("w2-curve", "start"), ("image-line", "end"), ("score-curve", "now")],
        )  # fmt: skip
        right = Panel(
            label="Accuracy and mean score along the training", xlim=(0, 4), ylim=(0, 1),
            xlabel="step + 1, powers of 10",
            legend=[("input-curve", "accuracy"), ("score-curve", "mean score")],
        )  # fmt: skip
        if chosen is None:
            return picture(
                left, right, score=math.nan, text="There is no network to show.", headline=_headline(math.nan)
            )
        at = _moment(chosen, self.moment)
        numbers = range(1, calls + 1)
        for look, row in (("w2-curve", 0), ("image-line", -1), ("score-curve", at)):
            left.line(look, numbers, [math.nan if value is None else value for value in chosen["scores"][row]])
        steps = [math.log10(step + 1) for step in chosen["steps"]]
        means = [_mean(scores) for scores in chosen["scores"]]
        right.line("input-curve", steps, chosen["accuracy"])
        right.line("score-curve", steps, means)
        right.dot("input-dot", steps[at], chosen["accuracy"][at], 6)
        right.dot("score-dot", steps[at], means[at], 6)
        return picture(left, right, score=self.score(), text=_text(chosen, at), headline=_headline(means[at]))

    def _chosen(self) -> Mapping[str, Any] | None:
        named = [network for network in self.networks if network["name"] == self.selected]
        return next(iter([*named, *self.networks]), None)


def training_course(courses: Mapping[str, Course]) -> TrainingCourse:
    """The widget for these networks, rounded so that every machine stores the same text."""
    networks = [
        {"name": name, "steps": [int(step) for step in found.steps]}
        | {"accuracy": [round(float(value), 4) for value in found.accuracy]}
        | {
            "scores": [
                [None if math.isnan(value) else round(value, 4) for value in row] for row in found.scores.tolist()
            ]
        }
        for name, found in courses.items()
    ]
    return TrainingCourse(networks=networks, selected=next(iter(courses), ""))


# What follows stands in training_course.js as well.


def _moment(network: Mapping[str, Any], moment: int) -> int:
    return min(moment, len(network["steps"]) - 1)


def _mean(scores: Sequence[float | None]) -> float:
    alive = [value for value in scores if value is not None]
    return float(np.mean(alive)) if alive else math.nan


def _headline(mean: float) -> str:
    return "There is no score." if math.isnan(mean) else f"Mean score {mean:.3f}"


def _text(network: Mapping[str, Any], at: int) -> str:
    return f"{network['name']} after {network['steps'][at]} steps, {100 * network['accuracy'][at]:.0f} % right"
