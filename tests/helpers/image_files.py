"""Images in files, whole and damaged, and what an error should read like: shared by the tests of this room."""

import numpy as np
import torch
from PIL import Image


def pixels(image, size=(8, 8)):
    """A preprocessing that keeps the values 0 to 255."""
    return torch.from_numpy(np.asarray(image.resize(size, Image.Resampling.BOX)).copy()).permute(2, 0, 1).float()


def sentence(error, *parts):
    text = str(error.value)
    assert "\n" not in text and text.endswith((".", "?"))
    for part in parts:
        assert str(part) in text


def picture(path, value=0, size=(16, 12), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)


def noise_images(folder, names, height, width):
    """Files of noise, the same on every machine; returns the folder, made if it is missing."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    for name in names:
        Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(folder / name)
    return folder


def damage(kind, path):
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("this is no image")
    elif kind == "directory of a png only":
        path.write_bytes(path.read_bytes()[:30])
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
