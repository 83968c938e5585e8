"""Four pretext tasks that train a ResNet without labels, for the comparison of its signatures with the supervised one.

Each task is a module that holds the network, without its last layer, and a head that is thrown away afterwards. The
last layer is then fitted to labels and the rest is left unchanged (:func:`probe`), so that all networks have an
accuracy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn import functional

from affscore_book.kit.training import ImageData, Images

__all__ = ["PRETEXTS", "AutoEncoder", "BarlowTwins", "Pretext", "RotationTask", "SimCLR", "probe", "views"]

#: The least share of an image's area that a view keeps, and the largest relative change of its brightness.
AREA, BRIGHTNESS = 0.3, 0.4


def views(images: Tensor, generator: torch.Generator) -> Tensor:
    """The images cropped to 0.3 to 1 of their area and enlarged again, flipped in half the cases, brighter or darker.

    ``images`` is uint8 of shape (n, channels, H, W); the views are float32 of the same shape, with values from 0 to
    255. SimCLR changes colours as well, which grey pictures do not have.
    """
    n = len(images)
    side = (AREA + (1 - AREA) * torch.rand(n, generator=generator)).sqrt()
    centre = (1 - side)[:, None] * (2 * torch.rand(n, 2, generator=generator) - 1)
    flip = 1 - 2 * torch.randint(0, 2, (n,), generator=generator)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = flip * side, side, centre
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    seen = functional.grid_sample(images.float(), grid, padding_mode="border", align_corners=False)
    light = 1 + BRIGHTNESS * (2 * torch.rand(n, 1, 1, 1, generator=generator) - 1)
    return (seen * light).clamp(0, 255)


class Pretext(nn.Module, ABC):
    """A network with a head in place of its last layer ``fc``, which stays in ``last``.

    Parameters
    ----------
    network
        Its attribute ``fc`` is a linear layer. It is changed in place until :meth:`give_back`.
    data
        The data set, which standardises the images.
    """

    def __init__(self, network: Any, data: ImageData) -> None:
        super().__init__()
        self.network, self.data, self.last = network, data, network.fc
        self.width: int = self.last.in_features
        network.fc = nn.Identity()

    @abstractmethod
    def loss(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of a batch of uint8 images of shape (n, 1, 32, 32), a scalar."""

    def features_of_views(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """The features of two views of each image, shape (2n, width); the n first views come first."""
        return self.network(self.data.standardise(torch.cat([views(images, generator), views(images, generator)])))

    def give_back(self) -> nn.Module:
        """The network with its last layer, as it was at the start."""
        self.network.fc = self.last
        return self.network


class RotationTask(Pretext):
    """The task of naming the multiple of 90 degrees by which an image is turned (Gidaris, Singh and Komodakis 2018)."""

    def __init__(self, network: Any, data: ImageData) -> None:
        super().__init__(network, data)
        self.head = nn.Linear(self.width, 4)

    def loss(self, images: Tensor, generator: torch.Generator) -> Tensor:
        turns = torch.randint(0, 4, (len(images),), generator=generator)
        turned = torch.stack([torch.rot90(image, int(turn), (1, 2)) for image, turn in zip(images, turns, strict=True)])
        return functional.cross_entropy(self.head(self.network(self.data.standardise(turned))), turns)


class SimCLR(Pretext):
    """The task of finding the view of the same image among all other views (Chen et al. 2020, equation 1)."""

    TEMPERATURE = 0.5

    def __init__(self, network: Any, data: ImageData) -> None:
        super().__init__(network, data)
        self.head = nn.Sequential(nn.Linear(self.width, self.width), nn.ReLU(), nn.Linear(self.width, self.width))

    def loss(self, images: Tensor, generator: torch.Generator) -> Tensor:
        z = functional.normalize(self.head(self.features_of_views(images, generator)))
        n = len(images)
        similar = (z @ z.T / self.TEMPERATURE).fill_diagonal_(-torch.inf)  # a view is not compared with itself
        return functional.cross_entropy(similar, torch.arange(2 * n).roll(n))


class BarlowTwins(Pretext):
    """The task of making the correlations between the features of two views the identity (Zbontar et al. 2021)."""

    WEIGHT = 0.005

    def __init__(self, network: Any, data: ImageData) -> None:
        super().__init__(network, data)
        self.head = nn.Sequential(
            nn.Linear(self.width, 2 * self.width, bias=False), nn.BatchNorm1d(2 * self.width), nn.ReLU(),
            nn.Linear(2 * self.width, 2 * self.width),
        )  # fmt: skip

    def loss(self, images: Tensor, generator: torch.Generator) -> Tensor:
        z = self.head(self.features_of_views(images, generator))
        first, second = (functional.batch_norm(half, None, None, training=True) for half in z.chunk(2))
        correlations = first.T @ second / len(images)
        diagonal = correlations.diagonal()
        return (diagonal - 1).square().sum() + self.WEIGHT * (correlations.square().sum() - diagonal.square().sum())


class AutoEncoder(Pretext):
    """The task of restoring an image from the 64 features of its 1,024 pixels, with the mean squared error as loss."""

    def __init__(self, network: Any, data: ImageData) -> None:
        super().__init__(network, data)
        layers: list[nn.Module] = [nn.Linear(self.width, 64 * 16), nn.ReLU(), nn.Unflatten(1, (64, 4, 4))]
        for inside, outside in ((64, 32), (32, 16), (16, 1)):
            layers += [nn.ConvTranspose2d(inside, outside, 4, 2, 1), nn.ReLU()]
        self.head = nn.Sequential(*layers[:-1])

    def loss(self, images: Tensor, generator: torch.Generator) -> Tensor:
        pixels = self.data.standardise(images)
        return functional.mse_loss(self.head(self.network(pixels)), pixels[:, :1])


#: The tasks by their names in files.
PRETEXTS: dict[str, type[Pretext]] = {
    "rotation": RotationTask, "simclr": SimCLR, "barlow_twins": BarlowTwins, "autoencoder": AutoEncoder,
}  # fmt: skip


def probe(network: Any, data: ImageData, images: Images) -> None:
    """Fit the last layer ``network.fc`` to labels by logistic regression, in place; nothing else changes.

    The network's features are standardised first, and the standardisation is then merged into the layer. There must be
    as many different labels as the layer has outputs.
    """
    last, network.fc = network.fc, nn.Identity()
    network.eval()
    with torch.inference_mode():
        features = torch.cat([network(data.standardise(part)) for part in images.images.split(500)]).double()
    mean, std = features.mean(dim=0), features.std(dim=0).clamp(min=1e-12)
    fitted = LogisticRegression(max_iter=1000).fit(((features - mean) / std).numpy(), images.labels.numpy())
    weight = torch.from_numpy(fitted.coef_) / std
    last.weight.data.copy_(weight)
    last.bias.data.copy_(torch.from_numpy(fitted.intercept_) - weight @ mean)
    network.fc = last
