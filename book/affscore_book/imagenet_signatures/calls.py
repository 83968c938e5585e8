"""The calls of a network beside its modules and its blocks, and what counts as one result of several seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn

from affscore.signatures import Signature
from affscore.zoo.models import require

__all__ = ["TRAINED", "activation_modules", "places"]


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


def places(signature: Signature) -> dict[str, np.ndarray]:
    """Which calls of a ResNet, or of its plain twin, end a block, and which are inside one.

    Returns two arrays of bool, (calls,): ``"inside its block"`` and ``"last in its block"``. A call outside all blocks
    is in neither. In a ResNet the last call of a block follows the addition.
    """
    blocks = [call.module.rpartition(".")[0] for call in signature.calls]
    last = np.array([bool(block) and block not in blocks[i + 1 :] for i, block in enumerate(blocks)])
    return {"inside its block": np.array([bool(block) for block in blocks]) & ~last, "last in its block": last}


#: What may be counted as one result of a trained network: by its name, which group it belongs to.
TRAINED: Mapping[str, Callable[[str], str]] = {
    "networks": str,
    "architectures": lambda network: network.partition(",")[0],
    "kinds": lambda network: "lite" if "lite" in network else network.partition(",")[0],
}
