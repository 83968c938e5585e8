"""The widgets of the chapter on the decade: its history by any statistic, and a network while it is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import traitlets
from scipy import stats

from affscore.signatures import Signature
from affscore_book.decade.collection import END, START, CallClouds, Course, Trained
from affscore_book.kit.sequences import sequence
from affscore_book.kit.widgets import ComputedWidget, chosen

__all__ = ["HistoryChart", "TrainingCourse", "history_chart", "training_course"]

#: What the chart can read off a signature; the page has names for them in the same order.
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean, "median": np.median, "min": np.min, "max": np.max, "range": np.ptp, "std": np.std,
}  # fmt: skip
#: By its key, the state and the pool of a signature.
VIEWS = {
    "trained": (END, "spatial"),
    "trained, trailing": (END, "trailing"),
    "start": (START, "spatial"),
    "raw start": ("raw start", "spatial"),
    "start, trailing": (START, "trailing"),
}
#: The first year of the source's second half, when ViT appeared.
TURN = 2020


class HistoryChart(ComputedWidget):
    """A statistic of every network's signature by year, and beside the accuracy. Make it with :func:`history_chart`.

    Parameters
    ----------
    networks
        In order of the years, each with name; year; accuracy, the mean over its seeds; values, by view and statistic
        one number a seed.
    selected
        The name of the network that is marked; by default the first.
    statistic
        ``"mean"``, ``"median"``, ``"min"``, ``"max"``, ``"range"`` or ``"std"`` of the scores of its calls.
    view
        ``"trained"``, ``"start"`` (norm set) or ``"raw start"``, by the pool over positions; with ``", trailing"`` the
        first two by that of the source's code.
    """

    networks = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    statistic = traitlets.Enum(list(STATISTICS), default_value="mean").tag(sync=True)
    view = traitlets.Enum(list(VIEWS), default_value="trained").tag(sync=True)

    _told = ("networks", "selected", "statistic", "view")

    def score(self) -> float:
        """Rank correlation of year and statistic over the networks before 2020; NaN where one of them is constant."""
        early = [network for network in self.networks if network["year"] < TURN]
        years = [network["year"] for network in early]
        seeds = [network["values"][self.view][self.statistic] for network in early]
        level = [sum(values) / len(values) for values in seeds]  # rounded as the page does
        if len(early) < 2 or np.ptp(years) == 0 or np.ptp(level) == 0:
            return math.nan
        return float(stats.spearmanr(years, level).statistic)


def history_chart(decade: Mapping[str, Mapping[int, Trained]]) -> HistoryChart:
    """The widget for these networks, rounded so that every machine stores the same text."""
    networks = [
        {"name": name, "year": next(iter(seeds.values())).year}
        | {"accuracy": round(float(np.mean([each.accuracy for each in seeds.values()])), 4)}
        | {"values": {
            view: {key: [round(float(of(sequence(_signature(each, place)))), 4) for each in seeds.values()]
                   for key, of in STATISTICS.items()}
            for view, place in VIEWS.items()
        }}
        for name, seeds in decade.items()
    ]  # fmt: skip
    return HistoryChart(networks=networks, selected=next(iter(decade), ""))


def _signature(network: Trained, place: tuple[str, str]) -> Signature:
    """A network without norm has one start, which is its raw one."""
    return network.signatures.get(place, network.signatures[START, place[1]])


class TrainingCourse(ComputedWidget):
    """The signature of a network at one moment of its training; beside it the accuracy, or the clouds of one call.

    Make it with :func:`training_course`. Everything was measured before; the page only draws.

    Parameters
    ----------
    networks
        Each with name; steps of the training at the moments that were measured, the first 0; accuracy at each; scores,
        a list for each moment, of one number a call (None for a dead one); call, the place of the call whose clouds are
        shown; clouds, for each moment ``outputs`` and ``image``, each x, y, x, y, ... in thousandths of the outputs'
        spread.
    selected
        The name of the network that is shown; by default the first.
    moment
        The number of the chosen moment, from 0; the last one where the network has fewer.
    beside
        ``"accuracy"`` or ``"clouds"``.
    """

    networks = traitlets.List(traitlets.Dict()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    moment = traitlets.Int(0, min=0, max=99).tag(sync=True)
    beside = traitlets.Enum(["accuracy", "clouds"], default_value="accuracy").tag(sync=True)

    _told = ("networks", "selected", "moment", "beside")

    def score(self) -> float:
        """The mean score over the calls at the chosen moment, without dead ones; NaN if there is no network."""
        network = chosen(self.networks, self.selected)
        if network is None:
            return math.nan
        scores = network["scores"][min(self.moment, len(network["steps"]) - 1)]
        alive = [value for value in scores if value is not None]
        return float(np.mean(alive)) if alive else math.nan


def training_course(courses: Mapping[str, Course], clouds: Mapping[str, CallClouds]) -> TrainingCourse:
    """The widget for these networks, rounded so that every machine stores the same text.

    ``clouds`` has as many pairs of clouds for each as its course has moments.
    """
    networks = [
        {"name": name, "steps": [int(step) for step in found.steps], "call": clouds[name].call}
        | {"accuracy": [round(float(value), 4) for value in found.accuracy]}
        | {"clouds": [dict(each) for each in clouds[name].moments]}
        | {"scores": [[None if math.isnan(value) else round(value, 4) for value in row]
                      for row in found.scores.tolist()]}
        for name, found in courses.items()
    ]  # fmt: skip
    return TrainingCourse(networks=networks, selected=next(iter(courses), ""))
