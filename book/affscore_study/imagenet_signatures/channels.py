"""A control for the number of channels: scores of ViT, MNASNet and VGG16 before training, with all channels and 50.

``book/data/imagenet_signatures/make.py --channels`` writes the stored scores with :func:`channel_control`. More
channels than pictures can raise a score, and a pool changes the number of channels too. The score of the linear twin
(:func:`affscore.companions.linear_twin`) shows how far a score would fall if the activation were affine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from affscore import affinity_score
from affscore.companions import linear_twin
from affscore.tracing import trace
from affscore_book.kit.architectures import facts
from affscore_book.kit.statistics import Interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.explained import group_gap

__all__ = ["channel_control", "channel_gap", "channel_medians", "channel_scores", "channel_table"]

#: The families that are compared.
FAMILIES = ("ViT", "MNASNet")
#: The number of draws of the kept channels, over which scores are averaged.
CHOICES = 5


def channel_control(
    model: nn.Module, parts: Sequence[Tensor], kept: int, pool: str = "spatial"
) -> dict[str, list[float | None]]:
    """The scores of each call and of its linear twin, with all channels and with ``kept`` channels drawn at random.

    Returns
    -------
    Lists of shape (calls,), rounded to five digits, with None for NaN: ``"all"``, and ``"few"``, the mean over
    :data:`CHOICES` draws, and for the linear twins ``"all_twin"`` and ``"few_twin"``. A call with ``kept`` channels or
    fewer keeps them all.
    """
    seen = []
    for part in parts:
        with torch.no_grad(), trace(model, batch=len(part), pool=pool) as traced:
            model(part)
        seen.append(traced.observations)
    found: dict[str, list[float | None]] = {name: [] for name in ("all", "all_twin", "few", "few_twin")}
    for at, of_call in enumerate(zip(*seen, strict=True)):
        x, y = (torch.cat([getattr(each, side) for each in of_call]).double() for side in ("before", "after"))
        random = torch.Generator().manual_seed(at)
        chosen = [torch.randperm(x.shape[1], generator=random)[:kept] for _ in range(CHOICES)]
        few = torch.tensor([_with_twin(x[:, some], y[:, some]) for some in chosen]).mean(dim=0).tolist()
        for row, value in zip(found.values(), [*_with_twin(x, y), *few], strict=True):
            row.append(None if value != value else round(value, 5))
    return found


def _with_twin(x: Tensor, y: Tensor) -> list[float]:
    """The score of a call, and the score of its linear twin."""
    return [affinity_score(x, other, covariance="ledoit_wolf").item() for other in (y, linear_twin(x, y))]


def channel_medians(folder: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """For each network of :data:`FAMILIES`, cheapest first, the medians over its calls by the names in its file.

    Raises
    ------
    FileNotFoundError
        If ``folder`` holds no such scores.
    ValueError
        If a file is damaged.
    """
    names = {path.stem for path in _files(folder, "*") if "." not in path.stem}
    kept = sorted((name for name in names if facts(name).family in FAMILIES), key=lambda name: facts(name).gflops or 0)
    stored = {name: _lists(Path(folder, "channels", f"{name}.json")) for name in kept}
    return {name: {key: float(np.nanmedian(values)) for key, values in lists.items()} for name, lists in stored.items()}


def channel_scores(folder: str | os.PathLike[str], network: str) -> list[dict[str, np.ndarray]]:
    """The scores of the calls of one network, float64 of shape (calls,), by the names in its files.

    The list has an entry for each file, which holds one draw of the weights. Raises the errors of
    :func:`channel_medians`.
    """
    return [_lists(path) for path in _files(folder, f"{network}*")]


def _files(folder: str | os.PathLike[str], stem: str) -> list[Path]:
    files = sorted(Path(folder, "channels").glob(f"{stem}.json"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no scores with fewer channels; run make.py --channels.")
    return files


def _lists(path: Path) -> dict[str, np.ndarray]:
    stored = read_results(path, dict, "make.py --channels")
    return {name: np.array(each, dtype=np.float64) for name, each in stored.items() if isinstance(each, list)}


def channel_table(medians: Mapping[str, Mapping[str, float]]) -> Table:
    """The median scores of each network with all channels, with 50 and by the trailing pool, and those of its twins.

    If the trailing pool averages over the same axes as the spatial one, its scores are those of all channels.
    """
    rows = []
    for name, found in medians.items():
        row: dict[str, float | str] = {"network": name}
        trailing = "trailing" if "trailing" in found else "spatial"
        for column, key in (("all channels", "spatial"), ("50 channels", "spatial50"), ("trailing", trailing)):
            row |= {column: found[key], f"twin, {column.split()[0]}": found[f"{key}_twin"]}
        rows.append(row)
    return Table.from_rows(rows)


def channel_gap(medians: Mapping[str, Mapping[str, float]]) -> Interval:
    """The mean of ViT's medians with 50 channels a call minus that of MNASNet's, with Welch's interval."""
    vit, mnasnet = (
        [found["spatial50"] for name, found in medians.items() if facts(name).family == family] for family in FAMILIES
    )
    return group_gap(vit, mnasnet)
