"""A bitmap holds the picture, whatever its size, in greys from 0 to 255."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from affscore_book.redshift.bitmap import bitmap


@pytest.mark.parametrize("shape", [(32, 32), (3, 5), (7, 2), (1, 1)])
def test_a_picture_comes_back(shape):
    image = np.random.default_rng(sum(shape)).normal(size=shape)
    address = bitmap(image)
    with Image.open(BytesIO(b64decode(address.removeprefix("data:image/bmp;base64,")))) as picture:
        greys = np.array(picture.convert("L"), dtype=float)
    expected = 255 * (image - image.min()) / np.ptp(image) if image.size > 1 else np.full(shape, 128.0)
    assert greys.shape == shape and np.abs(greys - expected).max() <= 0.5 + 1e-9


def test_a_constant_picture_is_grey():
    assert bitmap(np.full((4, 4), 0.1)) == bitmap(np.zeros((4, 4)))
