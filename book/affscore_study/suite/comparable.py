"""The conditions under which signatures are comparable, and the loading and checking of signatures.

The functions of ``compare``, ``distances`` and ``figures`` take signatures as a mapping from names to
:class:`affscore.Signature`, such as :func:`load_signatures` returns for a folder.
Scores are comparable if pool, covariance, data, batch size and the choice of calls agree; signatures that differ in
one of them are refused.

Scores are averaged over batches first. A call whose input or output never varied (a dead call) has no score and is
left out. Sigmoid gates count, as in the paper. :func:`weights_kind` tells random weights from trained ones.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from affscore.signatures import Signature, read_signature
from affscore_book.kit.architectures import model_name, printable
from affscore_study.suite.requests import is_finished, request_of

__all__ = ["Floats", "Signatures", "collect", "conditions", "load_signatures", "names_of", "weights_kind"]

Signatures = Mapping[str, Signature]
Floats = NDArray[np.float64]


def conditions(signature: Signature) -> dict[str, Any]:
    """The settings that must agree if two signatures are compared; data and batch size are None if unknown.

    The keys are ``pool``, ``covariance``, ``data``, ``batch size`` and ``calls``.
    """
    data = signature.provenance.get("data", signature.provenance.get("dataset"))
    if isinstance(data, Mapping):
        data = data.get("dataset")
    return {
        "pool": signature.pool,
        "covariance": signature.covariance,
        "data": None if data is None else printable(str(data), 48),
        "batch size": max(signature.batch_sizes, default=None),
        # A pattern may have selected some calls, and the scores of a stage are not those of a network.
        "calls": printable(str(signature.provenance.get("calls") or "all"), 48),
    }


def load_signatures(folder: str | os.PathLike[str]) -> tuple[dict[str, Signature], list[dict[str, str]]]:
    """The signatures in a folder, in the order of the file names, and a list of the other JSON files.

    Each signature is in one file, as :meth:`affscore.Signature.save` writes it. The book's chapter
    ``imagenet_signatures`` compares some. The name of a signature is its model, with the kind of weights if several
    signatures are of that model, or its file (:func:`names_of`). The list has a ``{"file": ..., "reason": ...}`` for
    each file that is not a signature or is an unfinished one.

    Raises ValueError if the folder has no signature, and FileNotFoundError if there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"folder: there is no folder {folder}.")
    found: dict[str, Signature] = {}
    unreadable: list[dict[str, str]] = []
    paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    for path in paths:
        try:
            signature = read_signature(path)
            if not is_finished(signature):
                done, total = len(signature.batch_sizes), request_of(signature)["batches"]
                raise ValueError(f"it is unfinished: {done} of {total} batches; run its suite again to finish it.")
            found[path.stem] = signature
        except (ValueError, OSError, MemoryError) as error:
            unreadable.append({"file": printable(path.name), "reason": printable(str(error))})
    if not found:
        raise ValueError(f"folder: {folder} holds no signature ({len(paths)} JSON files were found).")
    return dict(zip(names_of(found), found.values(), strict=True)), unreadable


def names_of(signatures: Signatures) -> list[str]:
    """A short name for each signature, different from the others: its model, with the kind of weights, or its key."""
    models = [model_name(signature) for signature in signatures.values()]
    choices = [
        (model, f"{model} {weights_kind(signature)}", printable(own, 48))
        for model, (own, signature) in zip(models, signatures.items(), strict=True)
    ]
    counts = Counter(text for texts in choices for text in set(texts))
    # A file may have the name of the model in another file.
    return [next((text for text in texts if counts[text] == 1), f"{texts[-1]}.json") for texts in choices]


def collect(signatures: Signatures, *, least: int = 1, without: str = "") -> dict[str, Signature]:
    """The signatures as a dictionary, after a check that there are at least ``least`` and that they are comparable.

    ``without`` names a condition (:func:`conditions`) that may differ. Raises TypeError if ``signatures`` is not a
    mapping to signatures, and ValueError if there are too few or they are not comparable.
    """
    if not isinstance(signatures, Mapping):
        raise TypeError(f"signatures is a {type(signatures).__name__}; it should be a mapping from names to them.")
    for name, signature in signatures.items():
        if not isinstance(signature, Signature):
            raise TypeError(f"signatures[{name!r}] is a {type(signature).__name__}; it should be a Signature.")
    if len(signatures) < least:
        raise ValueError(f"signatures holds {len(signatures)}; it should hold at least {least}.")
    for key in ("pool", "covariance", "data", "batch size", "calls"):
        by_value: dict[Any, list[str]] = {}
        for name, signature in signatures.items():
            by_value.setdefault(conditions(signature)[key], []).append(name)
        if len(by_value) > 1 and key != without:
            listed = "; ".join(
                f"{'not recorded' if value is None else repr(value)} ({len(names)}, such as {names[0]})"
                for value, names in by_value.items()
            )
            raise ValueError(
                f"signatures differ in their {key}: {listed}. Their scores are not comparable; pick those of one {key}."
            )
    return dict(signatures)


def weights_kind(signature: Signature) -> str:
    """``"pretrained"``, ``"random"`` or ``"unknown"``, from the signature's provenance.

    If there is an entry ``pretrained``, True or False, it decides; otherwise the ``kind`` that the loader recorded
    decides. Weights from a file or without a record are unknown.

    >>> about = {"weights": {"kind": "random", "weights": "seed 1"}}
    >>> weights_kind(Signature([], [[]], batch_sizes=[9], provenance=about))
    'random'
    """
    about = signature.provenance
    if isinstance(stated := about.get("pretrained"), bool):
        return "pretrained" if stated else "random"
    weights = about.get("weights")
    kind = (weights if isinstance(weights, Mapping) else about).get("kind")
    return kind if kind in ("pretrained", "random") else "unknown"
