"""How non-linear is a neural network? The affinity score and non-linearity signatures."""

__version__ = "0.1.0"

from affscore.score import AffineMap, affine_map, affinity_score, paired_affinity_score, wasserstein2
from affscore.signature import Signature, SignatureError, signature

__all__ = [
    "AffineMap",
    "Signature",
    "SignatureError",
    "affine_map",
    "affinity_score",
    "paired_affinity_score",
    "signature",
    "wasserstein2",
]
