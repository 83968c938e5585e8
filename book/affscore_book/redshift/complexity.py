"""How complex an image is: by its frequencies, and by how far it is from a ramp.

Source: Teney et al., "Neural redshift: random networks are not random functions", CVPR 2024 (complexity by Fourier).
The cosine transform in place of Fourier's and the unexplained variance are ours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["dct_frequency", "fourier_frequency", "unexplained_variance"]


def _image(image: Any) -> np.ndarray:
    """``image`` as a float64 array without its mean, of magnitude about 1, or an error that says what is wrong."""
    pixels = np.asarray(image, dtype=np.float64)
    if pixels.ndim != 2 or min(pixels.shape) < 2:
        raise ValueError(f"image has shape {pixels.shape}; it should be (rows, columns) with at least 2 of each.")
    if not np.isfinite(pixels).all():
        raise ValueError("image holds values that are NaN or infinite; all should be finite.")
    centred = pixels - pixels.mean()
    spread = np.abs(centred).max()
    constant = spread <= 1e-14 * np.abs(pixels).max()
    return np.zeros_like(pixels) if constant else centred / spread


def _weighted(power: np.ndarray, frequency: np.ndarray) -> float:
    total = power.sum()
    return float((power * frequency).sum() / total) if total > 0 else math.nan


def fourier_frequency(image: Any) -> float:
    """Mean radial frequency of the Fourier spectrum, weighted by power, as a fraction of the Nyquist frequency.

    The mean of the image is removed. With the transform ``F`` and frequencies ``u, v`` in cycles a pixel this is
    ``sum |F|^2 sqrt(u^2 + v^2) / (1/2) / sum |F|^2``. The transform takes the image as one tile of a periodic
    pattern, so the jumps between tiles count as high frequencies: a slow ramp does not come near 0.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = np.arange(32) / 32
    >>> round(fourier_frequency(np.tile(np.cos(2 * np.pi * 4 * x), (32, 1))), 6)      # 4 of 16 periods
    0.25
    """
    pixels = _image(image)
    u, v = (np.fft.fftfreq(n) for n in pixels.shape)
    return _weighted(np.abs(np.fft.fft2(pixels)) ** 2, 2 * np.hypot(u[:, None], v[None, :]))


def dct_frequency(image: Any) -> float:
    """Mean radial frequency of the cosine transform, weighted by power, in half periods an image.

    With the coefficients ``c_ij`` of the orthonormal DCT-II of the image without its mean:
    ``sum c_ij^2 sqrt(i^2 + j^2) / sum c_ij^2``. The transform takes the image as mirrored at its edges, where
    nothing jumps, so a slow ramp is near 1. That is the floor, half a period along one side: no image has less than 1.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = (np.arange(32) + 0.5) / 32
    >>> round(dct_frequency(np.outer(np.cos(np.pi * 3 * x), np.cos(np.pi * 4 * x))), 6)      # sqrt(9 + 16)
    5.0
    """
    pixels = _image(image)
    waves = [np.cos(np.pi * np.outer(np.arange(n), np.arange(n) + 0.5) / n) for n in pixels.shape]
    rows, columns = (wave / np.linalg.norm(wave, axis=1, keepdims=True) for wave in waves)
    power = (rows @ pixels @ columns.T) ** 2
    return _weighted(power, np.hypot(*np.indices(power.shape)))


def unexplained_variance(image: Any) -> float:
    """The share of an image's variance that its best plane does not explain, 1 - R^2 of a linear regression.

    Brightness is regressed on the two coordinates of the pixels. 0 for a ramp in any direction and for nothing else,
    so this measure has no floor; 1 where the best plane is level.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = np.linspace(-1, 1, 9)
    >>> [round(unexplained_variance(image), 9) for image in (np.add.outer(3 * x, x), np.add.outer(0 * x, x**2))]
    [0.0, 1.0]
    """
    pixels = _image(image)
    if not pixels.any():
        return math.nan
    columns = [axis.ravel() - axis.mean() for axis in np.indices(pixels.shape)]
    left = sum((column @ pixels.ravel()) ** 2 / (column @ column) for column in columns)
    return float(max(0.0, 1 - left / (pixels**2).sum()))
