"""The stored signatures of the chapter, found by network, weights, data set, batch size and pool.

They are written by ``book/data/imagenet_signatures/make.py``, one file for each of these, called
``NETWORK.WEIGHTS.DATA.IMAGES.POOL.json``. WEIGHTS is ``imagenet`` (trained on ImageNet), ``fashion-mnist3`` (trained by
the book, seed 3), ``random0`` (initialised with seed 0 and never trained) or ``calibrated3`` (seed 3, with the
statistics of batch norm set to those of the images). IMAGES is the size of a batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from affscore.signatures import Signature
from affscore.suite.architectures import facts
from affscore.suite.suites import PAPER

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
    folder: str | os.PathLike[str],
    weights: str,
    *,
    data: str = "photographs",
    images: int = 128,
    pool: str = "spatial",
    networks: Iterable[str] | None = None,
) -> dict[str, Signature]:
    """Stored signatures by network.

    Parameters
    ----------
    folder
        Of the stored signatures.
    weights
        ``"imagenet"``, or a kind without its seed, ``"random"`` or ``"calibrated"``.
    data, images
        The data set and the images in a batch.
    pool
        ``"spatial"`` or ``"trailing"``. Where both are the same only the first is stored, and is given for both.
    networks
        Names, in the order wanted; by default all, in the order of their names.

    Raises
    ------
    ValueError
        If there is no such signature, for all the networks or for one that was named, or if one is stored with
        several seeds: those have :func:`seeds`.
    """
    kept: dict[str, Signature] = {}
    wanted = None if networks is None else list(networks)
    for item in stored(folder):
        about = (item.weights.rstrip("0123456789"), item.data, item.images, item.pool)
        if about != (weights, data, images, "spatial") or (wanted is not None and item.network not in wanted):
            continue
        if item.network in kept:
            raise ValueError(f"{item.network} is stored with several seeds of weights={weights!r}; seeds() has each.")
        found = Signature.load(item.path)
        if pool != "spatial" and not found.provenance["pools_agree"]:
            found = Signature.load(item.path.with_name(item.path.name.replace(".spatial.", f".{pool}.")))
        kept[item.network] = found
    missing = [name for name in wanted or [] if name not in kept]
    if missing or not kept:
        raise ValueError(
            f"there is no stored signature of {', '.join(missing) or 'any network'} with weights={weights!r}, "
            f"data={data!r}, images={images} and pool={pool!r}."
        )
    return {name: kept[name] for name in wanted or kept}


def seeds(
    folder: str | os.PathLike[str],
    network: str,
    weights: str,
    *,
    data: str = "fashion-mnist",
    images: int = 512,
) -> dict[int, Signature]:
    """The stored signatures of one network by the seed of its weights; arguments as for :func:`find`.

    Raises
    ------
    ValueError
        If there is none.
    """
    wanted = (network, data, images, "spatial")
    found = {
        int(item.weights.removeprefix(weights)): Signature.load(item.path)
        for item in stored(folder)
        if (item.network, item.data, item.images, item.pool) == wanted
        and item.weights.rstrip("0123456789") == weights
        and item.weights != weights
    }
    if not found:
        raise ValueError(f"there is no stored signature of {network} with weights={weights!r} and a seed.")
    return dict(sorted(found.items()))


def trained_networks(folder: str | os.PathLike[str]) -> dict[str, Signature]:
    """Every trained network that is stored with its companion measures: the Lites, and each seed of :data:`SMALL`.

    A seed is named ``"resnet20, seed 2"``: what stands before the comma is the architecture.
    """
    every = {name: found for name, found in find(folder, "imagenet").items()}
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
