"""The widgets of the chapter on the decade: its history by any statistic, and a network while it is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from scipy import stats

from affscore.signatures import Signature
from affscore_book.decade.collection import END, START, CallClouds, Course, Trained
from affscore_book.kit.picture import LOOKS, Panel, picture
from affscore_book.kit.sequences import sequence
from affscore_book.kit.widgets import ComputedWidget

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

    _esm = Path(__file__).with_name("history_chart.js")

    def score(self) -> float:
        """Rank correlation of year and statistic over the networks before 2020; NaN where one of them is constant."""
        early = [network for network in self.networks if network["year"] < TURN]
        return _rank([network["year"] for network in early], [_mean(self._values(network)) for network in early])

    def __repr__(self) -> str:
        if not self.networks:
            return super().__repr__()
        chosen = f"selected={self.selected!r}, statistic={self.statistic!r}, view={self.view!r}"
        return f"HistoryChart({len(self.networks)} networks, {chosen})"

    def fallback(self) -> str:
        """Both panels for the present choice."""
        values = [self._values(network) for network in self.networks]
        means = [_mean(row) for row in values]
        ylim = _limits([value for row in values for value in row])
        left = Panel(
            label="The statistic of each network, by year", xlim=(2011, 2023), ylim=ylim, height=300,
            xlabel="year", ylabel="statistic of the scores",
        )  # fmt: skip
        accuracies = [network["accuracy"] for network in self.networks]
        right = Panel(
            label="The statistic of each network, by accuracy", xlim=_limits(accuracies), ylim=ylim, height=300,
            xlabel="accuracy on test pictures",
        )  # fmt: skip
        for panel, across in ((left, _places(self.networks)), (right, accuracies)):
            for x, row in zip(across, values, strict=True):
                panel.line("curve", [x, x], [min(row), max(row)])
            for x, mean in zip(across, means, strict=True):
                panel.dot("input-dot", x, mean, 5)
            at = self._at()
            if at is not None:
                panel.dot("score-dot", across[at], means[at], 7)
        headline = _correlation(self.score())
        return picture(left, right, score=self.score(), text=self._text(), headline=headline)

    def _values(self, network: Mapping[str, Any]) -> list[float]:
        return network["values"][self.view][self.statistic]

    def _at(self) -> int | None:
        names = [network["name"] for network in self.networks]
        return names.index(self.selected) if self.selected in names else 0 if names else None

    def _text(self) -> str:
        at = self._at()
        if at is None:
            return "There is no network to show."
        network = self.networks[at]
        seeds = ", ".join(f"{value:.3f}" for value in self._values(network))
        return f"{network['name']}, {network['year']}: {seeds} (a number for each seed)"


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

    _esm = Path(__file__).with_name("training_course.js")
    _css = Path(__file__).with_name("training_course.css")

    def score(self) -> float:
        """The mean score over the calls at the chosen moment, without dead ones; NaN if there is no network."""
        chosen = self._chosen()
        return math.nan if chosen is None else _alive_mean(chosen["scores"][_moment(chosen, self.moment)])

    def __repr__(self) -> str:
        if not self.networks:
            return super().__repr__()
        chosen = f"selected={self.selected!r}, moment={self.moment}, beside={self.beside!r}"
        return f"TrainingCourse({len(self.networks)} networks, {chosen})"

    def fallback(self) -> str:
        """The signature beside those of start and end, and the other panel."""
        chosen = self._chosen()
        calls = len(chosen["scores"][0]) if chosen else 1
        left = Panel(
            label="The signature at this step, at the start and at the end", xlim=(0, calls + 1), ylim=(0.3, 1),
            xlabel="activation call", ylabel="affinity score", height=300,
            legend=[("w2-curve", "start"), ("bound-curve", "end"), ("score-curve", "now")],
        )  # fmt: skip
        if chosen is None:
            text, headline = "There is no network to show.", _headline(math.nan)
            return picture(left, score=math.nan, text=text, headline=headline)
        at = _moment(chosen, self.moment)
        numbers = range(1, calls + 1)
        for look, row in (("w2-curve", 0), ("bound-curve", -1), ("score-curve", at)):
            left.line(look, numbers, _numbers(chosen["scores"][row]))
        right = _clouds(chosen, at) if self.beside == "clouds" else _progress(chosen, at)
        if self.beside == "clouds":
            left.dot("score-dot", chosen["call"] + 1, _numbers(chosen["scores"][at])[chosen["call"]], 6)
        text, mean = _text(chosen, at, self.beside), self.score()
        return picture(left, right, score=mean, text=text, headline=_headline(mean))

    def _chosen(self) -> Mapping[str, Any] | None:
        named = [network for network in self.networks if network["name"] == self.selected]
        return next(iter([*named, *self.networks]), None)


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


def _progress(chosen: Mapping[str, Any], at: int) -> Panel:
    panel = Panel(
        label="Accuracy and mean score along the training", xlim=(0, 4), ylim=(0, 1), height=300,
        xlabel="step + 1, powers of 10", legend=[("input-curve", "accuracy"), ("score-curve", "mean score")],
    )  # fmt: skip
    steps = [math.log10(step + 1) for step in chosen["steps"]]
    means = [_alive_mean(scores) for scores in chosen["scores"]]
    panel.line("input-curve", steps, chosen["accuracy"])
    panel.line("score-curve", steps, means)
    panel.dot("input-dot", steps[at], chosen["accuracy"][at], 6)
    panel.dot("score-dot", steps[at], means[at], 6)
    return panel


def _clouds(chosen: Mapping[str, Any], at: int) -> Panel:
    limits = _frame(chosen)
    panel = Panel(
        label=f"Outputs of call {chosen['call'] + 1} and the affine image of its inputs", xlim=limits, ylim=limits,
        xlabel="widest direction (vertical: second)", height=300,
    )  # fmt: skip
    panel.add(f'<circle class="input-dot" {LOOKS["input-dot"]} cx="12" cy="12" r="4"/>')
    panel.write("label", 22, 16, "output")
    panel.add(f'<path class="image-line" {LOOKS["image-line"]} d="M88 8L96 16M88 16L96 8"/>')
    panel.write("label", 102, 16, "affine image of the input")
    outputs, image = (np.array(chosen["clouds"][at][key]).reshape(-1, 2) / 1000 for key in ("outputs", "image"))
    for across, up in outputs:
        panel.dot("input-dot", across, up, 4)
    panel.crosses("image-line", image, 4)
    return panel


# What follows stands in the JavaScript as well.


def _rank(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(stats.spearmanr(one, other).statistic)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Tenths around all values."""
    values = values or [0.0, 1.0]
    low, high = math.floor(min(values) * 10 + 1e-9), math.ceil(max(values) * 10 - 1e-9)
    return low / 10, max(low + 1, high) / 10


def _places(networks: Sequence[Mapping[str, Any]]) -> list[float]:
    """The years, networks of one year beside each other."""
    years = [network["year"] for network in networks]
    return [
        year + 0.8 * (years[:i].count(year) - (years.count(year) - 1) / 2) / max(4, years.count(year))
        for i, year in enumerate(years)
    ]


def _correlation(value: float) -> str:
    shown = "is not defined" if math.isnan(value) else f"{value:.3f}".replace("-", "\u2212")
    return f"Rank correlation with the year {shown}, to 2019"


def _moment(network: Mapping[str, Any], moment: int) -> int:
    return min(moment, len(network["steps"]) - 1)


def _numbers(scores: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in scores]


def _alive_mean(scores: Sequence[float | None]) -> float:
    alive = [value for value in scores if value is not None]
    return float(np.mean(alive)) if alive else math.nan


def _frame(network: Mapping[str, Any]) -> tuple[float, float]:
    """Halves that hold the clouds of all moments."""
    every = [value for clouds in network["clouds"] for key in ("outputs", "image") for value in clouds[key]]
    return math.floor(min(every) / 500) / 2, math.ceil(max(every) / 500) / 2


def _headline(mean: float) -> str:
    return "There is no score." if math.isnan(mean) else f"Mean score {mean:.3f}"


def _text(network: Mapping[str, Any], at: int, beside: str) -> str:
    text = f"{network['name']} after {network['steps'][at]} steps, {100 * network['accuracy'][at]:.0f} % right"
    if beside == "accuracy":
        return text
    value = network["scores"][at][network["call"]]
    return f"{text}; call {network['call'] + 1}: {'dead' if value is None else f'{value:.3f}'}"
