"""The stored signatures of the chapter, found by network, weights, data set, batch size and pool.

They are written by ``book/data/imagenet_signatures/make.py``, one file for each of these, called
``NETWORK.WEIGHTS.DATA.IMAGES.POOL.json``. WEIGHTS is ``imagenet`` (trained on ImageNet), ``fashion-mnist3`` (trained by
the book, seed 3), ``random0`` (initialised with seed 0 and never trained) or ``calibrated3`` (seed 3, with the
statistics of batch norm set to those of the images). IMAGES is the size of a batch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.architectures import facts

__all__ = ["SMALL", "Stored", "before_training", "find", "seeds", "stored", "trained_networks"]

#: Families of the paper whose networks have batch norm.
NORMALISED = ("GoogLeNet", "Inception", "ResNet", "DenseNet", "MNASNet", "EfficientNet")
#: The small networks that the book trains on Fashion-MNIST, several seeds of each.
SMALL = ("myrtle", "resnet20", "plain20")


class Stored(NamedTuple):
    """One stored signature: what its name says, and its file."""

    network: str
    weights: str
    data: str
    images: int
    pool: str
    path: Path


def stored(folder: str | os.PathLike[str]) -> list[Stored]:
    """All stored signatures of a folder, sorted by name.

    Raises
    ------
    FileNotFoundError
        If the folder holds none.
    """
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        network, weights, data, images, pool = path.stem.split(".")
        found.append(Stored(network, weights, data, int(images), pool, path))
    if not found:
        raise FileNotFoundError(
            f"folder: {folder} holds no stored signatures; run book/data/imagenet_signatures/make.py or start in book/."
        )
    return found


def find(
    folder: str | os.PathLike[str], weights: str, *, images: int = 128, pool: str = "spatial"
) -> dict[str, Signature]:
    """Stored signatures on photographs by network, in the order of their names.

    Parameters
    ----------
    folder
        Of the stored signatures.
    weights
        ``"imagenet"``, or a kind without its seed, ``"random"`` or ``"calibrated"``.
    images
        The images in a batch.
    pool
        ``"spatial"`` or ``"trailing"``. Where both are the same only the first is stored, and is given for both.

    Raises
    ------
    ValueError
        If there is no such signature.
    """
    kept = {}
    for item in stored(folder):
        about = (item.weights.rstrip("0123456789"), item.data, item.images, item.pool)
        if about != (weights, "photographs", images, "spatial"):
            continue
        found = Signature.load(item.path)
        if pool != "spatial" and not found.provenance["pools_agree"]:
            found = Signature.load(item.path.with_name(item.path.name.replace(".spatial.", f".{pool}.")))
        kept[item.network] = found
    if not kept:
        raise ValueError(f"there is no stored signature with weights={weights!r}, images={images} and pool={pool!r}.")
    return kept


def seeds(folder: str | os.PathLike[str], network: str, weights: str) -> dict[int, Signature]:
    """The stored signatures of one of :data:`SMALL` on Fashion-MNIST, by the seed of its weights.

    ``weights`` is ``"fashion-mnist"`` or ``"calibrated"``. Raises ValueError if there is none.
    """
    found = {
        int(item.weights.removeprefix(weights)): Signature.load(item.path)
        for item in stored(folder)
        if (item.network, item.data, item.weights.rstrip("0123456789")) == (network, "fashion-mnist", weights)
    }
    if not found:
        raise ValueError(f"there is no stored signature of {network} with weights={weights!r} and a seed.")
    return dict(sorted(found.items()))


def trained_networks(folder: str | os.PathLike[str]) -> dict[str, Signature]:
    """Every trained network that is stored with its companion measures: the Lites, and each seed of :data:`SMALL`.

    A seed is named ``"resnet20, seed 2"``: what stands before the comma is the architecture.
    """
    every = find(folder, "imagenet")
    for network in SMALL:
        every |= {f"{network}, seed {i}": found for i, found in seeds(folder, network, "fashion-mnist").items()}
    return every


def before_training(folder: str | os.PathLike[str], *, pool: str = "spatial") -> dict[str, Signature]:
    """The paper's architectures before any training, in the paper's order, as far as they are stored.

    Weights are random, one draw of them (seed 0); where a network has batch norm, its statistics are those of the
    photographs (``calibrated``). At its initial statistics, 0 and 1, batch norm does nothing.
    """
    plain, normalised = (find(folder, weights, pool=pool, images=64) for weights in ("random", "calibrated"))
    sources = {name: normalised if facts(name).family in NORMALISED else plain for name in PAPER}
    return {name: source[name] for name, source in sources.items() if name in source}
