"""How non-linear is a neural network? The affinity score and non-linearity signatures."""

from affscore.score import AffineMap, affine_map, affinity_score, paired_affinity_score, wasserstein2

__all__ = ["AffineMap", "affine_map", "affinity_score", "paired_affinity_score", "wasserstein2"]
__version__ = "0.1.0"
