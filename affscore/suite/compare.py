"""Comparing networks by their signatures: distances, clusters, maps, densities, history and correlations.

Every function takes signatures, as a mapping from a name to a :class:`affscore.Signature` or as a folder of their
JSON files, and returns a small table or an object that prints as one; :mod:`affscore.suite.figures` draws each.
The chapter ``imagenet_signatures`` uses them, and so does :mod:`affscore.suite.report`.

Scores are averaged over batches first. A call whose output never varied (a dead call) has no score: it is left out
of every statistic and counted in the column ``dead``. ``gates=False`` leaves the sigmoid gates out as well; the
paper counts them, and so does the default.

Reference: Bouniot et al., CVPR 2025, section 4 (Figures 5 to 7), Appendix C (Figure 10), Appendix E (Table 2,
Figure 16) and Appendix F (Figure 18). Random weights are never passed off as trained ones: :func:`weights_kind` tells
them apart, every table has a column for it, and the figures mark it.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.signal import find_peaks
from scipy.spatial.distance import squareform
from scipy.stats import gaussian_kde

from affscore.signature import Signature
from affscore.suite.architectures import FAMILIES, GROUPS, Facts, Family, facts, model_name, short_names, weights_kind
from affscore.suite.tables import Table
from affscore.zoo.models import require

__all__ = [
    "FAMILIES",
    "GROUPS",
    "Arrangement",
    "Clustering",
    "Densities",
    "Distances",
    "Facts",
    "Family",
    "Table",
    "accuracy_correlations",
    "batch_size_table",
    "cluster",
    "companion_correlations",
    "densities",
    "deviations",
    "distances",
    "dtw",
    "facts",
    "history",
    "load_signatures",
    "mds_map",
    "sequence",
    "settings",
    "short_names",
    "statistics",
    "weights_kind",
]

Signatures = Mapping[str, Signature] | str | os.PathLike[str]
Floats = NDArray[np.float64]


# -------------------------------------------------------------------------------------------------- signatures


def settings(signature: Signature) -> dict[str, Any]:
    """What must be equal for two scores to be comparable: pool, covariance, data and batch size (None if unknown)."""
    data = signature.provenance.get("data", signature.provenance.get("dataset"))
    if isinstance(data, Mapping):
        data = data.get("dataset")
    return {
        "pool": signature.pool,
        "covariance": signature.covariance,
        "data": None if data is None else str(data),
        "batch size": max(signature.batch_sizes, default=None),
    }


def _check_settings(signatures: Mapping[str, Signature], without: Sequence[str] = ()) -> None:
    """Raise ValueError if the signatures differ in a setting other than those in ``without``."""
    for key in ("pool", "covariance", "data", "batch size"):
        found: dict[Any, list[str]] = {}
        for name, signature in signatures.items():
            found.setdefault(settings(signature)[key], []).append(name)
        if len(found) > 1 and key not in without:
            listed = "; ".join(
                f"{'not recorded' if value is None else repr(value)} ({len(names)}, such as {names[0]})"
                for value, names in found.items()
            )
            raise ValueError(
                f"signatures differ in their {key}: {listed}. Their scores are not comparable; pick those of one "
                f"{key}, or pass mixed=True if you mean it."
            )


def load_signatures(
    folder: str | os.PathLike[str], unreadable: list[dict[str, str]] | None = None
) -> dict[str, Signature]:
    """The signatures in a folder, one JSON file each, in the order of their files' names.

    They are named after their model where it is the only one, otherwise by :func:`short_names`.

    Parameters
    ----------
    folder
        A folder with files as :meth:`affscore.Signature.save` writes them.
    unreadable
        A list that receives one ``{"file": ..., "reason": ...}`` for each file that is not a signature. By default
        such a file is an error.

    Raises
    ------
    ValueError
        If there is no signature in the folder, or a file is not one.
    FileNotFoundError
        If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"folder: there is no folder {folder}.")
    found: dict[str, Signature] = {}
    paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    for path in paths:
        try:
            found[path.stem] = Signature.load(path)
        except (ValueError, OSError) as error:
            if unreadable is None:
                raise
            unreadable.append({"file": path.name, "reason": str(error)})
    if not found:
        raise ValueError(f"folder: {folder} holds no signature ({len(paths)} JSON files, none of which is one).")
    return short_names(found)


def _collect(signatures: Signatures, mixed: bool, least: int = 1, without: Sequence[str] = ()) -> dict[str, Signature]:
    """The mapping that the functions work on, checked."""
    if isinstance(signatures, str | os.PathLike):
        signatures = load_signatures(signatures)
    if not isinstance(signatures, Mapping):
        raise TypeError(
            f"signatures is a {type(signatures).__name__}; it should be a mapping from names to signatures or a folder."
        )
    for name, signature in signatures.items():
        if not isinstance(signature, Signature):
            raise TypeError(f"signatures[{name!r}] is a {type(signature).__name__}; it should be a Signature.")
    if len(signatures) < least:
        raise ValueError(f"signatures holds {len(signatures)}; it should hold at least {least}.")
    if not mixed:
        _check_settings(signatures, without)
    return dict(signatures)


def _kept(signature: Signature, gates: bool) -> NDArray[np.bool_]:
    """Which calls count: all, or all but the gates."""
    return np.array([gates or not call.gate for call in signature.calls], dtype=bool)


def sequence(signature: Signature, *, gates: bool = True) -> Floats:
    """The scores of a signature in execution order, averaged over batches, without dead calls; shape (calls,).

    Raises
    ------
    ValueError
        If no call is left.
    """
    mean = signature.mean[_kept(signature, gates)]
    alive = mean[~np.isnan(mean)]
    if not len(alive):
        what = "has no activation call" if not len(mean) else f"has {len(mean)} activation calls, all dead"
        raise ValueError(f"the signature of {model_name(signature)} {what}; there is nothing to compare.")
    return alive


# ---------------------------------------------------------------------------------------------- DTW distances

COSTS = ("squared", "absolute")


def dtw(a: ArrayLike, b: ArrayLike, *, cost: str = "squared", normalise: bool = False) -> float:
    """Dynamic time warping distance of two sequences of scores (Sakoe and Chiba, 1978).

    A warping path aligns the sequences from their first to their last elements; a step advances in one or in both by
    one. The distance is the least total cost of a path.

    Parameters
    ----------
    a, b
        Sequences of shapes (n,) and (m,), of finite numbers.
    cost
        ``"squared"``: the square root of the summed squared differences. ``"absolute"``: the sum of the absolute
        differences.
    normalise
        Divide the total cost by max(n, m), the least possible number of steps, before the square root is taken. The
        distance is then a typical difference of scores and does not grow with depth.

    Notes
    -----
    All steps have weight 1 and there is no window. The paper names neither cost nor weights nor a normalisation. Its
    code pins tslearn, whose DTW is ours with ``cost="squared"`` and no normalisation; the size of the paper's
    deviations between data sets (.26 for whole networks) fits that, and would be far too large for normalised ones.

    The distance is symmetric and not negative. Repeating an element costs nothing, so it can be 0 for different
    sequences, and the triangle inequality does not hold.

    Computed by dtaidistance.

    Examples
    --------
    >>> dtw([0.2, 0.8], [0.2, 0.2, 0.8])
    0.0
    >>> round(dtw([0.5, 0.5, 0.5, 0.5], [0.7]), 6), round(dtw([0.5, 0.5, 0.5, 0.5], [0.7], normalise=True), 6)
    (0.4, 0.2)
    """
    if cost not in COSTS:
        raise ValueError(f"cost is {cost!r}; it should be one of {', '.join(map(repr, COSTS))}.")
    pair = []
    for name, values in (("a", a), ("b", b)):
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise ValueError(
                f"{name} has shape {array.shape} and {int((~np.isfinite(array)).sum())} values that are not finite; it "
                "should be a sequence of at least one finite number."
            )
        pair.append(array)
    library = require("dtaidistance.dtw")
    squared = cost == "squared"
    total = float(
        library.distance(
            *pair,
            inner_dist="squared euclidean" if squared else "euclidean",
            use_c=library.dtw_cc is not None,
        )
    )
    if normalise:
        longest = max(map(len, pair))
        total /= math.sqrt(longest) if squared else longest
    return total


@dataclass(eq=False)
class Distances:
    """Pairwise distances.

    Attributes
    ----------
    names
        The networks.
    matrix
        float64, shape (networks, networks), symmetric, zero on the diagonal.
    kinds
        :func:`weights_kind` of each.
    how
        The distance in words.
    models
        The model of each, by which :func:`facts` knows it; the names by default.
    """

    names: list[str]
    matrix: Floats
    kinds: list[str] = field(default_factory=list)
    how: str = "DTW distance"
    models: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds = self.kinds or ["unknown"] * len(self.names)
        self.models = self.models or list(self.names)

    def table(self, digits: int = 2) -> Table:
        """The matrix as a table."""
        columns: dict[str, Any] = {"model": self.names, "weights": self.kinds}
        return Table(columns | dict(zip(self.names, self.matrix.T.tolist(), strict=True)), digits=digits)

    def __repr__(self) -> str:
        upper = self.matrix[np.triu_indices(len(self.names), 1)]
        i, j = divmod(int(np.argmax(self.matrix)), len(self.names))
        return (
            f"{self.how} of {len(self.names)} networks, {upper.min():.2f} to {upper.max():.2f} "
            f"(median {np.median(upper):.2f}); farthest apart: {self.names[i]} and {self.names[j]}"
        )


def distances(
    signatures: Signatures,
    *,
    gates: bool = True,
    cost: str = "squared",
    normalise: bool = False,
    mixed: bool = False,
) -> Distances:
    """DTW distances between all pairs of signatures (Figure 5 B, Figure 16); see :func:`dtw`.

    Parameters
    ----------
    signatures
        At least two.
    gates
        Whether sigmoid gates count.
    cost, normalise
        See :func:`dtw`.
    mixed
        Accept signatures of different pools, covariances, data or batch sizes.

    Raises
    ------
    ValueError
        If there are fewer than two, their settings differ, or one has no live call.
    """
    signatures = _collect(signatures, mixed, least=2)
    values = {name: sequence(signature, gates=gates) for name, signature in signatures.items()}
    names = list(values)
    matrix = np.zeros((len(names), len(names)))
    for i, one in enumerate(names):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = dtw(values[one], values[names[j]], cost=cost, normalise=normalise)
    how = f"DTW distance ({cost} cost{', normalised' * normalise}{', without gates' * (not gates)})"
    kinds, models = map(
        list, zip(*((weights_kind(each), model_name(each)) for each in signatures.values()), strict=True)
    )
    return Distances(names, matrix, kinds, how, models)


# --------------------------------------------------------------------------------------------------- clusters


@dataclass(eq=False)
class Clustering:
    """A hierarchical clustering.

    Attributes
    ----------
    names, kinds
        The networks and the kinds of their weights, in the order of the distances.
    tree
        SciPy's linkage matrix, shape (networks - 1, 4).
    method
        The linkage.
    how
        The distance in words.
    """

    names: list[str]
    kinds: list[str]
    tree: Floats
    method: str
    how: str

    @property
    def order(self) -> list[str]:
        """The names in the order of the dendrogram's leaves: similar networks stand together."""
        return [self.names[i] for i in leaves_list(self.tree)]

    def groups(self, count: int) -> dict[str, int]:
        """Cut the tree into at most ``count`` clusters, numbered from 1 in the order of the leaves."""
        if not 1 <= count <= len(self.names):
            raise ValueError(f"count is {count}; it should be between 1 and {len(self.names)}, the number of networks.")
        labels = dict(zip(self.names, fcluster(self.tree, count, criterion="maxclust").tolist(), strict=True))
        numbers = {label: i for i, label in enumerate(dict.fromkeys(labels[name] for name in self.order), start=1)}
        return {name: numbers[labels[name]] for name in self.order}

    def table(self, count: int = 4) -> Table:
        """The clusters as a table, a row each."""
        members: dict[int, list[str]] = {}
        for name, label in self.groups(count).items():
            members.setdefault(label, []).append(name)
        return Table(
            {
                "cluster": list(members),
                "size": list(map(len, members.values())),
                "networks": list(map(", ".join, members.values())),
            }
        )

    def __repr__(self) -> str:
        return f"{self.method} linkage of {len(self.names)} networks by {self.how}"


def cluster(distances: Distances, method: str = "average") -> Clustering:
    """Hierarchical clustering of the distances (Figure 16), by SciPy.

    Parameters
    ----------
    distances
        From :func:`distances`.
    method
        ``"average"``, ``"single"``, ``"complete"`` or ``"weighted"``. Ward's and the centroid linkages need
        Euclidean distances, which DTW's are not. The paper does not name its linkage.
    """
    methods = ("average", "single", "complete", "weighted")
    if method not in methods:
        raise ValueError(f"method is {method!r}; it should be one of {', '.join(map(repr, methods))}.")
    tree = linkage(squareform(distances.matrix, checks=False), method=method, optimal_ordering=True)
    return Clustering(list(distances.names), list(distances.kinds), tree, method, distances.how)


# -------------------------------------------------------------------------------------------------------- map


@dataclass(eq=False)
class Arrangement:
    """Networks in the plane, placed so that distances on the map come close to the given ones.

    Attributes
    ----------
    names, kinds
        The networks and the kinds of their weights.
    points
        float64, shape (networks, 2), centred, in the units of the distances.
    stress
        Kruskal's stress-1: sqrt(sum (on the map - given)^2 / sum given^2). 0 is a perfect map; above about .2 do
        not trust it.
    how
        The distance in words.
    models
        The model of each.
    """

    names: list[str]
    kinds: list[str]
    points: Floats
    stress: float
    how: str
    models: list[str]

    def table(self) -> Table:
        """Names and places."""
        return Table(
            {
                "model": self.names,
                "weights": self.kinds,
                "x": self.points[:, 0].tolist(),
                "y": self.points[:, 1].tolist(),
            },
            notes=[f"Stress {self.stress:.2f}."],
        )

    def __repr__(self) -> str:
        return f"Map of {len(self.names)} networks by {self.how}, stress {self.stress:.2f}"


def mds_map(distances: Distances) -> Arrangement:
    """Metric multi-dimensional scaling of the distances to the plane (Figure 16), by scikit-learn's SMACOF.

    It starts from classical scaling instead of at random, so there is no seed: the map is the same on every run. Its
    axes are principal axes, the longer first, each turned so that the network farthest out lies on the positive
    side; they have no other meaning. (The paper scales "the linkage matrix"; we scale the distances.)

    >>> line = Distances(["a", "b", "c"], np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0])))
    >>> mds_map(line).stress < 1e-6
    True
    """
    delta = np.asarray(distances.matrix, dtype=np.float64)
    n = len(delta)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centring @ delta**2 @ centring / 2)
    start = np.zeros((n, 2))
    start[:, : min(2, n)] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :2]
    scale = delta.max()
    points = start
    if scale > 0 and n > 1:
        smacof = require("sklearn.manifold").smacof
        points, _ = smacof(
            delta / scale,
            init=start / scale,
            n_init=1,
            max_iter=3000,
            eps=1e-12,
            random_state=0,
            normalized_stress=False,
        )
        points = points * scale
    points = points - points.mean(axis=0)
    points = points @ np.linalg.svd(points)[2].T
    farthest = points[np.abs(points).argmax(axis=0), np.arange(2)]
    points = points * np.where(farthest < 0, -1.0, 1.0)
    on_map = np.linalg.norm(points[:, None] - points, axis=-1)
    stress = float(np.sqrt(((on_map - delta) ** 2).sum() / (delta**2).sum())) if scale > 0 else 0.0
    return Arrangement(
        list(distances.names), list(distances.kinds), points, stress, distances.how, list(distances.models)
    )


# -------------------------------------------------------------------------------------- statistics and history

STATISTICS = ("mean", "median", "min", "max", "spread", "std", "last")


def _statistics(values: Floats) -> dict[str, Any]:
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "min": float(values.min()),
        "max": float(values.max()),
        "spread": float(np.ptp(values)),
        "std": float(values.std()),
        "last": float(values[-1]),
    }


def statistics(signatures: Signatures, *, gates: bool = True, mixed: bool = False) -> Table:
    """Statistics of the scores of each network over its calls.

    Columns: model; weights (:func:`weights_kind`); calls; dead; mean; median; min; max; spread = max - min; std over
    the calls; last, the score of the last live call; batch_std, the standard deviation over batches averaged over
    the calls (the titles of Figure 12), NaN for a single batch.
    """
    signatures = _collect(signatures, mixed)
    rows = []
    for name, signature in signatures.items():
        kept = _kept(signature, gates)
        std = signature.std[kept]
        spread_over_batches = float(np.nanmean(std)) if len(signature.scores) > 1 else math.nan
        dead = int(np.isnan(signature.mean[kept]).sum())
        row: dict[str, Any] = {
            "model": name,
            "weights": weights_kind(signature),
            "calls": int(kept.sum()),
            "dead": dead,
        }
        rows.append(row | _statistics(sequence(signature, gates=gates)) | {"batch_std": spread_over_batches})
    return _from_rows(rows, digits=3)


def _from_rows(rows: Sequence[Mapping[str, Any]], **options: Any) -> Table:
    return Table({name: [row[name] for row in rows] for name in rows[0]}, **options)


def history(signatures: Signatures, *, gates: bool = True, mixed: bool = False) -> Table:
    """Smallest, median and largest score of each network, by year (Figure 5 A).

    Columns: model, weights, family, group, year, accuracy (ImageNet-1k top-1 in percent, of the published weights),
    min, median, max. Sorted by year, then family, then number of parameters. Networks that are not in
    :data:`FAMILIES` have no year and come last.
    """
    signatures = _collect(signatures, mixed)
    about = {name: facts(signature) for name, signature in signatures.items()}
    place = {family: i for i, family in enumerate(FAMILIES)}

    def key(name: str) -> tuple[float, int, float]:
        known = about[name]
        return known.year or math.inf, place.get(known.family, len(place)), known.parameters or 0

    rows = []
    for name in sorted(signatures, key=key):
        values, known = _statistics(sequence(signatures[name], gates=gates)), about[name]
        row: dict[str, Any] = {"model": name, "weights": weights_kind(signatures[name])}
        row |= {"family": known.family, "group": known.group}
        row |= {"year": known.year, "accuracy": known.accuracy}
        rows.append(row | {key: values[key] for key in ("min", "median", "max")})
    return _from_rows(rows)


# -------------------------------------------------------------------------------------------------- densities


@dataclass(eq=False)
class Densities:
    """Kernel density estimates of the scores.

    Attributes
    ----------
    names, kinds
        The networks and the kinds of their weights.
    grid
        float64, shape (points,): where the densities are evaluated.
    values
        float64, shape (networks, points); a row of NaN for a network without two different scores.
    bandwidths
        Standard deviation of each network's kernel; NaN in the same case.
    calls
        Number of scores behind each.
    """

    names: list[str]
    kinds: list[str]
    grid: Floats
    values: Floats
    bandwidths: list[float]
    calls: list[int]

    def peaks(self, name: str, height: float = 0.1) -> list[float]:
        """Where a density has maxima that are at least ``height`` times its highest one."""
        curve = self.values[self.names.index(name)]
        if np.isnan(curve).any():
            return []
        return [float(self.grid[i]) for i in find_peaks(curve, height=height * curve.max())[0]]

    def table(self) -> Table:
        """The number of calls, the bandwidth and the peaks of each network."""
        peaks = [self.peaks(name) for name in self.names]
        return Table(
            {
                "model": self.names,
                "weights": self.kinds,
                "calls": self.calls,
                "bandwidth": self.bandwidths,
                "peaks": [len(places) or None for places in peaks],
                "at": [", ".join(f"{place:.2f}" for place in places) or "-" for places in peaks],
            },
            notes=["Peaks count if they reach a tenth of the highest."],
        )

    def __repr__(self) -> str:
        return repr(self.table())


def densities(
    signatures: Signatures,
    *,
    points: int = 400,
    bandwidth: float | None = None,
    gates: bool = True,
    mixed: bool = False,
) -> Densities:
    """Kernel density estimates of each network's scores (Figure 5 C), by SciPy.

    Parameters
    ----------
    points
        Number of points of the grid, which reaches past the smallest and largest score of all.
    bandwidth
        Factor of the sample's standard deviation; Scott's rule n^(-1/5) by default. The paper does not give its own.

    Notes
    -----
    A score is at most 1, and the Gaussian kernel knows nothing of it: some mass lies beyond 1.
    """
    signatures = _collect(signatures, mixed)
    samples = {name: sequence(signature, gates=gates) for name, signature in signatures.items()}
    kernels = {
        name: gaussian_kde(values, bw_method=bandwidth) if len(np.unique(values)) > 1 else None
        for name, values in samples.items()
    }
    widths = [math.sqrt(kernel.covariance[0, 0]) if kernel else math.nan for kernel in kernels.values()]
    reach = 3 * max((width for width in widths if not math.isnan(width)), default=0.1)
    low, high = min(map(np.min, samples.values())), max(map(np.max, samples.values()))
    grid = np.linspace(low - reach, high + reach, points)
    values = np.array([kernel(grid) if kernel else np.full(points, math.nan) for kernel in kernels.values()])
    kinds = [weights_kind(signature) for signature in signatures.values()]
    return Densities(list(samples), kinds, grid, values, widths, list(map(len, samples.values())))


# ----------------------------------------------------------------------------------------------- correlations


def _pearson(x: Floats, y: Floats) -> tuple[float, int]:
    """Pearson's correlation where both are numbers, and their number; NaN for fewer than 3 or a constant side."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    n = len(x)
    if n < 3 or np.ptp(x) <= 1e-12 * np.abs(x).max() or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return math.nan, n
    return float(np.corrcoef(x, y)[0, 1]), n


#: Columns of Table 2 in the paper's order, and how each follows from the stored companions.
COMPANIONS = {
    "CKA": ("cka",),
    "norm": ("norm",),
    "sparsity": ("sparsity_after", "sparsity_before"),
    "entropy": ("entropy_change",),
    "R2": ("r2",),
    "R2 held out": ("r2_held_out",),
}


def _companion(signature: Signature, names: tuple[str, ...]) -> Floats | None:
    """A companion averaged over batches (the first less the second of two names), shape (calls,), or None."""
    if any(name not in signature.companions for name in names):
        return None
    parts = []
    for name in names:
        values = signature.companions[name]
        counted = np.isfinite(values).sum(axis=0)
        total = np.where(np.isfinite(values), values, 0.0).sum(axis=0)
        parts.append(np.where(counted > 0, total / np.maximum(counted, 1), math.nan))
    return parts[0] if len(parts) == 1 else parts[0] - parts[1]


def companion_correlations(signatures: Signatures, *, gates: bool = True, mixed: bool = False) -> Table:
    """Pearson correlations of the score with other measures over the calls of each network (Tables 1 and 2).

    Scores and measures are averaged over batches first. ``sparsity`` and ``entropy`` are changes, after less before
    the activation. A correlation is NaN where one side is constant or there are fewer than 3 calls. The last two
    rows give mean and standard deviation over the networks (those with a number), as the paper's last row does; the
    column ``calls`` is the number of calls with a score.

    Raises
    ------
    ValueError
        If no signature was taken with ``companions=True``.
    """
    signatures = _collect(signatures, mixed)
    have = [
        column
        for column, names in COMPANIONS.items()
        if any(_companion(s, names) is not None for s in signatures.values())
    ]
    if not have:
        raise ValueError("signatures hold no companion measures; take them with signature(..., companions=True).")
    rows, without = [], []
    for name, signature in signatures.items():
        kept = _kept(signature, gates)
        score = signature.mean[kept]
        row: dict[str, Any] = {
            "model": name,
            "weights": weights_kind(signature),
            "calls": int(np.isfinite(score).sum()),
        }
        measured = {column: _companion(signature, COMPANIONS[column]) for column in have}
        if all(values is None for values in measured.values()):
            without.append(name)
            continue
        for column, values in measured.items():
            row[column] = math.nan if values is None else _pearson(score, values[kept])[0]
        rows.append(row)
    defined = {column: [row[column] for row in rows if not math.isnan(row[column])] for column in have}
    summaries: list[dict[str, Any]] = [
        {"model": label, "weights": f"over {len(rows)}", "calls": None}
        | {column: float(over(values)) if values else math.nan for column, values in defined.items()}
        for label, over in (("mean", np.mean), ("std", np.std))
    ]
    rows += summaries
    notes = [f"Without companion measures, left out: {', '.join(without)}."] if without else []
    return _from_rows(rows, notes=notes)


PREDICTORS = ("min", "median", "mean", "max", "spread", "std", "parameters", "GFLOPS", "depth")


def accuracy_correlations(signatures: Signatures, *, gates: bool = True, mixed: bool = False) -> Table:
    """Pearson correlations with ImageNet accuracy, by group of architectures (Figure 6).

    What the accuracy is compared with: the statistics of the signature (:func:`statistics`), and the number of
    parameters, GFLOPS and depth (:func:`facts`). One row a group of :data:`GROUPS`, and one for all. NaN with fewer
    than 3 networks; with few, a large correlation means little. ``strongest`` names the largest in absolute value.
    The paper's figure gives R2 scores, the squares of these.

    The accuracy is that of published weights. Where a signature was taken with random weights, the two belong to
    different networks of one architecture; a note below the table says how many.
    """
    signatures = _collect(signatures, mixed)
    known = {name: facts(signature) for name, signature in signatures.items()}
    known = {name: about for name, about in known.items() if about.accuracy is not None}
    if not known:
        raise ValueError(
            "signatures are of networks without a published ImageNet accuracy; there is none to compare with."
        )
    values = {
        name: _statistics(sequence(signatures[name], gates=gates))
        | {"parameters": about.parameters, "GFLOPS": about.gflops, "depth": about.depth, "accuracy": about.accuracy}
        for name, about in known.items()
    }
    rows = []
    groups = [group for group in GROUPS if any(about.group == group for about in known.values())]
    for group in [*groups, "all"]:
        members = [name for name in known if group in (known[name].group, "all")]
        accuracy = np.array([values[name]["accuracy"] for name in members], dtype=np.float64)
        row: dict[str, Any] = {"group": group, "models": len(members)}
        for predictor in PREDICTORS:
            row[predictor] = _pearson(
                np.array([values[name][predictor] for name in members], dtype=np.float64), accuracy
            )[0]
        defined = [predictor for predictor in PREDICTORS if not math.isnan(row[predictor])]
        row["strongest"] = max(defined, key=lambda p: abs(row[p]), default="-")
        rows.append(row)
    kinds = Counter(weights_kind(signatures[name]) for name in known)
    notes = []
    if kinds["pretrained"] < len(known):
        notes.append(
            f"Signatures: {kinds['pretrained']} of pretrained, {kinds['random']} of random and {kinds['unknown']} of "
            "unknown weights; the accuracy is always that of the published weights."
        )
    if left_out := [name for name in signatures if name not in known]:
        notes.append(f"Without a published accuracy, left out: {', '.join(left_out)}.")
    return _from_rows(rows, notes=notes)


# ---------------------------------------------------------------------------------------- data sets, batch size


def deviations(
    runs: Mapping[str, Signatures],
    reference: str | None = None,
    *,
    gates: bool = True,
    cost: str = "squared",
    normalise: bool = False,
    mixed: bool = False,
) -> Table:
    """How far each network's signature moves when something changes: the DTW distance to a reference (Figure 18).

    Parameters
    ----------
    runs
        Maps a label, such as the name of a data set, to the signatures taken with it; models have the same name in
        each. Pool, covariance and batch size must agree between the runs; data and weights may differ.
    reference
        The label to measure from; the first by default. The paper's is ImageNet.

    Returns
    -------
    Table
        One row a network of the reference (models, weights in the reference, a column for each other label; NaN
        where a run lacks it), then mean and standard deviation over the networks.
    """
    collected = {label: _collect(signatures, mixed) for label, signatures in runs.items()}
    if len(collected) < 2:
        raise ValueError(f"runs holds {len(collected)}; it should hold at least 2, one of them the reference.")
    reference = next(iter(collected)) if reference is None else reference
    if reference not in collected:
        raise ValueError(f"reference is {reference!r}; it should be one of {', '.join(map(repr, collected))}.")
    if not mixed:
        together = {f"{label}: {name}": s for label, run in collected.items() for name, s in run.items()}
        _check_settings(together, without=("data",))
    base = {name: sequence(signature, gates=gates) for name, signature in collected[reference].items()}
    columns: dict[str, list[Any]] = {
        "model": [*base, "mean", "std"],
        "weights": [*(weights_kind(collected[reference][name]) for name in base), "", ""],
    }
    for label, run in collected.items():
        if label == reference:
            continue
        moved = [
            dtw(values, sequence(run[name], gates=gates), cost=cost, normalise=normalise) if name in run else math.nan
            for name, values in base.items()
        ]
        there = [value for value in moved if not math.isnan(value)]
        columns[label] = [*moved, *((float(np.mean(there)), float(np.std(there))) if there else (math.nan, math.nan))]
    return Table(columns, notes=[f"DTW distance to {reference}."])


def batch_size_table(signatures: Iterable[Signature], *, gates: bool = True) -> Table:
    """What the batch size does to a signature (Figure 10, left): each compared with that of the largest batches.

    The batch is the statistical sample, and a signature does not keep the activations; so the network has to be run
    once for each size, for instance ``[signature(model, images.split(n)) for n in (128, 256, 512)]`` over the same
    images.

    Parameters
    ----------
    signatures
        Signatures of one network with the same pool, covariance and data, and different batch sizes.

    Returns
    -------
    Table
        Columns: batch size; batches; mean score; batch_std, the standard deviation over batches averaged over the
        calls (NaN for one batch); mean change, root mean square and largest absolute change of a call's score from
        the largest batch size; DTW distance to it.
    """
    runs = {f"run {i}": signature for i, signature in enumerate(signatures)}
    runs = _collect(runs, mixed=False, least=2, without=("batch size",))
    by_size = {max(signature.batch_sizes, default=0): signature for signature in runs.values()}
    if len(by_size) < len(runs):
        sizes = [max(signature.batch_sizes, default=0) for signature in runs.values()]
        raise ValueError(f"signatures have batch sizes {sizes}; they should all be different.")
    reference = by_size[max(by_size)]
    names = [call.name for call in reference.calls]
    kept = _kept(reference, gates)
    rows = []
    for size, signature in sorted(by_size.items()):
        if [call.name for call in signature.calls] != names:
            raise ValueError("signatures have different activation calls; they should be of one network.")
        change = (signature.mean - reference.mean)[kept]
        change = change[np.isfinite(change)]
        several = len(signature.scores) > 1
        rows.append(
            {
                "batch size": size,
                "batches": len(signature.scores),
                "mean score": float(sequence(signature, gates=gates).mean()),
                "batch_std": float(np.nanmean(signature.std[kept])) if several else math.nan,
                "mean change": float(change.mean()) if len(change) else math.nan,
                "rms change": float(np.sqrt((change**2).mean())) if len(change) else math.nan,
                "largest change": float(np.abs(change).max()) if len(change) else math.nan,
                "DTW": dtw(sequence(signature, gates=gates), sequence(reference, gates=gates)),
            }
        )
    return _from_rows(rows, digits=3)
