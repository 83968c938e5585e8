"""Many networks on one data set: the whole study of the paper with one command, and what it would cost.

:func:`run_suite` runs every network of a list (:func:`affscore.suite.runs.run`), skips what is done, and goes on after
a network that fails. :func:`estimate` says how many hours that takes from a short measurement (:func:`measure_speed`)
of the device at hand. The page on full-scale runs shows both; ``affscore suite`` is the command.
"""

from __future__ import annotations

import errno
import json
import math
import operator
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from affscore.arguments import whole_number
from affscore.errors import AffscoreError
from affscore.forward import tf32
from affscore.settings import Settings
from affscore.signatures import Signature
from affscore.suite.architectures import facts
from affscore.suite.ranks import Ranks
from affscore.suite.records import RecordError, differences, one_run, set_aside
from affscore.suite.runs import file_name, in_words, run
from affscore.suite.tables import Table
from affscore.zoo.datasets import fingerprint, load_dataset
from affscore.zoo.hub import HUBS
from affscore.zoo.models import available_models, load_model, weights_fingerprint
from affscore.zoo.weights import require

__all__ = [
    "PAPER", "REPRESENTATIVES", "SUITES", "WEIGHTS", "Failure", "SuiteError", "estimate", "measure_speed", "run_suite",
]  # fmt: skip

#: The 36 architectures of the paper (section 4 and Figure 16), by family.
PAPER = (
    "alexnet",
    "vgg11", "vgg13", "vgg16", "vgg19",
    "googlenet", "inception_v3",
    "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "densenet121", "densenet161", "densenet169", "densenet201",
    "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3",
    "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
    "vit_b_32", "vit_l_32", "vit_b_16", "vit_l_16", "vit_h_14",
    "swin_t", "swin_s", "swin_b",
    "convnext_tiny", "convnext_small", "convnext_base", "convnext_large",
)  # fmt: skip

#: Lists of networks by name. The weights of ``lites`` install with pip; those of ``paper`` are downloaded.
SUITES: dict[str, tuple[str, ...]] = {
    "paper": PAPER,
    "lites": ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"),
}

#: Weights of the networks that have no ``IMAGENET1K_V1``. The other set of vit_h_14 was trained on ImageNet in its
#: last layer only.
WEIGHTS = {"vit_h_14": "IMAGENET1K_SWAG_E2E_V1"}

#: One network of each of the paper's families, which :func:`measure_speed` times.
REPRESENTATIVES = (
    "alexnet", "vgg11", "googlenet", "inception_v3", "resnet18", "densenet121", "mnasnet1_0", "efficientnet_b1",
    "vit_b_32", "swin_t", "convnext_tiny",
)  # fmt: skip

# No other network would fare better after one of these.
_HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)


class SuiteError(AffscoreError, ValueError):
    """Something is wrong that no network of the suite can do without, such as the data."""


class Failure(NamedTuple):
    """A network that could not be measured, and why."""

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
    ranks: Ranks | None = None,
    progress: bool = True,
) -> list[Failure]:
    """Measure many networks, one ``folder/MODEL.json`` each (:func:`affscore.suite.runs.file_name`); run again, it does
    what is missing.

    Parameters
    ----------
    models, weights
        As for :func:`affscore.zoo.models.load_model`, the same weights for all; None for ``IMAGENET1K_V1``, or
        :data:`WEIGHTS`.
    dataset, root, batch_size, batches, seed, workers
        As for :func:`affscore.zoo.datasets.load_dataset`.
    settings, device, restart, ranks
        As for :func:`affscore.suite.runs.run`.
    progress
        Show a progress bar for each network, and say by what finished ones were compared.

    A failure of one network does not stop the others; all are returned. Raises ValueError or OSError if a name is
    unknown, the data cannot be had or the disk is full.
    """
    if unknown := [name for name in models if name.partition(":")[0] not in HUBS and name not in available_models()]:
        listed = ", ".join(map(repr, unknown))
        raise SuiteError(f"models: there is no model {listed}. affscore.zoo.models.available_models() lists all.")
    names = [file_name(name) for name in models]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        both = " and ".join(model for model, name in zip(models, names, strict=True) if name == twice)
        raise SuiteError(f"models: {both} would both be written to {twice}.json; give them folders of their own.")
    folder, settings, ranks = Path(folder), settings or Settings(), ranks or Ranks()
    if folder.exists() and not folder.is_dir():
        raise SuiteError(f"out: {folder} is a file; it should be a folder.")
    options: dict[str, Any] = {"batch_size": batch_size, "batches": batches, "seed": seed}
    images = ranks.one_first(lambda: fingerprint(dataset, root))
    images = {key: images[key] for key in ("dataset", "source", "images", "texts", "sha256") if key in images}
    named = {"dataset": images, "weights": weights if weights is None else Path(weights).name}
    request = json.loads(json.dumps(named | options | asdict(settings), default=operator.index))
    shown = progress and ranks.rank == 0

    def measure(model: str, title: str) -> None:
        file = file_name(model)
        if restart:
            ranks.one_first(lambda: set_aside(folder, file))
        chosen = WEIGHTS.get(model) if weights is None else weights
        # The first rank decides: another machine may not see its files.
        if same := ranks.gather(ranks.together(lambda: _finished(folder / f"{file}.json", model, request, chosen)))[0]:
            if shown:
                print(f"{title}: Finished before: same {same}.", file=sys.stderr)
            return
        net = ranks.one_first(lambda: load_model(model, weights=chosen, seed=seed))
        try:
            data = ranks.one_first(
                lambda: load_dataset(dataset, preprocess=net.preprocess, root=root, workers=workers, **options)
            )
        except (ValueError, OSError) as error:
            raise SuiteError(str(error)) from error
        about = {"model": net.name, "weights": net.provenance, "request": request}
        with require("tqdm.auto").tqdm(desc=title, total=len(data), unit="batch", disable=not shown) as bar:
            run(
                net.model, data, folder, file,
                settings=settings, device=device, provenance=about, ranks=ranks, progress=bar.update,
                say=(lambda text: bar.write(text, file=sys.stderr)) if shown else None,
            )  # fmt: skip

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
            if shown:
                print(f"affscore: {model} failed: {failures[-1].reason}", file=sys.stderr)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return failures


def _finished(path: Path, model: str, request: dict[str, Any], weights: str | os.PathLike[str] | None) -> str:
    """In words, what the signature there is was asked for as well, or ""; RecordError if for something else."""
    if not path.exists():
        return ""
    there = Signature.load(path).provenance
    asked = there.get("request") or {}
    if not isinstance(asked.get("dataset"), dict):
        raise RecordError(
            f"{path} has no checksum of the data that it was asked for: an older version made it, or the command "
            "signature. Move it away, or begin anew with --restart, which renames it."
        )
    own = weights_fingerprint(model, weights, request["seed"])
    # Settings that were added since then had no other value.
    asked = {name: value for name, value in asked.items() if name != "scoring"}  # once a setting, of no score's value
    different = differences(json.loads(json.dumps(asdict(Settings()))) | asked, request)
    old = {"kind": own["kind"]} | there["weights"]  # which older versions did not say
    different += differences({key: old.get(key) for key in own}, own, "weights")
    one_run(path, "signature", different)
    return f"weights ({in_words(own)}), data ({in_words(request['dataset'])}), settings"


def _reason(error: Exception) -> str:
    """Why a network failed, in one line; the type of the error too where it may be a bug."""
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError | torch.OutOfMemoryError)
    text = " ".join(str(error).split()) or type(error).__name__
    return text if expected else f"{type(error).__name__}: {text}"


def measure_speed(
    models: Iterable[str] = REPRESENTATIVES,
    *,
    device: str | torch.device = "cpu",
    images: int = 32,
    precision: str = "full",
    channels_last: bool = False,
) -> dict[str, float]:
    """Images per second through the bare forward pass of some networks, with random weights on random images.

    Each of ``models``, names that :func:`affscore.zoo.models.load_model` knows, is timed for two seconds after one pass
    that does not count; ``images`` pass through it at a time. The rest is as for :func:`affscore.signature`.
    """
    device, images, found = torch.device(device), whole_number("images", images, 1), {}
    for name in models:
        net = load_model(name, weights="random")
        if net.image_size is None:
            raise ValueError(f"models: {name!r} takes text; the time that it takes depends on the texts.")
        model = net.model.to(device)
        x = torch.randn(images, 3, net.image_size, net.image_size, device=device)
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        autocast = torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
        times: list[float] = []
        with torch.no_grad(), tf32(precision == "tf32"), autocast:
            while len(times) < 2 or times[-1] - times[0] < 2:  # the first pass does not count
                model(x)
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
                times.append(time.perf_counter())
        found[name] = (len(times) - 1) * images / (times[-1] - times[0])
    return found


def estimate(
    speed: Mapping[str, float], models: Sequence[str] = PAPER, *, images: int = 50_000, processes: int = 1
) -> Table:
    """The hours that the forward passes of a suite take, from the speed of a few networks on the same device.

    A network that was measured takes ``images / speed``. Another one is taken to do as many operations per second as
    the measured network that is most like it: of its family, or else its group, or else any, the nearest in
    operations per image. Loading and scoring run beside the forward pass; where they are slower, add to this
    (``benchmarks/loading.py`` and ``benchmarks/signature.py`` measure it).

    ``speed`` holds the images per second of some networks, as :func:`measure_speed` gives them; ``images`` pass through
    each network of ``models``, and ``processes`` devices share the work.

    Columns: model, GFLOPS (10^9 multiply-adds an image, from torchvision's metadata of the weights that the suite would
    take), measured (the network whose speed is used), images per second (of one device), hours. The last row is the
    sum. Raises ValueError if ``speed`` is empty or not positive, a number is below 1, or torchvision does not know a
    network's cost.

    Examples
    --------
    >>> estimate({"resnet18": 100.0}, ["resnet18", "vgg11"], images=36_000)
    model    | GFLOPS | measured | images per second | hours
    resnet18 |   1.81 | resnet18 |            100.00 |  0.10
    vgg11    |   7.61 | resnet18 |             23.84 |  0.42
    all      |      - | -        |                 - |  0.52
    """
    if not speed or not all(math.isfinite(value) and value > 0 for value in speed.values()):
        raise ValueError(f"speed is {dict(speed)!r}; it should hold a positive number for at least one network.")
    images, processes = whole_number("images", images, 1), whole_number("processes", processes, 1)
    # Measured with random weights, whose images have the size of the smallest set.
    known = {name: (facts(name), _gflops(name, None)) for name in speed}
    rows: list[dict[str, Any]] = []
    for model in models:
        own, gflops = facts(model), _gflops(model, WEIGHTS.get(model))
        like = (
            [name for name, (other, cost) in known.items() if name == model and cost == gflops]
            or [name for name, (other, _) in known.items() if other.family == own.family != "other"]
            or [name for name, (other, _) in known.items() if other.group == own.group != "other"]
            or list(known)
        )
        nearest = min(like, key=lambda name: abs(math.log(known[name][1] / gflops)))
        rate = speed[nearest] * known[nearest][1] / gflops
        row = {"model": model, "GFLOPS": gflops, "measured": nearest, "images per second": rate}
        rows.append(row | {"hours": images / rate / processes / 3600})
    total = sum(row["hours"] for row in rows)
    return Table.from_rows([*rows, dict.fromkeys(rows[0]) | {"model": "all", "hours": total}])


def _gflops(model: str, weights: str | None) -> float:
    cost = facts(model, weights).gflops
    if cost is None:
        raise ValueError(f"models: the cost of {model!r} is not known; torchvision's metadata has no such model.")
    return cost
