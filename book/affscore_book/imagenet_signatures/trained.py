"""What the trained networks of the book say of the paper's sentences: on skips and measures.

Where several seeds of an architecture are trained, means have Student's interval over the seeds. That interval speaks
of more seeds of the same architecture; for a sentence about architectures :func:`counted` counts architectures.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from affscore.signature import Signature
from affscore.suite.architectures import facts
from affscore.suite.compare import companion_correlations
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.finding import trained_networks
from affscore_book.kit.statistics import Interval, student_interval

__all__ = [
    "TRAINED", "UNTRAINED", "counted", "places", "skip_gap", "skip_table", "strongest_measure",
    "trained_correlations", "zeros_of",
]  # fmt: skip


def places(signature: Signature) -> dict[str, np.ndarray]:
    """Which calls of a ResNet, or of its plain twin, end a block, and which are inside one.

    Returns two arrays of bool, (calls,): ``"inside its block"`` and ``"last in its block"``. A call outside all blocks
    is in neither. In a ResNet the last call of a block follows the addition.
    """
    blocks = [call.module.rpartition(".")[0] for call in signature.calls]
    last = np.array([bool(block) and block not in blocks[i + 1 :] for i, block in enumerate(blocks)])
    return {"inside its block": np.array([bool(block) for block in blocks]) & ~last, "last in its block": last}


def zeros_of(signature: Signature) -> np.ndarray:
    """The part of each call's output that is zero, mean over batches, (calls,): for ReLU, its negative inputs."""
    return signature.companions["sparsity_after"].mean(axis=0)


def skip_table(by_network: Mapping[str, Mapping[int, Signature]]) -> Table:
    """What the addition of a skip does to the call that follows it; a row for each network and place in a block.

    ``by_network`` holds the seeds of networks as :func:`places` knows them. Columns: network; call;
    negative, the mean part of its inputs that is; score, the mean over calls and seeds.
    """
    rows = []
    for name, signatures in by_network.items():
        for label in ("inside its block", "last in its block"):
            found = [(zeros_of(each)[at].mean(), each.mean[at].mean())
                     for each in signatures.values() for at in [places(each)[label]]]  # fmt: skip
            zeros, score = np.mean(found, axis=0)
            rows.append({"network": name, "call": label, "negative": float(zeros), "score": float(score)})
    return Table.from_rows(rows)


def skip_gap(signatures: Mapping[Any, Signature]) -> Interval:
    """Mean score of the last calls of the blocks less that of the calls inside, with the interval over the networks."""
    gaps = []
    for each in signatures.values():
        inside, last = places(each).values()
        gaps.append(each.mean[last].mean() - each.mean[inside].mean())
    return student_interval(gaps)


#: What may be counted as one result of a trained network: by its name, which group it belongs to.
TRAINED: Mapping[str, Callable[[str], str]] = {
    "networks": str,
    "architectures": lambda network: network.partition(",")[0],
    "kinds": lambda network: "lite" if "lite" in network else network.partition(",")[0],
}
#: The same for networks of torchvision.
UNTRAINED: Mapping[str, Callable[[str], str]] = {"networks": str, "families": lambda network: facts(network).family}


def trained_correlations(folder: str | os.PathLike[str]) -> Table:
    """:func:`affscore.suite.compare.companion_correlations` of the trained networks, each on its own pictures.

    One row each for :func:`affscore_book.imagenet_signatures.finding.trained_networks`; no row of means, because the
    networks are not independent: see :func:`counted`.
    """
    by_data: dict[str, dict[str, Signature]] = {}
    for name, found in trained_networks(folder).items():
        by_data.setdefault(found.provenance["data"]["dataset"], {})[name] = found
    tables = [companion_correlations(group) for group in by_data.values()]
    return Table.from_rows([row for table in tables for row in table.rows() if row["model"] not in ("mean", "std")])


def counted(correlations: Table, measure: str, ways: Mapping[str, Callable[[str], str]]) -> Table:
    """The mean correlation of a measure with the score, with Student's interval, by what is counted as one result.

    Parameters
    ----------
    correlations
        Of :func:`trained_correlations` or :func:`affscore.suite.compare.companion_correlations`.
    measure
        A column of it.
    ways
        A row for each: from a network's name to the group it belongs to. A group's mean is one result.

    Examples
    --------
    >>> table = Table({"model": ["a, seed 0", "a, seed 1", "b"], "CKA": [0.2, 0.4, 0.5]})
    >>> counted(table, "CKA", {"networks": str, "architectures": lambda name: name[0]})["results"].astype(int).tolist()
    [3, 2]
    """
    rows = []
    for label, group in ways.items():
        members: dict[str, list[float]] = {}
        for row in correlations.rows():
            if row["model"] not in ("mean", "std") and math.isfinite(row[measure]):
                members.setdefault(group(row["model"]), []).append(row[measure])
        mean, low, high = student_interval([np.mean(values) for values in members.values()])
        rows.append({"counted": label, "results": len(members), "mean": mean, "low": low, "high": high})
    return Table.from_rows(rows)


def strongest_measure(correlations: Table, measures: Iterable[str], ways: Mapping[str, Callable[[str], str]]) -> str:
    """The measure whose mean correlation with the score, by the last of ``ways``, is largest in absolute value."""
    means = {name: abs(counted(correlations, name, ways)["mean"][-1]) for name in measures}
    return max(means, key=means.__getitem__)
