"""How complex an image is: by its frequencies, its degree as a polynomial, its shortest description, its bend.

Source: Teney et al., "Neural redshift: random networks are not random functions", CVPR 2024 (complexity by Fourier,
polynomials and Lempel-Ziv). The cosine transform in place of Fourier's and the bend are ours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.fft import dctn

__all__ = ["bend", "chebyshev_degree", "dct_frequency", "fourier_frequency", "lempel_ziv"]


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

    With the coefficients ``c_ij`` of the orthonormal DCT-II, ``c_00`` dropped:
    ``sum c_ij^2 sqrt(i^2 + j^2) / sum c_ij^2``. The transform takes the image as mirrored at its edges, where
    nothing jumps, so a slow ramp is near 1. That is the floor: no image has less than 1.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = (np.arange(32) + 0.5) / 32
    >>> round(dct_frequency(np.outer(np.cos(np.pi * 3 * x), np.cos(np.pi * 4 * x))), 6)      # sqrt(9 + 16)
    5.0
    """
    power = dctn(_image(image), norm="ortho") ** 2
    power[0, 0] = 0.0
    return _weighted(power, np.hypot(*np.indices(power.shape)))


def bend(image: Any) -> float:
    """The share of an image's variance that its best plane does not explain, 1 - R^2 of a linear regression.

    Brightness is regressed on the two coordinates of the pixels. 0 for a ramp in any direction and for nothing else,
    so this measure has no floor; 1 where the best plane is level.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> x = np.linspace(-1, 1, 9)
    >>> round(bend(np.add.outer(3 * x, x)), 9), round(bend(np.add.outer(0 * x, x**2)), 9)
    (0.0, 1.0)
    """
    pixels = _image(image)
    if not pixels.any():
        return math.nan
    columns = [axis.ravel() - axis.mean() for axis in np.indices(pixels.shape)]
    left = sum((column @ pixels.ravel()) ** 2 / (column @ column) for column in columns)
    return float(max(0.0, 1 - left / (pixels**2).sum()))


def chebyshev_degree(image: Any) -> float:
    """Mean degree of the expansion in Chebyshev polynomials, weighted by power, of an image on Chebyshev nodes.

    The function is sampled on ``grid_points(n, nodes="chebyshev")``, there ``f = sum a_ij T_i(x) T_j(y)`` exactly,
    and the result is ``sum w_ij a_ij^2 sqrt(i^2 + j^2) / sum w_ij a_ij^2`` without the constant, ``w_ij`` the squared
    norm of ``T_i T_j`` on the nodes. Because ``T_k(cos t) = cos(k t)`` this is :func:`dct_frequency` on these nodes:
    a polynomial fit of any degree without an ill-conditioned matrix.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> from affscore_book.redshift.networks import grid_points
    >>> x, y = grid_points(16, nodes="chebyshev").T
    >>> round(chebyshev_degree(((4 * x**3 - 3 * x) * (8 * y**4 - 8 * y**2 + 1)).reshape(16, 16)), 6)     # T_3 T_4
    5.0
    """
    return dct_frequency(image)


def lempel_ziv(image: Any) -> float:
    """Lempel-Ziv complexity (1976) of the image in ten grey levels, divided by that of noise.

    Pixels are quantised to ten equal steps between the lowest and the highest, and read row by row and column by
    column, in a zigzag. Each of the two strings, of length N, is cut into its shortest phrases that have not occurred
    before, P of them; the result is the mean of ``P log(N) / (N log(10))``, which tends to 1 for uniform noise when N
    is large.

    ``image`` has shape (rows, columns). NaN for a constant image. Raises ValueError for other shapes.

    >>> ramp = np.add.outer(np.arange(32), np.arange(32))
    >>> noise = np.random.default_rng(0).uniform(size=(32, 32))
    >>> lempel_ziv(ramp) < 0.3 < 0.9 < lempel_ziv(noise)
    True
    """
    pixels = _image(image)
    if not pixels.any():
        return math.nan
    unit = (pixels - pixels.min()) / (pixels.max() - pixels.min())
    symbols = np.minimum((unit * 10).astype(int), 9)
    n = symbols.size
    rate = math.log(n) / (n * math.log(10))
    return rate * sum(_phrases(_zigzag(direction)) for direction in (symbols, symbols.T)) / 2


def _zigzag(symbols: np.ndarray) -> str:
    """The rows as one string, every second row backwards, so that neighbours stay neighbours."""
    turned = symbols.copy()
    turned[1::2] = turned[1::2, ::-1]
    return "".join(map(chr, turned.ravel() + 0x100))


def _phrases(text: str) -> int:
    """Number of phrases of Lempel and Ziv's exhaustive history.

    >>> _phrases("0001101001000101")           # 0 . 001 . 10 . 100 . 1000 . 101, their example
    6
    """
    start = count = 0
    while start < len(text):
        length = 1
        # A phrase may overlap its earlier copy, which must begin before it does.
        while start + length <= len(text) and text.find(text[start : start + length], 0, start + length - 1) >= 0:
            length += 1
        start += length
        count += 1
    return count
