"""Tables of the paper's trained networks: scores on other crops and with fewer channels, and computing times.

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
from affscore_book.imagenet_signatures.calls import places
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, Pair, paper_networks
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.explained import shares
from affscore_study.imagenet_signatures.trained import ends

__all__ = [
    "CROP_DRAWS", "equal_width_scores", "input_tables", "other_inputs", "time_table", "varied_networks",
    "width_table",
]  # fmt: skip

#: The number of draws of the crops that are stored.
CROP_DRAWS = 3
SCRIPT = "book/data/imagenet_signatures/make_paper.py"


def varied_networks(folder: str | os.PathLike[str]) -> dict[str, Signature]:
    """The signatures of the trained networks on crops of 45 other photographs, by name.

    Their starts were not measured on these. Raises FileNotFoundError if a signature is not stored.
    """
    return {name: Signature.load(Path(folder, "paper", f"{name}.trained.varied.0.json")) for name in PAPER_NETWORKS}


def equal_width_scores(folder: str | os.PathLike[str], state: str) -> dict[str, np.ndarray]:
    """The scores of ResNet-152 on the first draw of crops, with all channels and with 64 channels of each call.

    Returns float64 arrays of shape (calls,): ``"all"`` and ``"few"``, and those of the linear twins, ``"all_twin"`` and
    ``"few_twin"``. ``"few"`` is the mean over draws of 64 channels, which is the width of the narrowest calls.
    ``state`` is "trained" or "calibrated".

    Raises the errors of :func:`affscore_book.kit.stored.read_results`.
    """

    def build(found: dict[str, Any]) -> dict[str, np.ndarray]:
        return {key: np.array(found[key], dtype=np.float64) for key in ("all", "all_twin", "few", "few_twin")}

    return read_results(Path(folder, "paper", f"resnet152.{state}.channels.json"), build, f"{SCRIPT} --channels")


def width_table(folder: str | os.PathLike[str]) -> Table:
    """The zigzag of ResNet-152 with all channels and with 64 channels of each call, before and after training.

    Columns: state; channels of each call; the mean score inside the blocks and after the additions, and the difference;
    the same difference of the linear twins, which is due to shrinkage alone.
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
    """A table with a row for each stored batch: other crops, batch norm measured again, and before training.

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
    """The minutes of the trained networks for a batch on one core, of the forward pass and of the whole signature.

    They are medians over the draws of processor seconds, which other processes on the machine do not change much.
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
    """Tables that test the preprocessing: classes by ResNet-152, statistics of the first batch norm, edges by HED."""

    def build(found: dict[str, Any]) -> tuple[Table, ...]:
        return tuple(Table.from_rows(found[key]) for key in ("names", "statistics", "edges"))

    return read_results(Path(folder, "paper", "preprocessing.json"), build, SCRIPT)
