"""The stored networks of the first seed, and a look whether they still do what was stored of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from torch import nn

from affscore.engine import signature
from affscore_book.decade.collection import END, Trained
from affscore_book.decade.networks import build
from affscore_book.kit.training import ImageData, accuracy, load_weights

__all__ = ["IMAGES", "check_stored", "stored_network"]

#: Stored signatures are of the first 512 validation images.
IMAGES = 512
#: How far a score or an accuracy may lie from the stored one: the last bits of a network differ between machines.
CLOSE = 1e-3


def stored_network(folder: str | os.PathLike[str], name: str) -> nn.Module:
    """The trained network of the first seed, in evaluation mode on the CPU; its weights were stored in half precision.

    Parameters
    ----------
    folder
        ``book/data/decade``.
    name
        One of :data:`affscore_book.decade.networks.SETTINGS`.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no weights of that name, or they are damaged.
    """
    network = build(name)
    load_weights(network, Path(folder) / "weights" / f"{name}-0.safetensors")
    return network


def check_stored(
    folder: str | os.PathLike[str], decade: Mapping[str, Mapping[int, Trained]], data: ImageData,
    signatures: Iterable[str] = ("vgg11_bn",), accuracies: Iterable[str] = ("alexnet", "vgg11_bn"),
) -> str:  # fmt: skip
    """Measure the signatures and test accuracies of some networks again; a sentence on what agrees.

    Raises
    ------
    ValueError
        If a score or an accuracy lies farther than .001 from the stored one.
    """
    signatures, accuracies = list(signatures), list(accuracies)
    images = data.standardise(data.validation.images[:IMAGES])
    for name in signatures:
        own = signature(stored_network(folder, name), [images]).scores[0]
        away = float(np.nanmax(np.abs(own - decade[name][0].signatures[END, "spatial"].mean)))
        if not away <= CLOSE:
            raise ValueError(f"{name}: a score is {away:.4f} from the stored one; it should be at most {CLOSE}.")
    for name in accuracies:
        away = abs(accuracy(stored_network(folder, name), data, data.test) - decade[name][0].accuracy)
        if not away <= CLOSE:
            raise ValueError(f"{name}: the accuracy is {away:.4f} from the stored one; it should be at most {CLOSE}.")
    what = f"the signature of {' and '.join(signatures)}, the accuracy of {' and '.join(accuracies)}"
    return f"Measured again and equal:\n{what}."
