"""The trained networks of the paper on other crops, with fewer channels, and by the time that they take.

``book/data/imagenet_signatures/make_paper.py`` wrote the files, beside the pairs of
:mod:`affscore_book.imagenet_signatures.paper_networks`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, Pair, paper_networks
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.explained import shares
from affscore_study.imagenet_signatures.trained import ends

__all__ = [
    "CROP_DRAWS", "equal_width_scores", "input_tables", "other_inputs", "time_table", "varied_networks",
    "width_table",
]  # fmt: skip

#: How many draws of the crops are stored.
CROP_DRAWS = 3
SCRIPT = "book/data/imagenet_signatures/make_paper.py"


def varied_networks(folder: str | os.PathLike[str]) -> dict[str, Signature]:
    """The trained networks on crops of 45 other photographs, by name; their starts were not measured on these.

    Raises FileNotFoundError if one is not stored.
    """
    return {name: Signature.load(Path(folder, "paper", f"{name}.trained.varied.0.json")) for name in PAPER_NETWORKS}


def equal_width_scores(folder: str | os.PathLike[str], state: str) -> dict[str, np.ndarray]:
    """The scores of ResNet-152, first draw, with all channels and with equally many of each call.

    Returns arrays of (calls,): ``"all"`` and ``"few"``, and those of the linear twins, ``"all_twin"`` and
    ``"few_twin"``. "few" is the mean over draws of 64 channels, as many as the narrowest calls have. ``state`` is
    "trained" or "calibrated".

    Errors as :func:`affscore_book.kit.stored.read_results`.
    """

    def build(found: dict[str, Any]) -> dict[str, np.ndarray]:
        return {key: np.array(found[key], dtype=np.float64) for key in ("all", "all_twin", "few", "few_twin")}

    return read_results(Path(folder, "paper", f"resnet152.{state}.channels.json"), build, f"{SCRIPT} --channels")


def width_table(folder: str | os.PathLike[str]) -> Table:
    """What is left of the difference in ResNet-152 with equally many channels: before training, and trained.

    Columns: state; channels of each call; the mean score inside the blocks and after the additions, and the difference;
    the same difference of the linear twins, which only shrinkage makes.
    """
    inside, last = places(paper_networks(folder)["resnet152"].trained).values()
    rows: list[dict[str, float | str]] = []
    for state, shown in {"calibrated": "before training", "trained": "trained"}.items():
        found = equal_width_scores(folder, state)
        for key, channels in {"all": "all", "few": "64"}.items():
            low, high = (float(found[key][at].mean()) for at in (inside, last))
            twins = found[f"{key}_twin"]
            row: dict[str, float | str] = {"ResNet-152": shown, "channels": channels, "inside": low, "after": high}
            of_twins = float(twins[last].mean() - twins[inside].mean())
            rows.append(row | {"difference": high - low, "of twins": of_twins})
    return Table.from_rows(rows)


def other_inputs(folder: str | os.PathLike[str]) -> Table:
    """Each network on other crops, with batch norm measured again, and before training: a row a stored batch.

    Columns: network; crops; mean score; for the ResNets the means inside the blocks and after the additions; r2, the
    squared correlation over the calls with the first row of the network.
    """
    what = {
        "trained.photographs.0": "ten photographs", "trained.photographs.1": "ten photographs, other crops",
        "trained.photographs.2": "ten photographs, other crops again", "trained.varied.0": "45 photographs",
        "renormed.photographs.0": "ten, normalised, batch norm measured again",
        "calibrated.photographs.0": "ten, before training, batch norm set",
        "random.photographs.0": "ten, before training, nothing set",
    }  # fmt: skip
    rows = []
    for name, shown in PAPER_NETWORKS.items():
        first = None
        for stem, crops in what.items():
            if (path := Path(folder, "paper", f"{name}.{stem}.json")).exists():
                found = Signature.load(path)
                first = found if first is None else first
                inside, last = ends(found) if name != "vgg16" else (np.nan, np.nan)
                row = {"network": shown, "crops": crops, "mean": float(found.mean.mean())}
                same = float(shares(found.mean[None], first.mean[None])[0, 0])
                rows.append(row | {"inside": inside, "after": last, "r2": same})
    return Table.from_rows(rows)


def time_table(draws: Sequence[Mapping[str, Pair]]) -> Table:
    """Time of the trained networks on one core: minutes for a batch, of a bare forward pass and of the whole signature.

    Medians over the draws, from processor seconds, which other processes on the machine do not lengthen much.
    """
    rows = []
    for name, shown in PAPER_NETWORKS.items():
        found = [pairs[name].trained for pairs in draws]
        spent = [each.provenance["cpu_seconds_an_image"] for each in found]
        images = found[0].batch_sizes[0]
        forward, whole = (float(np.median([each[key] for each in spent])) for key in ("forward", "signature"))
        row = {"network": shown, "calls": len(found[0].calls), "images": images}
        row |= {"forward pass, min": forward * images / 60, "signature, min": whole * images / 60}
        rows.append(row | {"ratio": whole / forward})
    return Table.from_rows(rows)


def input_tables(folder: str | os.PathLike[str]) -> tuple[Table, ...]:
    """Which input fits each network: classes by ResNet-152, statistics of the first batch norm, edges by HED."""

    def build(found: dict[str, Any]) -> tuple[Table, ...]:
        return tuple(Table.from_rows(found[key]) for key in ("names", "statistics", "edges"))

    return read_results(Path(folder, "paper", "preprocessing.json"), build, SCRIPT)
