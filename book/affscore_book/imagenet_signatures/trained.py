"""Which calls of a trained network end a block, and what counts as one result where several seeds are trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from affscore.signatures import Signature

__all__ = ["TRAINED", "places"]


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
