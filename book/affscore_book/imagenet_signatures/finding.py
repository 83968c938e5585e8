"""The stored signatures of the chapter, found by network, weights, data set, batch size and pool.

They are written by ``book/data/imagenet_signatures/make.py``, one file for each of these, called
``NETWORK.WEIGHTS.DATA.IMAGES.POOL.json``. WEIGHTS is ``imagenet`` (trained on ImageNet), ``fashion-mnist3`` (trained by
the book, seed 3), ``random3`` (initialised with seed 3 and never trained) or ``calibrated3`` (the same, with the
statistics of batch norm set to those of the images). IMAGES is the size of a batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from affscore.signature import Signature
from affscore.suite.architectures import facts
from affscore.suite.suites import PAPER

__all__ = ["SMALL", "Stored", "before_training", "find", "seeds", "stack", "stored", "trained_networks"]

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


def stack(signatures: Sequence[Signature]) -> Signature:
    """One signature whose rows are those of several with the same calls, for instance of several seeds.

    Its ``mean`` is then the mean over seeds, its ``std`` the deviation between them. The rest is the first's.
    """
    first = signatures[0]
    return replace(
        first,
        scores=np.concatenate([each.scores for each in signatures]),
        batch_sizes=[size for each in signatures for size in each.batch_sizes],
        provenance=first.provenance | {"stacked": [each.provenance.get("weights") for each in signatures]},
        companions={name: np.concatenate([each.companions[name] for each in signatures]) for name in first.companions},
    )


def find(
    folder: str | os.PathLike[str],
    weights: str,
    *,
    data: str = "photographs",
    images: int = 128,
    pool: str = "spatial",
    networks: Iterable[str] | None = None,
    seed: int | None = None,
) -> dict[str, Signature]:
    """Stored signatures by network.

    Parameters
    ----------
    folder
        Of the stored signatures.
    weights
        ``"imagenet"``, or a kind without its seed: ``"random"``, ``"calibrated"`` or ``"fashion-mnist"``.
    data, images
        The data set and the images in a batch.
    pool
        ``"spatial"`` or ``"trailing"``. Where both are the same only the first is stored, and is given for both.
    networks
        Names, in the order wanted; by default all, in the order of their names.
    seed
        Only the weights of this seed; by default all are stacked as rows.

    Raises
    ------
    ValueError
        If there is no such signature, for all the networks or for one that was named.
    """
    kept: dict[str, list[Signature]] = {}
    wanted = None if networks is None else list(networks)
    for item in stored(folder):
        about = (item.weights.rstrip("0123456789"), item.data, item.images, item.pool)
        if about != (weights, data, images, "spatial") or (wanted is not None and item.network not in wanted):
            continue
        if seed is not None and item.weights != f"{weights}{seed}":
            continue
        found = Signature.load(item.path)
        if pool != "spatial" and not found.provenance["pools_agree"]:
            found = Signature.load(item.path.with_name(item.path.name.replace(".spatial.", f".{pool}.")))
        kept.setdefault(item.network, []).append(found)
    missing = [name for name in wanted or [] if name not in kept]
    if missing or not kept:
        raise ValueError(
            f"there is no stored signature of {', '.join(missing) or 'any network'} with weights={weights!r}, "
            f"data={data!r}, images={images} and pool={pool!r}."
        )
    return {name: stack(kept[name]) for name in wanted or kept}


def seeds(
    folder: str | os.PathLike[str],
    network: str,
    weights: str,
    *,
    data: str = "fashion-mnist",
    images: int = 512,
    pool: str = "spatial",
) -> dict[int, Signature]:
    """The stored signatures of one network by the seed of its weights; arguments as for :func:`find`.

    Raises
    ------
    ValueError
        If there is none.
    """
    wanted = (network, data, images, pool)
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
    plain, normalised = (find(folder, weights, pool=pool, images=64, seed=0) for weights in ("random", "calibrated"))
    sources = {name: normalised if facts(name).family in NORMALISED else plain for name in PAPER}
    return {name: source[name] for name, source in sources.items() if name in source}
