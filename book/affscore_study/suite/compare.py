"""Tables of the paper (statistics of signatures, history and correlations), and densities of scores.

Every function takes signatures (:mod:`affscore_study.suite.comparable`); most return a
:class:`affscore_book.kit.tables.Table`. The audit of ``imagenet_signatures`` and the report use them.

A dead call is left out of every statistic and counted in the column ``dead``. Every table of networks has a column
``weights`` (:func:`affscore_study.suite.comparable.weights_kind`), so that random weights are not taken for trained
ones.

Reference: Bouniot et al., CVPR 2025, section 4 (Figures 5 and 6, Table 1) and Appendix E (Table 2).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from affscore.signatures import Signature
from affscore_book.kit.architectures import FAMILIES, GROUPS, facts
from affscore_book.kit.sequences import sequence
from affscore_book.kit.tables import Table
from affscore_study.suite.comparable import Floats, Signatures, collect, weights_kind

__all__ = ["accuracy_correlations", "companion_correlations", "density_curves", "history", "statistics"]


def _statistics(values: Floats) -> dict[str, Any]:
    over: dict[str, Any] = {
        "mean": np.mean, "median": np.median, "min": np.min, "max": np.max, "spread": np.ptp, "std": np.std,
    }  # fmt: skip
    return {name: float(statistic(values)) for name, statistic in over.items()} | {"last": float(values[-1])}


def statistics(signatures: Signatures) -> Table:
    """Statistics of the scores of each network over its calls.

    Columns: model; weights (:func:`weights_kind`); calls; dead; mean; median; min; max; spread = max - min; std over
    the calls; last, the score of the last live call; batch_std, the standard deviation over batches averaged over
    the calls (the titles of Figure 12), NaN for a single batch.
    """
    rows = []
    for name, signature in collect(signatures).items():
        dead = int(np.isnan(signature.mean).sum())
        row = {"model": name, "weights": weights_kind(signature), "calls": len(signature.calls), "dead": dead}
        spread = float(np.nanmean(signature.std)) if len(signature.scores) > 1 else math.nan
        rows.append(row | _statistics(sequence(signature)) | {"batch_std": spread})
    return Table.from_rows(rows, digits=3)


def history(signatures: Signatures) -> Table:
    """Smallest, median and largest score of each network, by year (Figure 5 A).

    Columns: model, weights, family, group, year, accuracy (ImageNet-1k top-1 in percent, of the published weights),
    min, median, max. Sorted by year, then family, then number of parameters. Networks that are not in
    :data:`FAMILIES` have no year and come last.
    """
    families, rows, order = [*FAMILIES, "other"], [], []
    for name, signature in collect(signatures).items():
        known, values = facts(signature), _statistics(sequence(signature))
        row = {"model": name, "weights": weights_kind(signature)}
        row |= {key: getattr(known, key) for key in ("family", "group", "year", "accuracy")}
        rows.append(row | {key: values[key] for key in ("min", "median", "max")})
        order.append((known.year or math.inf, families.index(known.family), known.parameters or 0))
    return Table.from_rows([rows[i] for i in sorted(range(len(rows)), key=order.__getitem__)])


def density_curves(signatures: Signatures) -> tuple[Floats, dict[str, Floats]]:
    """Kernel density estimates of each network's scores (Figure 5 C), by SciPy.

    Returns the grid, float64 of shape (400,), from below the smallest score of all networks to above the largest, and
    the density of each network on it, of the same shape. The density is NaN for a network whose scores are all equal.

    The bandwidth follows Scott's rule, n^(-1/5) standard deviations of the sample; the paper does not give its own. A
    score is at most 1, but the Gaussian kernel ignores that: some mass lies beyond 1.
    """
    samples = {name: sequence(signature) for name, signature in collect(signatures).items()}
    kernels = {name: gaussian_kde(values) if np.ptp(values) > 0 else None for name, values in samples.items()}
    reach = 3 * max((math.sqrt(kernel.covariance[0, 0]) for kernel in kernels.values() if kernel), default=0.1)
    low, high = min(map(np.min, samples.values())), max(map(np.max, samples.values()))
    grid = np.linspace(low - reach, high + reach, 400)
    return grid, {name: kernel(grid) if kernel else np.full(400, math.nan) for name, kernel in kernels.items()}


def _pearson(x: Floats, y: Floats, least: int = 3) -> float:
    """Pearson's correlation over pairs of finite numbers; NaN for fewer than ``least`` or a constant side."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    if len(x) < least or np.ptp(x) <= 1e-12 * np.abs(x).max() or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


#: Columns of Table 2 in the paper's order; each is a stored companion or the difference of two, the first minus the
#: second.
COMPANIONS = {
    "CKA": ("cka",),
    "norm": ("norm",),
    "sparsity": ("sparsity_after", "sparsity_before"),
    "entropy": ("entropy_change",),
    "R2": ("r2",),
    "R2 held out": ("r2_held_out",),
}


def _companions(signature: Signature) -> dict[str, Floats]:
    """The measured columns of :data:`COMPANIONS`, averaged over batches, each of shape (calls,)."""
    taken = signature.companions.items()
    mean = {name: np.ma.masked_invalid(values).mean(axis=0).filled(math.nan) for name, values in taken}
    return {
        column: mean[names[0]] - mean[names[1]] if len(names) == 2 else mean[names[0]]
        for column, names in COMPANIONS.items()
        if mean.keys() >= set(names)
    }


def companion_correlations(signatures: Signatures) -> Table:
    """Pearson correlations of the score with other measures over the calls of each network (Tables 1 and 2).

    Scores and measures are averaged over batches first. ``sparsity`` and ``entropy`` are changes, after minus before
    the activation. A correlation is NaN if one side is constant or there are fewer than 3 calls. The last two
    rows give mean and standard deviation over the networks that have a number, as the paper's last row does; the
    column ``calls`` is the number of calls with a score. Raises ValueError if no signature has one of these measures.
    """
    signatures = collect(signatures)
    measured = {name: _companions(signature) for name, signature in signatures.items()}
    have = [column for column in COMPANIONS if any(column in found for found in measured.values())]
    if not have:
        raise ValueError(
            f"signatures hold none of the companion measures {', '.join(COMPANIONS)}; take them with companions=True."
        )
    rows: list[dict[str, Any]] = []
    for name, signature in signatures.items():
        if not (found := measured[name]):
            continue
        correlations = {c: _pearson(signature.mean, found[c]) if c in found else math.nan for c in have}
        calls = int(np.isfinite(signature.mean).sum())
        rows.append({"model": name, "weights": weights_kind(signature), "calls": calls} | correlations)
    defined = {column: [row[column] for row in rows if not math.isnan(row[column])] for column in have}
    over = {"weights": f"over {len(rows)}", "calls": None}
    for name, over_networks in (("mean", np.mean), ("std", np.std)):
        summary = {c: float(over_networks(v)) if v else math.nan for c, v in defined.items()}
        rows.append({"model": name} | over | summary)
    without = [name for name, found in measured.items() if not found]
    notes = [f"Without companion measures, left out: {', '.join(without)}."] if without else []
    return Table.from_rows(rows, notes=notes)


#: The quantities with which the accuracy is correlated.
PREDICTORS = ("min", "median", "mean", "max", "spread", "std", "parameters", "GFLOPS", "depth")


def accuracy_correlations(signatures: Signatures, *, least: int = 3) -> Table:
    """Pearson correlations with ImageNet accuracy, by group of architectures (Figure 6).

    The accuracy is correlated with the statistics of the signature (:func:`statistics`), the number of parameters,
    GFLOPS and depth (:func:`facts`). There is one row for each group of :data:`GROUPS` and one for all. A correlation
    over fewer than ``least`` networks is NaN. ``strongest`` names the largest in absolute value. The paper's figure
    gives R2 scores, the squares of these.

    The accuracy is that of published weights. If a signature has random weights, the two belong to different networks
    of one architecture; a note below the table counts these. Raises ValueError if fewer than ``least`` networks have
    a published accuracy.
    """
    signatures = collect(signatures)
    known = {name: about for name, s in signatures.items() if (about := facts(s)).accuracy is not None}
    if len(known) < least:
        raise ValueError(
            f"signatures have a published ImageNet accuracy for {len(known)}; a correlation needs at least {least}."
        )
    values = {
        name: _statistics(sequence(signatures[name]))
        | {"parameters": about.parameters, "GFLOPS": about.gflops, "depth": about.depth, "accuracy": about.accuracy}
        for name, about in known.items()
    }
    rows = []
    groups = [group for group in GROUPS if any(about.group == group for about in known.values())]
    for group in [*groups, "all"]:
        members = [values[name] for name in known if group in (known[name].group, "all")]
        columns = {key: np.array([each[key] for each in members], dtype=np.float64) for key in members[0]}
        row: dict[str, Any] = {"group": group, "models": len(members)}
        row |= {predictor: _pearson(columns[predictor], columns["accuracy"], least) for predictor in PREDICTORS}
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
    if any(3 <= row["models"] < least for row in rows):
        notes.append(f"Groups of fewer than {least} networks have no correlation.")
    if left_out := [name for name in signatures if name not in known]:
        notes.append(f"Without a published accuracy, left out: {', '.join(left_out)}.")
    return Table.from_rows(rows, notes=notes)
