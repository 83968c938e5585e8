"""The stored comparisons of trained networks: Procrustes, CKA and dissection."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from affscore_book.kit.stored import read_results

__all__ = ["PAPER_TABLE_2", "SimilarityStudy", "load_similarity"]

#: Table 2 of the paper: similarities at the four activations of Myrtle CNNs on CIFAR-10.
PAPER_TABLE_2 = {
    "relu_uncentred": (0.6208, 0.5106, 0.4432, 0.4899),
    "orthogonal": (0.7724, 0.5743, 0.5087, 0.5825),
}


class SimilarityStudy:
    """What ``book/data/similarity/make.py`` stored."""

    def __init__(self, content: dict[str, Any]):
        for part in ("layers", "procrustes", "cka", "dissection"):
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
        pairs = next(iter(stored.values()))
        return np.array([[stored[layer][pair][measure] for layer in self.layers(kind)] for pair in pairs])

    def maps(self, kind: str, kernel: str, which: str = "map") -> np.ndarray:
        """CKA between all layers of two networks, or ``which="null"``, shape (pairs, layers, layers)."""
        return np.array([pair[which] for pair in self._content["cka"][kind][kernel].values()])

    def diagonal(self, kind: str, kernel: str) -> np.ndarray:
        """CKA of the same layer in two networks, shape (pairs, layers)."""
        return np.diagonal(self.maps(kind, kernel), axis1=1, axis2=2)

    def dissection(self, prefix: str, *, layer: str = "") -> dict[tuple[str, str], dict[str, Any]]:
        """Stored curves of the networks whose name is the prefix and a seed, of layers that contain ``layer``.

        Keys are (network, layer); values have ``fraction`` (draws, alphas), ``chance`` (1, 2) and ``units``.
        """
        return {
            (name, at): {**curve, "fraction": np.array(curve["fraction"]), "chance": np.array(curve["chance"])}
            for name, sets in self._content["dissection"].items()
            if name == prefix or (name.removeprefix(prefix).lstrip("_").isdigit() and name.startswith(prefix))
            for layers in sets.values()
            for at, curve in layers.items()
            if layer in at
        }

    def drop(self, prefix: str, *, layer: str = "") -> float:
        """Fraction of interpretable units in the basis of single units minus that at alpha = 1, mean over all."""
        curves = self.dissection(prefix, layer=layer).values()
        return float(np.mean([each["fraction"][:, 0] - each["fraction"][:, -1] for each in curves]))


def load_similarity(path: str | os.PathLike[str]) -> SimilarityStudy:
    """What ``book/data/similarity/make.py`` stored; raises as :func:`affscore_book.kit.stored.read_results`."""
    return read_results(path, SimilarityStudy, "book/data/similarity/make.py")
