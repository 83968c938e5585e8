"""Features as they are, moved by the symmetries of ReLU or rotated, and the measures that should not see that."""

import math

import numpy as np

from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes

SEEDS = range(2)
SHAPES = {"vectors": (40, 6), "fewer samples than channels": (12, 30), "maps": (15, 5, 3, 4)}
RELU = {
    "procrustes": lambda x, y: procrustes(x, y, null=0).value,
    "max": lambda x, y: cka(x, y, "max", null=0).value,
    "laplace": lambda x, y: cka(x, y, "laplace", null=0).value,
}
ORTHOGONAL = {
    "procrustes": lambda x, y: procrustes(x, y, "orthogonal", null=0).value,
    "linear": lambda x, y: cka(x, y, "linear", null=0).value,
}


def draw(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Anisotropic, correlated and far from centred, as features are."""
    rng = np.random.default_rng(seed)
    mixed = np.moveaxis(rng.normal(size=shape), 1, -1) @ rng.normal(size=(shape[1], shape[1]))
    spread = np.exp(rng.normal(size=shape[1]))
    return np.moveaxis(np.maximum(mixed + 0.5, 0.1 * mixed) * spread + 3 * rng.normal(size=shape[1]), -1, 1)


def relu_moved(seed: int, x: np.ndarray) -> np.ndarray:
    """x A + 1 v^T for a permutation times positive scales over six orders of magnitude."""
    rng = np.random.default_rng(1000 + seed)
    d = x.shape[1]
    a = np.diag(np.exp(rng.uniform(-7, 7, size=d)))[:, rng.permutation(d)]
    shift = rng.normal(size=d) * a.max(0)
    return np.moveaxis(np.moveaxis(x, 1, -1) @ a + shift, -1, 1)


def rotated(seed: int, x: np.ndarray) -> np.ndarray:
    """c x Q + 1 v^T for an orthogonal Q, of either determinant."""
    rng = np.random.default_rng(2000 + seed)
    d = x.shape[1]
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return np.moveaxis(math.exp(rng.uniform(-3, 3)) * np.moveaxis(x, 1, -1) @ q + rng.normal(size=d), -1, 1)
