"""Signatures of many networks on one data set, with which one command repeats the whole study of the paper.

``run_suite`` runs every network of a list (:func:`affscore_study.suite.runs.run`), skips finished ones, and continues
after a network that fails. ``affscore-study suite`` is the command; several processes can share the list
(:mod:`affscore_study.suite.processes`).
"""

from __future__ import annotations

import errno
import json
import operator
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from affscore.errors import AffscoreError
from affscore.files import check_folder
from affscore.settings import Settings
from affscore.signatures import read_signature
from affscore.zoo.datasets import fingerprint, load_dataset
from affscore.zoo.hub import HUBS
from affscore.zoo.models import available_models, load_model, weights_fingerprint
from affscore.zoo.names import WEIGHTS
from affscore.zoo.weights import require
from affscore_study.suite.requests import RunError, check_same, differences, is_finished
from affscore_study.suite.runs import file_name, run, set_aside

__all__ = ["Failure", "SuiteError", "run_suite"]

# After one of these errors, every other network would fail too.
_HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)


class SuiteError(AffscoreError, ValueError):
    """An error that concerns all networks of the suite, such as missing data."""


class Failure(NamedTuple):
    """A network that could not be measured, and the reason."""

    model: str
    reason: str


def run_suite(
    models: Sequence[str],
    folder: str | Path,
    *,
    dataset: str,
    root: str | Path | None = None,
    weights: str | os.PathLike[str] | None = None,
    batch_size: int = 512,
    batches: int | None = None,
    seed: int = 0,
    workers: int = 0,
    settings: Settings | None = None,
    device: str | torch.device | None = None,
    restart: bool = False,
    progress: bool = True,
) -> list[Failure]:
    """Measure many networks and write a file ``folder/MODEL.json`` for each.

    :func:`affscore_study.suite.runs.file_name` gives the name of the file. A second call measures the missing networks.
    The book's chapter ``imagenet_signatures`` compares such signatures.

    Parameters
    ----------
    models, weights
        As for :func:`affscore.zoo.models.load_model`, the same weights for all; None for ``IMAGENET1K_V1``, or
        :data:`affscore.zoo.names.WEIGHTS`.
    dataset, root, batch_size, batches, seed, workers
        As for :func:`affscore.zoo.datasets.load_dataset`.
    settings, device, restart
        As for :func:`affscore_study.suite.runs.run`.
    progress
        Show a progress bar for each network, and a line for each that was finished before.

    A network that fails does not stop the others. All failures are returned. Raises ValueError if a name is unknown or
    the data is missing, and OSError if the disk is full or cannot be written.
    """
    if unknown := [name for name in models if name.partition(":")[0] not in HUBS and name not in available_models()]:
        listed = ", ".join(map(repr, unknown))
        raise SuiteError(f"models: there is no model {listed}. affscore.zoo.models.available_models() lists all.")
    names = [file_name(name) for name in models]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        both = " and ".join(model for model, name in zip(models, names, strict=True) if name == twice)
        raise SuiteError(f"models: {both} would both be written to {twice}.json; give them folders of their own.")
    folder, settings = Path(folder), settings or Settings()
    if folder.exists() and not folder.is_dir():
        raise SuiteError(f"out: {folder} is a file; it should be a folder.")
    options: dict[str, Any] = {"batch_size": batch_size, "batches": batches, "seed": seed}
    images = fingerprint(dataset, root)
    images = {key: images[key] for key in ("dataset", "source", "images", "texts", "sha256") if key in images}
    named = {"dataset": images, "weights": weights if weights is None else Path(weights).name}
    request = json.loads(json.dumps(named | options | asdict(settings), default=operator.index))

    def measure(model: str, title: str) -> None:
        file = file_name(model)
        if restart:
            set_aside(folder, file)
        chosen = WEIGHTS.get(model) if weights is None else weights
        if _finished(folder / f"{file}.json", model, request, chosen):
            if progress:
                print(f"{title}: finished before, with the same weights, data and settings.", file=sys.stderr)
            return
        try:
            check_folder("out", folder)  # an error should come before hours of work
        except OSError as error:
            raise SuiteError(str(error)) from error
        net = load_model(model, weights=chosen, seed=seed)
        try:
            data = load_dataset(dataset, preprocess=net.preprocess, root=root, workers=workers, **options)
        except (ValueError, OSError) as error:
            raise SuiteError(str(error)) from error
        about = {"model": net.name, "weights": net.provenance, "request": request}
        with require("tqdm.auto").tqdm(desc=title, total=len(data), unit="batch", disable=not progress) as bar:
            run(net.model, data, folder, file, settings=settings, device=device, provenance=about, progress=bar.update)

    failures = []
    for number, model in enumerate(models, start=1):
        try:
            with redirect_stdout(sys.stderr):  # downloads announce themselves on standard output
                measure(model, f"{model} ({number} of {len(models)})")
        except SuiteError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _HOPELESS:
                raise
            failures.append(Failure(model, _reason(error)))
            if progress:
                print(f"affscore: {model} failed: {failures[-1].reason}", file=sys.stderr)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return failures


def _finished(path: Path, model: str, request: dict[str, Any], weights: str | os.PathLike[str] | None) -> bool:
    """Whether there is a finished signature. Raises RunError if it belongs to another request."""
    if not path.exists():
        return False
    found = read_signature(path)
    if not is_finished(found):
        return False
    stored = found.provenance
    asked = stored.get("request") or {}
    if not isinstance(asked.get("dataset"), dict):
        raise RunError(
            f"{path} has no checksum of its data: the command signature made it. Move it away, or start again with "
            "--restart, which renames it."
        )
    wanted = weights_fingerprint(model, weights, request["seed"])
    # Settings added since then had their default values.
    different = differences(json.loads(json.dumps(asdict(Settings()))) | asked, request)
    different += differences({key: stored["weights"].get(key) for key in wanted}, wanted, "weights")
    check_same(path, different)
    return True


def _reason(error: Exception) -> str:
    """The reason why a network failed, in one line, with the type of the error if it may be a bug."""
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError | torch.OutOfMemoryError)
    text = " ".join(str(error).split()) or type(error).__name__
    return text if expected else f"{type(error).__name__}: {text}"
