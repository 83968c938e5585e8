"""First halves of stitched networks that were not trained on the task, as controls: another task, or no pictures.

The results of their stitches are stored; see :mod:`affscore_book.stitching.controls`, which names the sources.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from affscore_book.kit.batch_norm import set_batch_norm
from affscore_book.kit.networks import myrtle
from affscore_book.kit.training import ImageData, Images
from affscore_book.stitching.moments import Moments, explained, least_squares
from affscore_study.kit.training import fit

__all__ = ["bottom_network", "explained_both_ways", "noise_features", "quarter_turns"]


def quarter_turns(images: Images, seed: int) -> Images:
    """The other task: each image is turned by 0 to 3 right angles, and this number is its label.

    >>> found = quarter_turns(Images(torch.arange(16).reshape(4, 1, 2, 2), torch.zeros(4).long()), seed=0)
    >>> [int(turn) for turn in found.labels], found.images[0, 0].tolist()
    ([0, 3, 1, 0], [[0, 1], [2, 3]])
    """
    turns = torch.randint(0, 4, (len(images.labels),), generator=torch.Generator().manual_seed(seed))
    turned = torch.stack([image.rot90(int(turn), (1, 2)) for image, turn in zip(images.images, turns, strict=True)])
    return Images(turned, turns)


def bottom_network(kind: str, seed: int, data: ImageData, *, width: int, images: int, epochs: int) -> nn.Module:
    """A Myrtle CNN for the control ``kind``: ``"other task"``, ``"shuffled labels"`` or ``"untrained"``.

    The first two are trained on ``images`` training images. The batch norm of an untrained network is set by 1,000
    images. Raises ValueError for another kind.
    """
    torch.manual_seed(seed)
    network = myrtle(width, channels=data.train.images.shape[1]).to(memory_format=torch.channels_last)
    if kind == "untrained":
        return set_batch_norm(network, data.standardise(data.train.images[:1000]).split(250))
    parts = [part.take(slice(0, images)) for part in (data.train, data.validation)]
    if kind == "other task":
        parts = [quarter_turns(part, seed) for part in parts]
    elif kind == "shuffled labels":
        generator = torch.Generator().manual_seed(seed)
        parts = [
            Images(part.images, part.labels[torch.randperm(len(part.labels), generator=generator)]) for part in parts
        ]
    else:
        raise ValueError(f"kind is {kind!r}; it should be 'other task', 'shuffled labels' or 'untrained'.")
    own = ImageData(data.name, parts[0], parts[1], data.test, data.mean, data.std)
    fit(network, own, epochs=epochs, seed=seed, augmented=False)
    return network


def noise_features(labels: Tensor, shape: tuple[int, ...], seed: int, *, draw: int, clustered: bool) -> Tensor:
    """Features without pictures, float32 of shape (n, *shape): the ReLU of a centre plus normal noise.

    Parameters
    ----------
    labels
        int64 of shape (n,). If the features are clustered, images of one class have the same normal centre, a number
        for each channel that is the same at all pixels. Otherwise there is no centre, and only the number of labels is
        used.
    seed, draw
        The seeds of the centres and of the noise around them. Training and test images need the same centres.

    >>> x = noise_features(torch.tensor([0, 0, 1]), (3, 8, 8), 0, draw=1, clustered=True)
    >>> bool((x[0] - x[1]).norm() < (x[0] - x[2]).norm())
    True
    """
    noise = torch.randn(len(labels), *shape, generator=torch.Generator().manual_seed(draw))
    if clustered:
        centres = torch.randn(10, shape[0], 1, 1, generator=torch.Generator().manual_seed(seed))
        noise += centres[labels]
    return noise.relu()


def explained_both_ways(x: Tensor, y: Tensor, x_new: Tensor, y_new: Tensor) -> tuple[float, float]:
    """The shares of variance that linear stitches explain, forwards (y from x) and backwards (x from y).

    All tensors have shape (n, channels, H, W). The stitches are fitted on the first pair, and the shares are computed
    on the second. A share below 0 is worse than the mean.

    >>> x = torch.rand(50, 4, 2, 2, generator=torch.Generator().manual_seed(0))
    >>> forwards, backwards = explained_both_ways(x, x[:, :2], x, x[:, :2])
    >>> round(forwards, 6), backwards < 0.9
    (1.0, True)
    """
    found = []
    for one, other, one_new, other_new in ((x, y, x_new, y_new), (y, x, y_new, x_new)):
        found.append(explained(least_squares(Moments.of(one, other)), Moments.of(one_new, other_new)))
    return found[0], found[1]
