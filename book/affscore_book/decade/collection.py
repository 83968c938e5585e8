"""The stored networks of the decade: what each is, how well it does, and its signatures in every state."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from affscore.calls import Call, Excluded
from affscore.companions import MEASURES
from affscore.signatures import Signature
from affscore_book.kit.sequences import sequence
from affscore_book.kit.stored import read_results, stored_files

__all__ = [
    "END", "START", "CallClouds", "Course", "Decade", "Trained", "architectures", "course", "kin", "load_clouds",
    "load_decade", "load_further", "on_other_pictures",
]  # fmt: skip

#: States of a network: its start, whose batch norm, if it has one, was set by the training images; and its end.
START, END = "start", "trained"
NORMED = ", norm measured"
SCRIPT = "book/data/decade/make.py"


@dataclass(frozen=True)
class Trained:
    """One network of the decade, from one seed.

    Attributes
    ----------
    name, seed, year, parameters
        As in :data:`affscore_book.decade.networks.SETTINGS`; ``"resnet18 simclr"`` is a network taught without labels.
    steps
        Of the training.
    minutes
        Of one core, that it took.
    accuracy
        On the 10,000 test images, between 0 and 1, of the weights as they are stored.
    validation
        By state, the accuracy on 5,000 validation images.
    signatures
        By state and pool, on one batch of 512 validation images: ``signatures["trained", "spatial"]``. The state
        ``"start"`` is that with batch norm set; ``"raw start"`` is there where that makes a difference. Scores of a
        state along the training stand under ``"step 41"``.
    batches
        The trained signature (spatial) over eight batches.
    """

    name: str
    seed: int
    year: int
    parameters: int
    steps: int
    minutes: float
    accuracy: float
    validation: Mapping[str, float]
    signatures: Mapping[tuple[str, str], Signature]
    batches: Signature

    @property
    def end(self) -> Signature:
        """The trained signature by the spatial pool."""
        return self.signatures[END, "spatial"]

    @property
    def scores(self) -> np.ndarray:
        """Its scores without dead calls."""
        return sequence(self.end)


#: Networks by name and seed.
Decade = Mapping[str, Mapping[int, Trained]]


def _signature(content: Mapping[str, Any], state: str, pool: str, rows: str = "scores") -> Signature:
    calls, values = content["pools"][pool], content["states"][state][pool]

    def numbers(row: Any) -> np.ndarray:
        return np.array(row, dtype=np.float64)  # None becomes NaN

    scores = np.atleast_2d(numbers(values[rows]))
    return Signature(
        [Call(**call | {"shape": tuple(call["shape"])}) for call in calls["calls"]],
        scores,
        [Excluded(**each) for each in calls["excluded"]],
        pool=pool,
        batch_sizes=[512] * len(scores),
        provenance={"model": content["network"], "dataset": "fashion-mnist", "weights": state},
        companions={name: numbers(values[name])[None] for name in MEASURES if name in values and rows == "scores"},
    )


def _read(result: Path, signatures: Path) -> Trained:
    about = read_results(result, dict, SCRIPT)
    content = read_results(signatures, dict, SCRIPT)
    names = {state.removesuffix(NORMED): state for state in content["states"]}  # from ours to the file's
    if START + NORMED in content["states"]:
        names |= {START: START + NORMED, "raw start": START}
    found = {
        (name, pool): _signature(content, state, pool) for name, state in names.items() for pool in content["pools"]
    }
    return Trained(
        name=about["network"],
        **{key: about[key] for key in ("seed", "year", "parameters", "minutes")},
        steps=len(about["history"]) * math.ceil(about["images"] / about["recipe"]["batch_size"]),
        accuracy=about["accuracy_stored"],
        validation={name: content["validation"][state] for name, state in names.items()},
        signatures=found,
        batches=_signature(content, END, "spatial", "batches"),
    )


def load_decade(folder: str | os.PathLike[str]) -> dict[str, dict[int, Trained]]:
    """Every stored network by name and seed, names in the order of the years; ``folder`` is ``book/data/decade``.

    Raises FileNotFoundError if there is none, or the signatures of one are missing, ValueError if a file is damaged.
    """
    files = stored_files(folder, "results", "results", SCRIPT)
    networks = [_read(file, Path(folder) / "signatures" / file.name) for file in files]
    networks.sort(key=lambda network: (network.year, network.name, network.seed))
    found: dict[str, dict[int, Trained]] = {}
    for network in networks:
        found.setdefault(network.name, {})[network.seed] = network
    return found


class Course(NamedTuple):
    """A network along its training: steps (moments,), scores (moments, calls), accuracy on validation (moments,)."""

    steps: np.ndarray
    scores: np.ndarray
    accuracy: np.ndarray


def course(network: Trained) -> Course:
    """The moments of a training that were measured, batch norm set at each; the first is step 0.

    The trained network comes last, with the running statistics of its own training.
    """
    steps = {int(state.removeprefix("step ")): state for state in network.validation if state.startswith("step ")}
    states = [START, *(steps[step] for step in sorted(steps)), END]
    return Course(
        np.array([0, *sorted(steps), network.steps]),
        np.array([network.signatures[state, "spatial"].mean for state in states]),
        np.array([network.validation[state] for state in states]),
    )


class CallClouds(NamedTuple):
    """The clouds of one call along the training, as :func:`affscore_study.decade.maps.clouds_of_call` gives them.

    ``call`` is its place among the calls, from 0; ``moments`` are those of :func:`course`, each with ``"outputs"`` and
    ``"image"``, x, y, x, y, ... in thousandths of the spread of the outputs.
    """

    call: int
    moments: Sequence[Mapping[str, list[int]]]


def load_clouds(folder: str | os.PathLike[str]) -> dict[str, CallClouds]:
    """What ``make.py clouds`` stored, by network.

    Raises FileNotFoundError if there is nothing, ValueError if a file is damaged.
    """
    return {
        file.stem: read_results(file, lambda found: CallClouds(found["call"], found["moments"]), SCRIPT)
        for file in stored_files(folder, "clouds", "clouds", SCRIPT)
    }


def architectures(decade: Decade) -> dict[str, Mapping[int, Trained]]:
    """The decade's own: neither the twin without skips nor the networks taught without labels."""
    return {name: seeds for name, seeds in decade.items() if " " not in name and not name.endswith("no_skips")}


def kin(name: str) -> str:
    """The family of an architecture: those whose names begin alike, and GoogLeNet with Inception. There are eleven.

    >>> kin("vgg11_bn"), kin("resnet18 simclr"), kin("googlenet"), kin("inception_v3")
    ('vgg', 'resnet', 'inception', 'inception')
    """
    family = re.split("[^a-z]", name)[0]
    return "inception" if family == "googlenet" else family


#: Pictures of things, as those of the training are.
KNOWN = ("digits", "photographs")


def load_further(folder: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """What ``make.py further`` stored, by network: ``sizes`` (by batch size, ``mean`` and ``std`` of the scores, and
    ``unshrunk``, the mean without shrinkage) and ``pictures`` (by kind, scores (batches, calls)), as arrays; ``maps``
    of networks that have it (by module, the score by the positions along a side, ``"all"`` for the flattened map).

    Raises FileNotFoundError if there is nothing, ValueError if a file is damaged.
    """

    def build(content: Mapping[str, Any]) -> dict[str, Any]:
        sizes = {int(size): {key: np.array(values, dtype=np.float64) for key, values in both.items()}
                 for size, both in content["sizes"].items()}  # fmt: skip
        pictures = {kind: np.array(rows, dtype=np.float64) for kind, rows in content["pictures"].items()}
        return {"sizes": sizes, "pictures": pictures, "maps": content.get("maps", {})}

    files = stored_files(folder, "further", "further measures", SCRIPT)
    return {file.stem: read_results(file, build, SCRIPT) for file in files}


def on_other_pictures(further: Mapping[str, Mapping[str, Any]]) -> Callable[[Trained], list[np.ndarray]]:
    """For the ladder of differences: the signatures of a network on validation images, on digits and on photographs;
    none of a network that ``further`` does not have."""
    found = {
        name: [each["sizes"][512]["mean"], *(np.nanmean(each["pictures"][kind], axis=0) for kind in KNOWN)]
        for name, each in further.items()
    }
    return lambda network: found.get(network.name, [])
