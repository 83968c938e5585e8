"""A control for a slide on the history: are deeper networks still the more linear if both sides have batch norm?

The decade in miniature asks what the slide says, of an AlexNet and a VGG16 without norm, which are the slide's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from affscore_book.decade.claims import statistic
from affscore_book.decade.collection import Trained
from affscore_book.kit.claims import HIGHER, Claim
from affscore_book.kit.statistics import student_interval

__all__ = ["deeper_with_norm"]

#: What stands for the slides' Resnet152, Densenet161 and Efficientnet B4, and for their VGG16, with norm.
DEEPER, EARLY = ("resnet34", "densenet40", "efficientnet"), "vgg16_bn"


def deeper_with_norm(decade: Mapping[str, Mapping[int, Trained]]) -> Claim:
    """Mean score of each deeper architecture − that of VGG16 with norm, each a mean over its seeds.

    The interval is over the deeper architectures: there is one VGG16. The rule was set after a look.
    """
    level = {name: np.mean([statistic(np.mean, each) for each in decade[name].values()]) for name in (*DEEPER, EARLY)}
    found = student_interval([float(level[name] - level[EARLY]) for name in DEEPER])
    return Claim.over("mean score, ResNet34, DenseNet40 and EfficientNet − VGG16 with norm, by deeper architectures",
                      "ours, of the slides' Deeper Networks", "higher with norm on both sides", found, HIGHER,
                      kind="own", seen=True)  # fmt: skip
