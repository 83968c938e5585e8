"""An image as the address of a bitmap that a page can show: the same bytes on every machine and in JavaScript."""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any

import numpy as np

__all__ = ["bitmap"]

_COLOURS = (np.arange(256) * 0x010101).astype("<u4").tobytes()


def bitmap(image: Any) -> str:
    """``image`` (rows, columns), its first row on top, from black at its lowest value to white at its highest.

    A constant image is grey. ``redshift_image.js`` makes the same of the same image.

    >>> bitmap([[0, 1], [2, 3]])[:30]
    'data:image/bmp;base64,Qk0+BAAA'
    """
    values = np.asarray(image, dtype=np.float64)
    rows, columns = values.shape
    low, span = values.min(), np.ptp(values)
    greys = np.floor(255 * (values - low) / span + 0.5) if span > 0 else np.full(values.shape, 128)
    # A bitmap has its lowest row first, and rows of whole groups of four bytes.
    pixels = np.pad(greys[::-1].astype(np.uint8), ((0, 0), (0, -columns % 4))).tobytes()
    start = 54 + len(_COLOURS)
    head = struct.pack("<2sI4xI", b"BM", start + len(pixels), start)
    about = struct.pack("<IiiHH16xI4x", 40, columns, rows, 1, 8, 256)
    return "data:image/bmp;base64," + b64encode(head + about + _COLOURS + pixels).decode()
