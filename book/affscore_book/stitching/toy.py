"""Small networks for the moving picture of the chapter: two halves, a cut, and a stitch between them.

A network is a dictionary as JSON holds it: ``weights``, three matrices (8, 2), (8, 8) and (1, 8), and ``biases``, three
vectors. Two hidden layers with ReLU; with ``turn``, an orthogonal (8, 8), the features of both are turned behind it.
The stored ones are made by ``book/data/stitching/toy.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import polar

from affscore_book.kit.stored import read_results
from affscore_book.stitching.moments import Moments, assignment, least_squares

__all__ = ["PAIRS", "load_toys", "toy_features", "toy_outputs", "toy_stitch"]

Array = NDArray[np.float64]

#: The first and the second network of each pair, by the pair's name.
PAIRS = {
    "seed": ("a", "b"),
    "twin": ("a", "twin"),
    "turned": ("a", "turned"),
    "untrained_second": ("a", "untrained"),
    "untrained_first": ("untrained", "b"),
}


def toy_features(network: Mapping[str, Any], points: Array, cut: int) -> Array:
    """The features (n, 8) of points (n, 2) behind the hidden layer ``cut``, 1 or 2."""
    h = points
    for weight, bias in list(zip(network["weights"], network["biases"], strict=True))[:cut]:
        h = np.maximum(h @ np.asarray(weight).T + bias, 0)
        if "turn" in network:
            h = h @ np.asarray(network["turn"]).T
    return h


def toy_outputs(network: Mapping[str, Any], features: Array, cut: int) -> Array:
    """The outputs (n,) of a network that gets these features (n, 8) behind its hidden layer ``cut``; class 1 if > 0."""
    if cut == 1:
        rest = {"weights": network["weights"][1:], "biases": network["biases"][1:]}
        features = toy_features(rest | {k: network[k] for k in network if k == "turn"}, features, 1)
    return (features @ np.asarray(network["weights"][2]).T + network["biases"][2])[:, 0]


def toy_stitch(kind: str, x: Array, y: Array) -> Array:
    """The best stitch (8, 8) of a kind that takes features x (n, 8) towards y (n, 8), in closed form.

    ``"none"``, ``"permutation"``, ``"g_relu"``, ``"orthogonal"``, ``"rank r"`` or ``"full"``; the permutations have the
    largest sum of correlations, the others the smallest sum of squares.

    >>> x = np.random.default_rng(0).random((20, 8))
    >>> bool(np.allclose(toy_stitch("full", x, 2 * x), 2 * np.eye(8)))
    True
    """
    if kind == "none":
        return np.eye(x.shape[1])
    moments = Moments.of(*(torch.from_numpy(value)[:, :, None, None] for value in (x, y)))
    if kind in ("permutation", "g_relu"):
        order, scale = assignment(moments)
        matrix = np.eye(len(order))[order.numpy()]
        return matrix if kind == "permutation" else scale.numpy()[:, None] * matrix
    if kind == "orthogonal":
        return polar(moments.yx.numpy())[0]
    return least_squares(moments, None if kind == "full" else int(kind.removeprefix("rank "))).numpy()


def load_toys(path: str | Path) -> dict[str, Any]:
    """What ``book/data/stitching/toy.py`` stored, as the widget takes it: ``networks``, ``fit``, ``test``, ``learned``.

    ``fit`` and ``test`` are lists of points [x, y, class]; ``learned[pair][cut - 1]`` is a learned stitch.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not such a file.
    """
    keys = ("networks", "fit", "test", "learned")
    return read_results(path, lambda data: {key: data[key] for key in keys}, "book/data/stitching/toy.py")
