"""Pictures that the networks of the decade were not trained on, as their batches have them."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional

from affscore.arguments import check_choice
from affscore.zoo.datasets import load_dataset
from affscore_book.kit.training import SIDE, ImageData

__all__ = ["PICTURES", "other_pictures"]

#: In the order in which they move away from what the networks know.
PICTURES = ("digits", "photographs", "shuffled", "noise")


def _grey(image: object) -> Tensor:
    """A PIL image as (1, 32, 32), between 0 and 255."""
    small = image.convert("L").resize((SIDE, SIDE))  # type: ignore[attr-defined]
    return torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8).reshape(1, SIDE, SIDE).float()


def other_pictures(kind: str, n: int, data: ImageData) -> Tensor:
    """Pictures of one kind, float32 (n, 1, 32, 32), between 0 and 255; the same at each call.

    Parameters
    ----------
    kind
        ``"digits"``: scikit-learn's handwritten digits, 8 x 8 pixels enlarged. ``"photographs"``: grey crops of the ten
        photographs of :func:`affscore.zoo.datasets.photographs`. ``"shuffled"``: validation images, the pixels of
        each in an order of its own. ``"noise"``: independent pixels with the mean and the standard deviation
        of the training pixels, not cut to the range.
    n
        At most 1,797 digits and 5,000 shuffled pictures.
    data
        What the networks were trained on.

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
