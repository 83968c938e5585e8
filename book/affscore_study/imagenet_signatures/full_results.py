"""Results of the full run: the packed file, the checks before it is installed, and the installed form.

A packed file is a zip with ``NETWORK.POOL.json`` for each signature (``trailing`` only if that pool differs from
``spatial``) and ``manifest.json``, which records the origin of the signatures and a checksum of each. It is installed
as one JSON file for each data set, such as ``full/imagenette.json``, with means and standard deviations over the
batches.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torchvision.models import get_model_weights

from affscore.calls import Call
from affscore.companions import MEASURES
from affscore.files import destination
from affscore.signatures import Signature
from affscore.zoo.datasets import EXPECTED
from affscore.zoo.models import DEFAULT_WEIGHTS
from affscore.zoo.names import WEIGHTS
from affscore_book.imagenet_signatures.finding import before_training
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.stored import read_results
from affscore_study.kit.run_files import rounded, store_results

__all__ = ["BATCH_SIZE", "MANIFEST", "SCHEMA", "Results", "install", "other_pool", "read_full"]

BATCH_SIZE = 512
DATA = ("imagenet", "imagenette")  # the first one is shown if it is installed
MANIFEST, SCHEMA = "manifest.json", "affscore.results/1"
NAMES = tuple(f"{network}.{pool}.json" for network in PAPER for pool in ("spatial", "trailing"))
#: The greatest number of bytes of a file; ImageNet's 97 batches of the network with most calls take 3 million.
LARGEST = 64_000_000
SCRIPT = "make results"


class Results(NamedTuple):
    """Signatures of pretrained networks by pool and network, each with one row, the mean over the batches.

    ``std`` is each network's standard deviation over the batches, averaged over the calls (spatial pool). ``device`` is
    the device that measured them.
    """

    data: str
    signatures: Mapping[str, Mapping[str, Signature]]
    std: Mapping[str, float]
    device: str

    def __repr__(self) -> str:
        return (
            f"{len(self.signatures['spatial'])} of {len(PAPER)} pretrained networks on {self.data}, "
            f"{EXPECTED[self.data] // BATCH_SIZE} batches of {BATCH_SIZE}, by {self.device}"
        )


def other_pool(signature: Signature) -> bool:
    """Whether the pool ``trailing`` averages over other axes than ``spatial`` in some call of this network."""
    return any(call.channel_axis != 1 for call in signature.calls)


def install(file: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Check a packed file, write ``full/DATA.json`` in ``folder``, completely or not at all, and return that path.

    ``folder`` is the folder of the stored signatures; the networks before training in it give the expected calls.

    Raises
    ------
    ValueError
        If anything is not as the full run writes it; the error names the first difference.
    OSError
        If there is no such file, or it is a folder, a device or a pipe.
    """
    try:
        contents = _contents(file)
        manifest = json.loads(contents.pop(MANIFEST))
        found, listed = _signatures(contents), manifest["files"]
        data = manifest["dataset"]["dataset"]
        _require(data in DATA, f"its data set is {data!r}; it should be one of {', '.join(DATA)}")
        _require(manifest["schema"] == SCHEMA, f"its schema is {manifest['schema']!r}; it should be {SCHEMA!r}")
        _require(listed.keys() == found.keys(), "the manifest lists other files than are there")
        _require(bool(found), "it holds no signature")
        starts = {"spatial": before_training(folder), "trailing": before_training(folder, pool="trailing")}
        for name, signature in found.items():
            network, pool, _ = name.split(".")
            same = hashlib.sha256(contents[name]).hexdigest() == listed[name]
            _require(same, f"{name} has another checksum than the manifest says")
            _right(name, signature, manifest["dataset"], starts[pool][network])
            both = pool == "trailing" or not other_pool(signature) or f"{network}.trailing.json" in found
            _require(both, f"{network} lacks the pool trailing")
            _require(pool == "spatial" or f"{network}.spatial.json" in found, f"{network} lacks the pool spatial")
    except OSError:
        raise
    except (zipfile.BadZipFile, zlib.error, RuntimeError, LookupError, TypeError, AttributeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ValueError(f"file: {file} is not installed: {reason}.") from error
    target = Path(folder) / "full" / f"{data}.json"
    target.parent.mkdir(exist_ok=True)
    store_results(target, {"manifest": manifest, "signatures": {name: _means(each) for name, each in found.items()}})
    return target


def _contents(file: str | os.PathLike[str]) -> dict[str, bytes]:
    """The bytes in a packed file by name. Raises ValueError unless these are the files of a full run, and small ones.

    If the file is encrypted or packed by an unknown method, zipfile raises a RuntimeError.
    """
    destination(file)  # a pipe would block, and a device could be read without end
    with zipfile.ZipFile(file) as archive:
        for each in archive.infolist():
            _require(each.filename in (*NAMES, MANIFEST), f"{each.filename!r} does not belong there")
            _require(each.file_size <= LARGEST, f"{each.filename} has {each.file_size} bytes; no result has as many")
        return {name: archive.read(name) for name in archive.namelist()}


def _require(sound: bool, text: str) -> None:
    if not sound:
        raise ValueError(text)


def _signatures(contents: Mapping[str, bytes]) -> dict[str, Signature]:
    """The signatures in a packed file, by name. Raises a ValueError that names the first file that is no signature."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name, data in contents.items():
            path = Path(place, name)
            path.write_bytes(data)
            try:
                found[name] = Signature.load(path)
            except ValueError as error:
                raise ValueError(str(error).replace(str(path), name)) from error
    return found


def _right(name: str, signature: Signature, dataset: Mapping[str, Any], start: Signature) -> None:
    """Raise ValueError unless a signature has the settings, the data, the weights and the calls of the full run."""
    network, pool, _ = name.split(".")
    about = signature.provenance
    weights = get_model_weights(network)[WEIGHTS.get(network, DEFAULT_WEIGHTS)]
    data, asked = about["data"], about["request"]
    count = EXPECTED.get(dataset["dataset"], 0)
    wanted = {
        "pool": (signature.pool, pool),
        "covariance": (signature.covariance, "ledoit_wolf"),
        "precision": (about["precision"], "full"),
        "companion measures": (list(signature.companions), list(MEASURES) if pool == "spatial" else []),
        "model": (about["model"], network),
        "weights": (about["weights"]["source"], weights.url),
        "data set": (asked["dataset"], dataset),
        "number of images": (data["images"], count),
        "batch size": (asked["batch_size"], BATCH_SIZE),
        "seed": (asked["seed"], 0),
        "number of batches": (len(signature.batch_sizes), count // BATCH_SIZE),
        "images in its batches": (sum(signature.batch_sizes), count // BATCH_SIZE * BATCH_SIZE - len(data["skipped"])),
        "number of calls": (len(signature.calls), len(start.calls)),
    }
    for what, (there, right) in wanted.items():
        _require(there == right, f"{name}: its {what} is {there!r}; it should be {right!r}")
    digits = weights.url.rpartition("-")[2].partition(".")[0]
    _require(about["weights"]["sha256"].startswith(digits), f"{name}: its weights are not torchvision's {weights}")
    for call, built in zip(signature.calls, start.calls, strict=True):
        # Only the channels of the shapes are compared, because the size of the pictures depends on the weights.
        channels, wanted_channels = (each.shape[each.channel_axis - 1] for each in (call, built))
        same = call.name == built.name and (pool == "trailing" or channels == wanted_channels)
        _require(same, f"{name}: its call {call.name} is not {built.name} of torchvision's architecture")


def _means(signature: Signature) -> dict[str, Any]:
    calls = [asdict(call) for call in signature.calls]
    about = {key: signature.provenance[key] for key in ("model", "weights", "data")}
    companions = {
        name: np.ma.masked_invalid(rows).mean(axis=0).filled(math.nan).tolist()
        for name, rows in signature.companions.items()
    }
    numbers = {"mean": signature.mean.tolist(), "std": signature.std.tolist(), "companions": companions}
    return {"calls": calls, "provenance": about, **rounded(numbers)}


def read_full(folder: str | os.PathLike[str]) -> Results | None:
    """The installed results of ImageNet, otherwise those of Imagenette, or None if there are none.

    Raises ValueError if the file is damaged.
    """
    files = [Path(folder) / "full" / f"{data}.json" for data in DATA]
    if not (there := [file for file in files if file.exists()]):
        return None
    return read_results(there[0], _results, SCRIPT)


def _results(content: Mapping[str, Any]) -> Results:
    signatures: dict[str, dict[str, Signature]] = {"spatial": {}, "trailing": {}}
    std = {}
    for name, stored in content["signatures"].items():
        network, pool, _ = name.split(".")
        rows = {key: np.array([row], dtype=np.float64) for key, row in stored["companions"].items()}
        mean, stds = (np.array([stored[key]], dtype=np.float64) for key in ("mean", "std"))  # None becomes NaN
        calls = [Call(**call | {"shape": tuple(call["shape"])}) for call in stored["calls"]]
        about = {"batch_sizes": [BATCH_SIZE], "provenance": stored["provenance"], "companions": rows}
        found = signatures[pool][network] = Signature(calls, mean, pool=pool, **about)
        if pool == "spatial":
            std[network] = float(np.nanmean(stds))
            # If channels come before space in all calls, both pools average over the same axes and share a signature.
            same = replace(found, pool="trailing", calls=[replace(call, channel_axis=-1) for call in calls])
            signatures["trailing"].setdefault(network, same)
    in_order = {pool: {name: each[name] for name in PAPER if name in each} for pool, each in signatures.items()}
    about = content["manifest"]
    return Results(about["dataset"]["dataset"], in_order, std, about["device"])
