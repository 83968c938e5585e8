"""Pictures on which the networks of the decade were not trained, in the form of their batches."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional

from affscore.arguments import check_choice
from affscore.zoo.datasets import load_dataset
from affscore_book.kit.training import SIDE, ImageData

__all__ = ["PICTURES", "other_pictures"]

#: The kinds of pictures, in the order of their distance from the training images.
PICTURES = ("digits", "photographs", "shuffled", "noise")


def _grey(image: object) -> Tensor:
    """A PIL image as a grey float32 tensor of shape (1, 32, 32), with values between 0 and 255."""
    small = image.convert("L").resize((SIDE, SIDE))  # type: ignore[attr-defined]
    return torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8).reshape(1, SIDE, SIDE).float()


def other_pictures(kind: str, n: int, data: ImageData) -> Tensor:
    """Pictures of one kind, float32 of shape (n, 1, 32, 32) with values from 0 to 255; the same ones at each call.

    Parameters
    ----------
    kind
        ``"digits"``: scikit-learn's handwritten digits, 8 x 8 pixels enlarged. ``"photographs"``: grey crops of the ten
        photographs of :func:`affscore.zoo.datasets.photographs`. ``"shuffled"``: validation images, each with its
        pixels in a different random order. ``"noise"``: independent pixels with the mean and the standard deviation of
        the training pixels, not cut to the range.
    n
        The number of pictures, at most 1,797 digits and 5,000 shuffled pictures.
    data
        The images on which the networks were trained.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    check_choice("kind", kind, PICTURES)
    generator = torch.Generator().manual_seed(0)
    if kind == "noise":
        found = 255 * (data.mean + data.std * torch.randn(n, SIDE * SIDE, generator=generator))
    elif kind == "shuffled":
        pixels = data.validation.images[:n].flatten(1).float()
        found = pixels.gather(1, torch.rand(pixels.shape, generator=generator).argsort(dim=1))
    elif kind == "photographs":
        found = next(iter(load_dataset("photographs", preprocess=_grey, batch_size=n, seed=0)))
    else:
        small = torch.from_numpy(load_digits().images[:n]).float()[:, None] * 255 / 16
        found = functional.interpolate(small, (SIDE, SIDE), mode="bilinear")
    return found.reshape(n, 1, SIDE, SIDE)
