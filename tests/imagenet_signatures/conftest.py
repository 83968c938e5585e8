"""What several tests of this room build."""

import numpy as np
import pytest

from affscore import Signature
from affscore.calls import Call


def made_blocks(scores, zeros=None, calls=2, companions=()) -> Signature:
    """One score for the stem and ``calls`` for each block, one batch; ``zeros`` is the part of outputs that is zero."""
    names = ["relu", *(f"block{i // calls + 1}.relu{i % calls + 1}" for i in range(len(scores) - 1))]
    calls = [Call(f"{name}:relu[0]", name, "relu", 0, False, (4, 8, 8), 1) for name in names]
    companions = {"sparsity_after": np.atleast_2d(scores if zeros is None else zeros)} | dict(companions)
    return Signature(calls, np.atleast_2d(scores), batch_sizes=[512], companions=companions)


@pytest.fixture(scope="session")
def block_network():
    """Makes signatures with the calls of a residual network: a stem, then blocks of two."""
    return made_blocks
