"""The stored sanity test of section 3.3 on trained networks: what rotating the channels of a layer costs (Figure 4).

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, section 3.3.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from affscore.arguments import check_choice
from affscore_book.kit.stored import read_results

__all__ = ["Rotations", "load_rotations"]

STAGES = ("before", "least_squares", "after")


@dataclass(frozen=True)
class Rotations:
    """The stored sanity test of section 3.3 on trained networks.

    Attributes
    ----------
    settings
        Options of the script.
    networks
        Test accuracy of each network.
    runs
        One dict a run: ``network``, ``layer``, ``kind`` ("identity", "group" or "rotation"), ``draw``, and test
        accuracies ``before`` (right after A), ``least_squares`` and ``after`` (the later layers trained on).
    """

    settings: dict[str, Any]
    networks: dict[str, dict[str, float]]
    runs: list[dict[str, Any]]

    @property
    def layers(self) -> list[str]:
        """The layers, from the input on."""
        return list(dict.fromkeys(run["layer"] for run in self.runs))

    def penalties(self, layer: str, kind: str, stage: str, networks: Collection[str] | None = None) -> np.ndarray:
        """Accuracy points lost, float64 (networks, draws); ``networks`` takes some of them only.

        A draw is a random matrix of the kind; the draws are those that every network has. ``stage`` is ``"before"``,
        ``"least_squares"`` or ``"after"``. After training the loss is counted from the accuracy of the same training
        with A = I, else from that of the network.

        Raises
        ------
        ValueError
            If there is no such run, or no such stage.
        """
        check_choice("stage", stage, STAGES)
        trained = {run["network"]: run["after"] for run in self._some(layer, "identity")}
        plain = {name: about["accuracy"] for name, about in self.networks.items()}
        start = trained if stage == "after" else plain
        names = [name for name in self.networks if networks is None or name in networks]
        found = {(run["network"], run["draw"]): run[stage] for run in self._some(layer, kind)}
        draws = sorted(draw for draw in {draw for _, draw in found} if all((name, draw) in found for name in names))
        return np.array([[100 * (start[name] - found[name, draw]) for draw in draws] for name in names])

    @property
    def without_norm(self) -> list[str]:
        """The networks that were trained without batch norm, as in the paper; the others' was folded afterwards."""
        return [name for name in self.networks if "without_norm" in name]

    @property
    def folded(self) -> list[str]:
        """The networks whose batch norm was folded into the convolutions after training."""
        return [name for name in self.networks if name not in self.without_norm]

    def excess(self, stage: str, networks: Collection[str] | None = None) -> np.ndarray:
        """What rotations cost more than elements of G_ReLU, in points: means over draws, (layers, networks).

        Arguments and errors are those of :meth:`penalties`.
        """
        rotation, group = (
            np.array([self.penalties(layer, kind, stage, networks).mean(1) for layer in self.layers])
            for kind in ("rotation", "group")
        )
        return rotation - group

    def _some(self, layer: str, kind: str) -> list[dict[str, Any]]:
        found = [run for run in self.runs if run["layer"] == layer and run["kind"] == kind]
        if not found:
            raise ValueError(f"there is no run with layer {layer!r} and kind {kind!r}.")
        return found

    def __repr__(self) -> str:
        return f"Rotations({len(self.networks)} networks, {len(self.layers)} layers, {len(self.runs)} runs)"


def load_rotations(path: str | os.PathLike[str]) -> Rotations:
    """What ``book/data/symmetries/make.py`` stored; raises as :func:`affscore_book.kit.stored.read_results`."""
    return read_results(path, _rotations, "book/data/symmetries/make.py")


def _rotations(content: dict[str, Any]) -> Rotations:
    runs = []
    for key, numbers in content["runs"].items():
        network, layer, kind, draw = key.split()
        if not all(0 <= numbers[stage] <= 1 for stage in STAGES):
            raise ValueError(f"an accuracy of {key} is not between 0 and 1")
        runs.append({"network": network, "layer": layer, "kind": kind, "draw": int(draw)} | numbers)
    return Rotations(content["settings"], content["networks"], runs)
