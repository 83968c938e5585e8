"""The stored comparisons of trained networks: Procrustes, CKA and dissection."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np

from affscore_book.kit.statistics import Interval, over_pairs
from affscore_book.kit.stored import read_results

__all__ = ["PAPER_TABLE_2", "SimilarityStudy", "load_similarity"]

#: Table 2 of the paper: similarities at the four activations of Myrtle CNNs on CIFAR-10. Its code centres neither.
PAPER_TABLE_2 = {
    "relu_uncentred": (0.6208, 0.5106, 0.4432, 0.4899),
    "orthogonal_uncentred": (0.7724, 0.5743, 0.5087, 0.5825),
}


class SimilarityStudy:
    """What ``book/data/similarity/make.py`` stored."""

    def __init__(self, content: dict[str, Any]):
        for part in ("layers", "procrustes", "cka", "dissection", "dissection_pixels", "inside", "units"):
            content[part]  # a file without one of them is not of the script
        self.settings, self._content = content["settings"], content

    def __repr__(self) -> str:
        pairs = {kind: len(next(iter(layers.values()))) for kind, layers in self._content["procrustes"].items()}
        counts = ", ".join(f"{count} pairs of {kind}" for kind, count in pairs.items())
        return f"Study({counts}; dissected: {', '.join(self.dissected)})"

    @property
    def dissected(self) -> list[str]:
        """Names of the dissected networks."""
        return sorted(self._content["dissection"])

    def layers(self, kind: str) -> list[str]:
        """Names of the activations of a kind of network, in order."""
        return self._content["layers"][kind]

    def inside(self, kind: str) -> np.ndarray:
        """Which of them lie inside a residual block, bool (layers,)."""
        return np.array([name.endswith(".relu1") for name in self.layers(kind)])

    def procrustes(self, kind: str, measure: str) -> np.ndarray:
        """Similarity and mean of its null, shape (pairs, layers, 2)."""
        stored = self._content["procrustes"][kind]
        pairs = self._pairs(kind)
        return np.array([[stored[layer][pair][measure] for layer in self.layers(kind)] for pair in pairs])

    def maps(self, kind: str, kernel: str, which: str = "map") -> np.ndarray:
        """CKA between all layers of two networks, or ``which="null"``, shape (pairs, layers, layers)."""
        stored = self._content["cka"][kind][kernel]
        return np.array([stored[pair][which] for pair in self._pairs(kind)])

    def diagonal(self, kind: str, kernel: str) -> np.ndarray:
        """CKA of the same layer in two networks, shape (pairs, layers)."""
        return np.diagonal(self.maps(kind, kernel), axis1=1, axis2=2)

    def heights(self, kind: str, measure: str) -> np.ndarray:
        """Similarity above the mean of its null, shape (pairs, layers)."""
        value, null = np.moveaxis(self.procrustes(kind, measure), -1, 0)
        return value - null

    def networks(self, kind: str) -> int:
        """The number of networks of a kind, whose seeds are 0, 1, 2, ..."""
        return _networks(len(next(iter(self._content["procrustes"][kind].values()))))

    def pairs_of(self, kind: str, kept: np.ndarray) -> np.ndarray:
        """Which of the pairs, in the order of :meth:`maps`, are between networks of ``kept``, bool (pairs,)."""
        pairs = itertools.combinations(range(self.networks(kind)), 2)
        return np.array([set(pair) <= set(kept.tolist()) for pair in pairs])

    def _pairs(self, kind: str) -> list[str]:
        """The names of the pairs: 0-1, 0-2, ..., 1-2, ..."""
        return [f"{one}-{other}" for one, other in itertools.combinations(range(self.networks(kind)), 2)]

    def over_networks(self, values: Any) -> Interval:
        """Mean of one value for each pair (pairs,), in the order of :meth:`maps`, with an interval over networks.

        Pairs that share a network are not independent: see :func:`affscore_book.kit.statistics.over_pairs`.
        """
        networks = _networks(len(values))
        table = np.full((networks, networks), np.nan)
        for (first, second), value in zip(itertools.combinations(range(networks), 2), values, strict=True):
            table[first, second] = table[second, first] = value
        return over_pairs(table)

    def outside_minus_inside(self, kind: str, values: np.ndarray) -> np.ndarray:
        """Mean outside residual blocks minus mean inside, of values (pairs, layers), shape (pairs,)."""
        inside = self.inside(kind)
        return values[:, ~inside].mean(1) - values[:, inside].mean(1)

    def dissection(self, prefix: str, *, layer: str = "", top_of: str = "map") -> dict[tuple[str, str], dict[str, Any]]:
        """Stored curves of the networks whose name is the prefix and a seed, of layers that contain ``layer``.

        Keys are (network, layer); values have ``fraction`` (draws, alphas), ``chance`` (1, 2) and ``units``.
        ``top_of`` is that of :func:`affscore_book.similarity.dissection.dissect`.
        """
        stored = self._content["dissection" if top_of == "map" else "dissection_pixels"]
        return {
            (name, at): {**curve, "fraction": np.array(curve["fraction"]), "chance": np.array(curve["chance"])}
            for name, sets in stored.items()
            if _is_of(name, prefix)
            for layers in sets.values()
            for at, curve in layers.items()
            if layer in at
        }

    def curves(self, prefix: str, *, layer: str = "", top_of: str = "map") -> np.ndarray:
        """The fraction of interpretable units by alpha, means over layers and rotations, (networks, alphas).

        A network is one observation: its layers and rotations are averaged first.
        """
        found = self.dissection(prefix, layer=layer, top_of=top_of)
        networks = dict.fromkeys(name for name, _ in found)
        return np.array([
            np.mean([curve["fraction"].mean(0) for (name, _), curve in found.items() if name == network], axis=0)
            for network in networks
        ])  # fmt: skip

    def chance(self, *prefixes: str, top_of: str = "map") -> float:
        """The mean fraction of interpretable units for the masks of other images, over networks and layers."""
        found = [curve["chance"].mean() for prefix in prefixes
                 for curve in self.dissection(prefix, top_of=top_of).values()]  # fmt: skip
        return float(np.mean(found))

    def drops(self, prefix: str, *, layer: str = "", top_of: str = "map") -> np.ndarray:
        """:meth:`curves` in the basis of single units minus at alpha = 1, (networks,)."""
        curves = self.curves(prefix, layer=layer, top_of=top_of)
        return curves[:, 0] - curves[:, -1]

    def inside_rises(self, prefix: str, *, top_of: str = "map") -> np.ndarray:
        """The first convolution of a block: interpretable fraction at alpha = 1 minus at 0, as :meth:`drops`."""
        stored = [layers for name, layers in self._content["inside"][top_of].items() if _is_of(name, prefix)]
        ends = np.array([[np.mean(fraction, axis=0) for fraction in layers.values()] for layers in stored])
        return (ends[:, :, 1] - ends[:, :, 0]).mean(1)

    def categories(self, prefix: str, *, top_of: str = "map") -> dict[str, np.ndarray]:
        """Interpretable units by the category of their best concept, as shares of all, at alpha = 0, 1/2 and 1.

        Category -> (networks, alphas), means over layers; one rotation.
        """
        stored = [layers for name, layers in self._content["units"][top_of].items() if _is_of(name, prefix)]
        names = dict.fromkeys(
            name for layers in stored for steps in layers.values() for step in steps for name in step["shares"]
        )
        return {
            name: np.array([
                np.mean([[step["shares"].get(name, 0.0) for step in steps] for steps in layers.values()], axis=0)
                for layers in stored
            ])
            for name in names
        }  # fmt: skip

    def best_units(self, name: str, layer: str, *, top_of: str = "map") -> list[list[tuple[int, str, float]]]:
        """The two best units of a layer of one network at alpha = 0, 1/2 and 1: number, concept and IoU of each."""
        return [[tuple(unit) for unit in step["best"]] for step in self._content["units"][top_of][name][layer]]


def _networks(pairs: int) -> int:
    """The number of networks that have so many pairs."""
    return round((1 + math.sqrt(1 + 8 * pairs)) / 2)


def _is_of(name: str, prefix: str) -> bool:
    """Whether a network's name is the prefix, or the prefix and a seed."""
    return name == prefix or (name.startswith(prefix) and name.removeprefix(prefix).lstrip("_").isdigit())


def load_similarity(path: str | os.PathLike[str]) -> SimilarityStudy:
    """What ``book/data/similarity/make.py`` stored; raises as :func:`affscore_book.kit.stored.read_results`."""
    return read_results(path, SimilarityStudy, "book/data/similarity/make.py")
