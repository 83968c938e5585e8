"""Which signatures may be compared, and what of them is: the sequence of their scores.

The functions of :mod:`affscore.suite.compare`, :mod:`affscore.suite.distances` and :mod:`affscore.suite.figures` take
signatures as a mapping from a name to a :class:`affscore.Signature`, such as :func:`load_signatures` gives of a folder.
Scores are comparable where pool, covariance, data, batch size and the choice of calls agree; signatures that differ in
one of them are refused.

Scores are averaged over batches first. A call whose output never varied (a dead call) has no score and is left out.
Sigmoid gates count, as in the paper.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from affscore.signatures import Signature
from affscore.suite.architectures import model_name, printable, short_names

__all__ = ["Floats", "Signatures", "collect", "conditions", "load_signatures", "sequence"]

Signatures = Mapping[str, Signature]
Floats = NDArray[np.float64]


def conditions(signature: Signature) -> dict[str, Any]:
    """What must be equal for two signatures to be comparable; data and batch size are None where they are not known."""
    data = signature.provenance.get("data", signature.provenance.get("dataset"))
    if isinstance(data, Mapping):
        data = data.get("dataset")
    return {
        "pool": signature.pool,
        "covariance": signature.covariance,
        "data": None if data is None else printable(str(data), 48),
        "batch size": max(signature.batch_sizes, default=None),
        # A pattern that chose some: the scores of a stage are not those of a network.
        "calls": printable(str(signature.provenance.get("calls") or "all"), 48),
    }


def load_signatures(folder: str | os.PathLike[str]) -> tuple[dict[str, Signature], list[dict[str, str]]]:
    """The signatures in a folder, one JSON file each, in the order of their files' names; and the files that are none.

    The book's chapter ``imagenet_signatures`` compares some.

    The files are as :meth:`affscore.Signature.save` writes them. Signatures are named after their model where it is the
    only one, otherwise by :func:`short_names`. Each file that is not a signature is a ``{"file": ..., "reason": ...}``.

    Raises ValueError if there is no signature in the folder; FileNotFoundError if there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"folder: there is no folder {folder}.")
    found: dict[str, Signature] = {}
    unreadable = []
    paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    for path in paths:
        try:
            if not path.is_file():  # to open a FIFO would wait for its writer
                raise ValueError(f"{path} is not a regular file.")
            found[printable(path.stem, 48)] = Signature.load(path)
        except (ValueError, OSError, MemoryError) as error:
            unreadable.append({"file": printable(path.name), "reason": printable(str(error))})
    if not found:
        raise ValueError(f"folder: {folder} holds no signature ({len(paths)} JSON files, none of which is one).")
    return short_names(found), unreadable


def collect(signatures: Signatures, *, least: int = 1, without: str = "") -> dict[str, Signature]:
    """The mapping that the functions work on, checked: at least ``least`` comparable signatures.

    ``without`` names the one of the :func:`conditions` that may differ. Raises TypeError or ValueError if it is
    something else; if there are too few, or they are not comparable.
    """
    if not isinstance(signatures, Mapping):
        raise TypeError(f"signatures is a {type(signatures).__name__}; it should be a mapping from names to them.")
    for name, signature in signatures.items():
        if not isinstance(signature, Signature):
            raise TypeError(f"signatures[{name!r}] is a {type(signature).__name__}; it should be a Signature.")
    if len(signatures) < least:
        raise ValueError(f"signatures holds {len(signatures)}; it should hold at least {least}.")
    for key in ("pool", "covariance", "data", "batch size", "calls"):
        found: dict[Any, list[str]] = {}
        for name, signature in signatures.items():
            found.setdefault(conditions(signature)[key], []).append(name)
        if len(found) > 1 and key != without:
            listed = "; ".join(
                f"{'not recorded' if value is None else repr(value)} ({len(names)}, such as {names[0]})"
                for value, names in found.items()
            )
            raise ValueError(
                f"signatures differ in their {key}: {listed}. Their scores are not comparable; pick those of one {key}."
            )
    return dict(signatures)


def sequence(signature: Signature) -> Floats:
    """The scores of a signature in execution order, averaged over batches, without dead calls; shape (calls,).

    Raises ValueError if no call is left.
    """
    alive = signature.mean[~np.isnan(signature.mean)]
    if not len(alive):
        calls = len(signature.calls)
        what = f"has {calls} activation calls, all dead" if calls else "has no activation call"
        raise ValueError(f"the signature of {model_name(signature)} {what}; there is nothing to compare.")
    return alive
