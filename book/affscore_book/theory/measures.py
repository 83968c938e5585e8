"""What the theorems are about, as plain functions of arrays: covariances, their roots, and PSD-affine images."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["covariance", "fixed_image", "outlier_pair", "random_psd", "root"]

Array = NDArray[np.float64]


def covariance(x: ArrayLike) -> Array:
    """The empirical covariance (1/n) of samples of shape (n, d); shape (d, d)."""
    return np.atleast_2d(np.cov(np.asarray(x).T, bias=True))


def root(matrix: Array, power: float = 0.5) -> Array:
    """A power of a symmetric PSD matrix; directions of eigenvalue 0 stay 0, also for a negative power.

    >>> root(np.diag([4.0, 0.0]), -0.5)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    keep = values > 1e-13 * max(values[-1], 1e-300)
    return (vectors[:, keep] * values[keep] ** power) @ vectors[:, keep].T


def random_psd(d: int, rng: np.random.Generator) -> Array:
    """A random symmetric positive definite matrix of shape (d, d): B B^T / d with B standard normal."""
    b = rng.normal(size=(d, d))
    return b @ b.T / d


def fixed_image(x: Array, seed: int = 0) -> Array:
    """An exact PSD-affine image of samples of shape (n, d)."""
    rng = np.random.default_rng([seed, 1])
    return x @ random_psd(x.shape[1], rng) + rng.normal(size=x.shape[1])


def outlier_pair(seed: int = 0) -> tuple[Array, Array]:
    """x has one outlier, so that its covariance is shrunk hard. y lies evenly at both ends of the outlier's line."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=20)
    ends = np.tile([-1.0, 1.0], 12)[:, None] * (direction / np.linalg.norm(direction))
    x, y = 0.1 * rng.normal(size=ends.shape), 0.01 * rng.normal(size=ends.shape) + ends
    x[0] += 10 * ends[0]
    return x, y
