"""The stored runs at four learning rates: the recipe is one more thing that two signatures may differ by.

``book/data/decade/rates.py`` makes them, by the rules of ``affscore_study.decade.recipe``. A run that ends below the
floor of its kind, or whose loss is not finite, has failed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.decade.collection import END, Decade, Trained, course
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.decade.training import FLOORS, RECIPE
from affscore_book.kit.stored import read_results, stored_files

__all__ = ["FEW", "FOLLOWED", "OTHERS", "RATES", "SEEDS", "RateRun", "first_runs", "load_rates", "other_rates"]

#: What the networks are trained at; the book's recipe has one of them.
RATES = (0.001, 0.002, 0.004, 0.008)
#: Part one: stacks of convolutions with and without norm, residual networks, GoogLeNet, and a mobile network.
FOLLOWED = (
    "alexnet", "vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn", "resnet10", "resnet18", "mobilenet_v3",
    "googlenet",
)  # fmt: skip
SEEDS = 3
#: Part two: the other networks of the history, first seed, no snapshots.
OTHERS = ("inception_v3", "resnet34", "densenet28", "densenet40", "mobilenet_v2", "mnasnet", "efficientnet")
#: Random channels of a call.
FEW = CHANNELS[0]
SCRIPT = "book/data/decade/rates.py"


@dataclass(frozen=True)
class RateRun:
    """One training.

    Attributes
    ----------
    name, rate, seed
        Of the network, its learning rate, and the seed of start and training.
    accuracy
        On the test images; NaN where the loss was not finite.
    validation
        Accuracy on validation images at each moment that was measured, (moments,); the last is the end.
    scores
        Mean score over the calls at these moments, batch norm set at each but the last, (moments,).
    few
        Mean score at the end with :data:`FEW` random channels a call, over the draws; NaN where it was not taken.
    end
        Scores of the calls at the end, (calls,).
    device
        On which it was trained and measured: ``"cpu"`` or the name of a GPU.
    """

    name: str
    rate: float
    seed: int
    accuracy: float
    validation: np.ndarray
    scores: np.ndarray
    few: float
    end: np.ndarray = field(default_factory=lambda: np.zeros(0))
    device: str = "cpu"

    @property
    def failed(self) -> bool:
        """Whether it is below the floor that was set for convolutional networks."""
        return not self.accuracy >= FLOORS["convolutional"]


def _means(rows: Iterable[Any]) -> np.ndarray:
    return np.array([np.nanmean(np.array(row, dtype=np.float64)) for row in rows])


def _read(content: Mapping[str, Any]) -> RateRun:
    name, rate, seed = (content[key] for key in ("network", "learning_rate", "seed"))
    device = content["made_with"].get("device", "cpu")
    if "failed" in content:
        return RateRun(name, rate, seed, math.nan, np.zeros(0), np.zeros(0), math.nan, device=device)
    moments = content["moments"]
    validation, scores = np.array([each["validation"] for each in moments]), _means(each["scores"] for each in moments)
    few = float(_means(content["few_channels"]).mean())
    end = np.array(moments[-1]["scores"], dtype=np.float64)
    return RateRun(name, rate, seed, content["accuracy"], validation, scores, few, end, device)


def load_rates(
    folder: str | os.PathLike[str], decade: Decade, equal: Mapping[str, Equal], *, gpu: bool = True
) -> list[RateRun]:
    """The stored runs, and those of the decade at its own rate where they have the snapshots that are asked for.

    Parameters
    ----------
    folder
        ``book/data/decade``.
    decade
        Of :func:`affscore_book.decade.collection.load_decade`.
    equal
        Of :func:`affscore_book.decade.equal.load_equal`: scores of the decade's first seeds with :data:`FEW` channels.
    gpu
        Whether a run that was made on a GPU, too, is that one; else all are those of the processor.

    Raises
    ------
    FileNotFoundError
        If no run is stored.
    ValueError
        If a file is damaged.
    """
    files = stored_files(folder, "rates/results", "runs at other rates", SCRIPT)
    if gpu:
        files += sorted(Path(folder, "rates/gpu/results").glob("*.json"))
    read = (read_results(file, _read, SCRIPT) for file in files)
    stored, own = {(run.name, run.rate, run.seed): run for run in read}, RECIPE.learning_rate
    runs = list(stored.values())
    for name in (name for name in decade if name in FOLLOWED + OTHERS):
        for seed, network in decade[name].items():
            moments = course(network)
            if seed < SEEDS and (name, own, seed) not in stored and (name in OTHERS or len(moments.steps) > 2):
                few = float(np.nanmean(equal[name].channels[END, FEW])) if name in equal and not seed else math.nan
                scores = _means(moments.scores), few, moments.scores[-1]
                runs.append(RateRun(name, own, seed, network.accuracy, moments.accuracy, *scores))
    return runs


def first_runs(runs: Sequence[RateRun], name: str) -> dict[float, RateRun]:
    """A network's runs of the first seed that did not fail, by rate, the smallest first."""
    mine = [run for run in runs if (run.name, run.seed) == (name, 0) and not run.failed]
    return {run.rate: run for run in sorted(mine, key=lambda run: run.rate)}


def other_rates(runs: Sequence[RateRun]) -> Callable[[Trained], list[np.ndarray]]:
    """For the ladder of differences: a network's signatures at its rates, first seed."""
    ends = {name: [run.end for run in first_runs(runs, name).values()] for name in FOLLOWED}
    return lambda network: ends.get(network.name, [])
