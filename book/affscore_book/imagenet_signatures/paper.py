"""What Bouniot et al., CVPR 2025, and its slides say about ImageNet models: their numbers, and ours beside them.

Numbers quoted from them are in capitals; ours never are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from affscore.suite.architectures import facts
from affscore.suite.tables import Table
from affscore_book.kit.claims import Claim

__all__ = [
    "AVERAGES",
    "DEVIATIONS",
    "FAMILY_MEASURES",
    "HEADINGS",
    "SLIDE_STDS",
    "TABLE_2",
    "table_1_claims",
    "table_2",
]

#: Columns of the paper's Table 2, and their headings in :func:`affscore.suite.compare.companion_correlations`.
HEADINGS = {"cka": "CKA", "norm": "norm", "sparsity": "sparsity", "entropy": "entropy", "r2": "R2"}
#: Table 2 (appendix E): Pearson correlation of each measure with the score over the calls of a pretrained network.
TABLE_2: dict[str, tuple[float, float, float, float, float]] = {
    "alexnet": (-0.75, -0.86, 0.14, -0.80, -0.41),
    "vgg11": (-0.07, -0.76, -0.15, -0.95, -0.27),
    "vgg13": (0.08, -0.66, -0.23, -0.93, -0.26),
    "vgg16": (0.01, -0.63, -0.19, -0.88, -0.17),
    "vgg19": (-0.01, -0.62, -0.15, -0.86, -0.14),
    "googlenet": (0.74, -0.60, -0.83, -0.49, 0.73),
    "inception_v3": (0.69, -0.66, -0.75, -0.45, 0.35),
    "resnet18": (0.59, -0.17, -0.67, -0.30, -0.44),
    "resnet34": (0.48, -0.18, -0.65, -0.19, -0.08),
    "resnet50": (0.56, -0.60, -0.71, -0.50, -0.78),
    "resnet101": (0.51, -0.57, -0.70, -0.51, -0.64),
    "resnet152": (0.52, -0.51, -0.68, -0.42, -0.48),
    "densenet121": (0.84, -0.75, -0.87, -0.62, 0.82),
    "densenet161": (0.87, -0.74, -0.87, -0.67, 0.81),
    "densenet169": (0.87, -0.74, -0.87, -0.67, 0.81),
    "densenet201": (0.89, -0.75, -0.91, -0.67, 0.90),
    "efficientnet_b1": (0.35, -0.41, -0.39, 0.01, 0.03),
    "efficientnet_b2": (0.49, -0.02, -0.44, -0.06, 0.34),
    "efficientnet_b3": (0.32, -0.12, -0.18, -0.13, 0.18),
    "efficientnet_b4": (0.30, -0.51, -0.29, -0.44, 0.11),
    "vit_b_32": (0.47, -0.31, -0.29, 0.39, 0.51),
    "vit_l_32": (-0.14, -0.61, -0.47, -0.02, -0.06),
    "vit_b_16": (-0.27, -0.71, 0.04, 0.39, -0.22),
    "vit_l_16": (-0.39, -0.89, -0.66, -0.23, -0.24),
    "vit_h_14": (-0.77, -0.83, 0.92, 0.31, -0.49),
    "swin_t": (-0.12, -0.39, -0.02, -0.42, -0.06),
    "swin_s": (-0.003, -0.61, -0.31, 0.18, -0.03),
    "swin_b": (-0.32, -0.59, -0.43, 0.42, -0.32),
    "convnext_tiny": (0.77, -0.01, -0.04, 0.09, 0.80),
    "convnext_small": (0.57, 0.22, 0.25, 0.13, 0.72),
    "convnext_base": (0.67, 0.41, 0.35, -0.03, 0.82),
    "convnext_large": (0.75, 0.23, 0.35, -0.10, 0.84),
}
#: Last row of Table 2: mean and standard deviation of each column.
AVERAGES = {
    "cka": (0.31, 0.45),
    "norm": (-0.44, 0.35),
    "sparsity": (-0.31, 0.43),
    "entropy": (-0.29, 0.39),
    "r2": (0.13, 0.50),
}
#: Table 1 (section 4): the measure that correlates most with the score in each family, as far as the text has it:
#: the paper's name of the family, and ours, the measure and the correlation.
FAMILY_MEASURES = {
    "VGGs": ("VGG", "entropy", -0.90),
    "ResNets": ("ResNet", "sparsity", -0.68),
    "DenseNets": ("DenseNet", "sparsity", -0.89),
    "MNASNets": ("MNASNet", "cka", 0.67),
    "EffNets": ("EfficientNet", "cka", 0.42),
    "ViTs": ("ViT", "norm", -0.67),
    "Swins": ("Swin", "norm", -0.53),
    "Convnexts": ("ConvNeXt", "r2", 0.79),
}
#: Slides: standard deviation of the scores over batches of 512, mean over the calls of a pretrained network.
SLIDE_STDS = {
    "alexnet": 0.005,
    "vgg16": 0.008,
    "resnet152": 0.005,
    "densenet161": 0.020,
    "efficientnet_b4": 0.018,
    "vit_h_14": 0.013,
    "swin_b": 0.016,
    "convnext": 0.017,
}
#: Slides: DTW distance between the signatures on a data set and on ImageNet, mean and std over the architectures.
DEVIATIONS = {"cifar100": (0.26, 0.11), "cifar10": (0.28, 0.11), "random": (0.77, 0.32)}


def table_1_claims(correlations: Table) -> list[Claim]:
    """The paper's Table 1 beside the same means from :func:`affscore.suite.compare.companion_correlations`.

    A claim is accepted if our mean has the same sign and at least half the size. In-sample R2 is 1 in every call with
    more channels than images and has no correlation then: that claim says what it needs.
    """
    families = np.array([facts(str(name)).family for name in correlations["model"]])
    claims = []
    for theirs, (family, measure, value) in FAMILY_MEASURES.items():
        found = correlations[HEADINGS[measure]][families == family]
        found = found[np.isfinite(found)]
        ours = float(found.mean()) if len(found) else None
        accept = (value / 2, 1.0) if value > 0 else (-1.0, value / 2)
        needs = "" if len(found) else "batches with more images than channels"
        claims.append(Claim(f"{theirs}: {measure}", "Table 1", value, ours, accept, needs))
    return claims


def table_2() -> Table:
    """The paper's Table 2 in the columns of :func:`affscore.suite.compare.companion_correlations`."""
    means, stds = zip(*AVERAGES.values(), strict=True)
    columns: dict[str, Any] = {"model": [*TABLE_2, "mean", "std"], "weights": ["pretrained"] * len(TABLE_2) + ["", ""]}
    values = zip(*TABLE_2.values(), means, stds, strict=True)
    return Table(columns | dict(zip(HEADINGS.values(), values, strict=True)))
