"""What the paper says of the EfficientNets' signatures, asked of their small relatives; and what training changes.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import skew

from affscore import Signature
from affscore.suite.tables import Table
from affscore_book.kit.claims import Claim, ClaimTable

__all__ = ["before_and_after", "load_lites", "skewness"]


def stored(folder: str | Path, size: int, kind: str, batch: int) -> Signature:
    """The stored signature of EfficientNet-Lite ``size`` on crops of photographs."""
    return Signature.load(Path(folder) / f"efficientnet_lite{size}.{kind}.photographs.{batch}.spatial.json")


def load_lites(folder: str | Path) -> list[Signature]:
    """The stored signatures of the three trained EfficientNet-Lites on crops of photographs, batches of 128."""
    return [stored(folder, size, "imagenet", 128) for size in range(3)]


def before_and_after(folder: str | Path, untrained: Signature, trained: Signature) -> Table:
    """Median and spread of the scores of EfficientNet-Lite0 in batches of three sizes, two of them stored.

    "Before" has random weights and batch norm set.
    """
    pairs = [(stored(folder, 0, "calibrated0", size), stored(folder, 0, "imagenet", size)) for size in (64, 128)]
    return Table.from_rows(
        [
            {
                "batch": pair[0].batch_sizes[0],
                "median before": float(np.median(pair[0].mean)),
                "median after": float(np.median(pair[1].mean)),
                "spread before": float(pair[0].mean.std()),
                "spread after": float(pair[1].mean.std()),
            }
            for pair in (*pairs, (untrained, trained))
        ]
    )


def skewness(signatures: Sequence[Signature]) -> ClaimTable:
    """Skewness of the scores, and their median minus the middle of their range: the mean and range over networks."""
    scores = [signature.mean for signature in signatures]
    skewed = [float(skew(each)) for each in scores]
    centred = [float(np.median(each) - (each.min() + each.max()) / 2) for each in scores]
    source, inf = "CVPR 2025, section 4", math.inf
    rows = [
        Claim(what, source, theirs, float(np.mean(each)), accept, "", (min(each), max(each)))
        for what, theirs, each, accept in (
            ("skewness, three Lites", "strong, negative", skewed, (-inf, -0.5)),
            ("median − middle, three Lites", "higher linearity", centred, (0.0, inf)),
        )
    ]
    needs = "ImageNet and the weights of torchvision"
    rows.append(Claim("skewness, B1 to B4", source, "strong, negative", None, None, needs))
    return ClaimTable(rows, digits=2)
