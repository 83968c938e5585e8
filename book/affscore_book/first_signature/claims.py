"""What the paper says of the EfficientNets' signatures, and what training changes in those of a small relative.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 4.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from affscore import Signature
from affscore.suite.tables import Table
from affscore_book.kit.claims import Claim, ClaimTable

__all__ = ["before_and_after", "not_run"]


def before_and_after(folder: str | Path, untrained: Signature, trained: Signature) -> Table:
    """Median and spread of the scores of EfficientNet-Lite0 in batches of three sizes, two of them stored.

    "Before" has random weights and batch norm set.
    """
    pairs = [
        [Signature.load(Path(folder) / f"efficientnet_lite0.{kind}.photographs.{size}.spatial.json")
         for kind in ("calibrated0", "imagenet")] for size in (64, 128)
    ]  # fmt: skip
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


def not_run() -> ClaimTable:
    """The source's sentence on the skewness of its own networks."""
    needs = "ImageNet and the weights of torchvision"
    theirs = '"strong negative skewness"'
    return ClaimTable([Claim("skewness, EfficientNet B1 to B4", "CVPR 2025, section 4", theirs, None, None, needs)])
