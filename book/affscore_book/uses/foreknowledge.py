"""What is to know the cost of making a call affine, and what else may know it (experiment E1).

:mod:`affscore_study.uses.correlations` compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CONTROLS", "RIVALS"]

Call = Mapping[str, Any]
Measure = Callable[[Call], float]
#: What is to know the cost beforehand, each the larger the less linear the call is.
RIVALS: dict[str, Measure] = {
    "1 − score": lambda call: 1 - call["score"],
    "twin − score": lambda call: call["twin"] - call["score"],
    "1 − paired R²": lambda call: 1 - call["r2"],
    "sign entropy": lambda call: call["sign_entropy"],
    "1 − CKA": lambda call: 1 - call["cka"],
    "sparsity": lambda call: call["sparsity"],
    "early position": lambda call: -call["position"],
}
#: What H1 is given; H2 is given the unexplained share of the variance as well.
CONTROLS: dict[str, Measure] = {
    "position": lambda call: call["position"],
    "log channels": lambda call: math.log(call["channels"]),
    "log positions": lambda call: math.log(call["positions"]),
    "variance share": lambda call: call["variance_share"],
}
