"""DTW distances between signatures, and the tree of networks that follows from them.

Distances are a :class:`affscore_book.kit.tables.Table` with one row and one column for each network, which the other
functions take. :mod:`affscore_study.suite.figures` draws each.

Reference: Bouniot et al., CVPR 2025, section 4 (Figure 5 B), Appendix E (Figure 16) and Appendix F (Figure 18).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from affscore_book.kit.sequences import dtw, sequence
from affscore_book.kit.tables import Table
from affscore_study.suite.comparable import Floats, Signatures, collect, weights_kind

__all__ = ["deviations", "distances", "matrix", "tree"]


def distances(signatures: Signatures) -> Table:
    """DTW distances between all pairs of at least two signatures (Figure 5 B, Figure 16); see :func:`dtw`.

    Columns: model; weights (:func:`weights_kind`); and the distances to each network, as ``to NAME``. Raises
    ValueError if there are fewer than two, their settings differ, or one has no live call.
    """
    signatures = collect(signatures, least=2)
    values = [sequence(signature) for signature in signatures.values()]
    square = squareform([dtw(a, b) for a, b in itertools.combinations(values, 2)])
    columns: dict[str, Any] = {"model": list(signatures), "weights": [weights_kind(s) for s in signatures.values()]}
    return Table(columns | {f"to {name}": row for name, row in zip(signatures, square.tolist(), strict=True)})


def matrix(distances: Table) -> Floats:
    """The distances as a symmetric float64 array of shape (networks, networks), zero on the diagonal."""
    return np.column_stack([distances[f"to {name}"] for name in distances["model"]])


def tree(distances: Table) -> Floats:
    """SciPy's linkage matrix of the networks, shape (networks - 1, 4), by average linkage (Figure 16).

    The paper does not name its linkage. Ward's and the centroid linkages need Euclidean distances, which DTW's are
    not. The leaves are in the order that puts similar networks next to each other.
    """
    return linkage(squareform(matrix(distances), checks=False), method="average", optimal_ordering=True)


def deviations(runs: Mapping[str, Signatures]) -> Table:
    """The DTW distance of each network's signature to that of a reference run, for each other run (Figure 18).

    ``runs`` maps a label, such as the name of a data set, to the signatures taken with it; a model has the same name in
    each. The first run is the reference; the paper's is ImageNet. Pool, covariance, batch size and calls must agree
    between runs; data and weights may differ.

    There is one row for each network of the reference (model, weights in the reference, and for each other run a column
    ``on LABEL``, NaN if that run lacks the network). Two rows with the mean and the standard deviation over the
    networks follow. Raises ValueError if there are fewer than two runs or the settings differ.
    """
    collected = {label: collect(signatures) for label, signatures in runs.items()}
    if len(collected) < 2:
        raise ValueError(f"runs holds {len(collected)}; it should hold at least 2, one of them the reference.")
    together = {f"{label}: {name}": s for label, run in collected.items() for name, s in run.items()}
    collect(together, without="data")
    reference, *others = collected
    base = {name: sequence(signature) for name, signature in collected[reference].items()}
    kinds = [weights_kind(signature) for signature in collected[reference].values()]
    columns: dict[str, list[Any]] = {"model": [*base, "mean", "std"], "weights": [*kinds, "", ""]}
    for label in others:
        run = collected[label]
        moved = [dtw(s, sequence(run[name])) if name in run else math.nan for name, s in base.items()]
        defined = [value for value in moved if not math.isnan(value)] or [math.nan]
        columns[f"on {label}"] = [*moved, float(np.mean(defined)), float(np.std(defined))]
    return Table(columns, notes=[f"DTW distance to {reference}."])
