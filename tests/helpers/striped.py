"""Images that a small network learns in seconds."""

import torch

from affscore_book.kit.training import Images


def stripes(n: int, seed: int) -> Images:
    """Noise with a bright stripe, across or upright; the label says which."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 2
    images = torch.randint(0, 90, (n, 1, 32, 32), generator=generator, dtype=torch.uint8)
    images[labels == 0, :, 16] = 255
    images[labels == 1, :, :, 16] = 255
    return Images(images, labels)
