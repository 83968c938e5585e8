"""How many activations a network of torchvision has as modules, to set beside the number of its calls."""

from __future__ import annotations

import torch
from torch import nn

from affscore.zoo.models import require

__all__ = ["activation_modules"]


def activation_modules(name: str) -> int:
    """How many activation modules a network of torchvision has: what hooks on modules can see.

    >>> activation_modules("alexnet"), activation_modules("googlenet")
    (7, 0)
    """
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device("meta"):
        network = require("torchvision.models").get_model(name, **options)
    kinds = [type(m) for m in network.modules() if not isinstance(m, nn.MultiheadAttention)]
    return sum(kind.__module__ == "torch.nn.modules.activation" for kind in kinds)
