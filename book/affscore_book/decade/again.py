"""The stored networks of the first seed, and a look whether they still do what was stored of them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from torch import nn

from affscore.engine import signature
from affscore_book.decade.collection import Decade
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


def check_stored(folder: str | os.PathLike[str], decade: Decade, data: ImageData) -> str:
    """Measure the signature of VGG11 with norm and two test accuracies again; a sentence on what agrees.

    Raises
    ------
    ValueError
        If a score or an accuracy lies farther than .001 from the stored one.
    """
    images = data.standardise(data.validation.images[:IMAGES])
    for name in ("alexnet", "vgg11_bn"):
        network = stored_network(folder, name)
        away = {"the accuracy": abs(accuracy(network, data, data.test) - decade[name][0].accuracy)}
        if name == "vgg11_bn":
            scores = signature(network, [images]).scores[0]
            away["a score"] = float(np.nanmax(np.abs(scores - decade[name][0].end.mean)))
        for what, value in away.items():
            if not value <= CLOSE:
                raise ValueError(f"{name}: {what} is {value:.4f} from the stored one; it should be at most {CLOSE}.")
    return "Measured again and equal:\nthe signature of vgg11_bn, the accuracy of alexnet and vgg11_bn."
