"""How strong a correlation with accuracy chance gives, when nine predictors are tried on a handful of networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from affscore.signature import Signature
from affscore.suite.architectures import GROUPS, facts
from affscore.suite.compare import PREDICTORS, statistics
from affscore.suite.tables import Table

__all__ = ["chance_table", "predictors", "strongest_by_chance"]


def predictors(signatures: Mapping[str, Signature]) -> np.ndarray:
    """What Figure 6 compares accuracy with, (networks, predictors): statistics of the signature, and the size."""
    table, about = statistics(dict(signatures)), [facts(each) for each in signatures.values()]
    sizes = [[each.parameters, each.gflops, each.depth] for each in about]
    return np.column_stack([*(table[name] for name in PREDICTORS[:-3]), np.array(sizes, dtype=np.float64)])


def strongest(values: np.ndarray, target: np.ndarray) -> float:
    """The largest |correlation| of the columns of (n, p) values with a target (n,); columns without spread are out."""
    spread = values.std(axis=0) > 1e-12 * np.abs(values).max(axis=0)
    centred = values[:, spread] - values[:, spread].mean(axis=0)
    centred /= np.linalg.norm(centred, axis=0)
    other = target - target.mean()
    return float(np.abs(other @ centred / np.linalg.norm(other)).max())


def strongest_by_chance(values: np.ndarray, target: np.ndarray, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """:func:`strongest` for ``draws`` random orders of the target, (draws,): what is found where nothing is to find.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> few = strongest_by_chance(generator.normal(size=(4, 9)), np.arange(4.0))
    >>> many = strongest_by_chance(generator.normal(size=(40, 9)), np.arange(40.0))
    >>> bool(np.median(few) > 0.8), bool(np.median(many) < 0.4)
    (True, True)
    """
    generator = np.random.default_rng(seed)
    return np.array([strongest(values, generator.permutation(target)) for _ in range(draws)])


def chance_table(signatures: Mapping[str, Signature]) -> Table:
    """For each group of architectures, the strongest of nine correlations when accuracies are dealt out at random.

    Columns: group; models; half of the time above, in one case of twenty above: the median and the 95 % quantile over
    random orders of the published accuracies.
    """
    about = {name: facts(each) for name, each in signatures.items()}
    rows = []
    for group in (*GROUPS, "all"):
        members = [name for name in signatures if group in (about[name].group, "all")]
        if len(members) < 3:
            continue
        accuracies = np.array([about[name].accuracy for name in members], dtype=np.float64)
        dealt = strongest_by_chance(predictors({name: signatures[name] for name in members}), accuracies)
        median, high = np.quantile(dealt, [0.5, 0.95])
        rows.append({"group": group, "models": len(members)}
                    | {"half of the time above": float(median), "1 in 20 above": float(high)})  # fmt: skip
    return Table.from_rows(rows)
