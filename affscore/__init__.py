"""How non-linear is a neural network? The affinity score and non-linearity signatures."""

from importlib.metadata import version

from affscore.affine import AffineMap, affine_map
from affscore.engine import signature
from affscore.score import affinity_score, paired_affinity_score, wasserstein2
from affscore.signature import Signature, SignatureError

__version__ = version("affscore")

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
