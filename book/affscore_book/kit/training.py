"""Images of 32 x 32 pixels with labels, and of a network trained on them its accuracy and its stored weights.

:mod:`affscore_study.kit.training` trains them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional

from affscore.arguments import check_choice
from affscore.forward import evaluating
from affscore.zoo.datasets import cifar, fashion_mnist_file, read_idx
from affscore.zoo.models import read_state_dict

__all__ = ["ImageData", "Images", "accuracy", "image_data", "load_weights", "read_about"]

SIDE = 32
VALIDATION = 5000


class Images(NamedTuple):
    """Images, uint8 (n, channels, 32, 32), and labels, int64 (n,)."""

    images: Tensor
    labels: Tensor

    def take(self, index: Tensor | slice) -> Images:
        """The images of an index or a slice."""
        return Images(self.images[index], self.labels[index])

    def to(self, device: str | torch.device) -> Images:
        """On another device."""
        return Images(self.images.to(device), self.labels.to(device))


@dataclass(frozen=True)
class ImageData:
    """Three disjoint sets of images: weights are fitted on ``train``, choices are made on ``validation``, and results
    are measured on ``test``. ``mean`` and ``std`` belong to the training pixels, per channel, between 0 and 1.
    """

    name: str
    train: Images
    validation: Images
    test: Images
    mean: Tensor
    std: Tensor

    def standardise(self, images: Tensor) -> Tensor:
        """Converts uint8 (n, channels, H, W) to float32 with mean 0 and standard deviation 1 per channel."""
        mean, std = (value.to(images.device)[:, None, None] for value in (self.mean, self.std))
        return (images.float() / 255 - mean) / std

    def to(self, device: str | torch.device) -> Self:
        """The same data on another device."""
        return replace(self, **{part: getattr(self, part).to(device) for part in ("train", "validation", "test")})

    def first(self, count: int) -> Self:
        """The same data with the first ``count`` images of each set, for a script's trial run."""
        train, validation, test = (part.take(slice(count)) for part in (self.train, self.validation, self.test))
        return replace(self, train=train, validation=validation, test=test)


def _labelled(name: str, part: str, root: str | os.PathLike[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """The ``"train"`` or ``"test"`` part of a data set: uint8 (N, 28, 28) or (N, 32, 32, 3), and labels (N,)."""
    if name == "cifar10":
        found = cifar(name, root, train=part == "train")
        return found.data, np.array(found.targets)
    prefix = "train" if part == "train" else "t10k"
    images, labels = (
        read_idx(fashion_mnist_file(f"{prefix}-{kind}-ubyte", root)) for kind in ("images-idx3", "labels-idx1")
    )
    if len(images) != len(labels):
        raise ValueError(f"dataset: fashion-mnist has {len(images)} images and {len(labels)} labels; get it again.")
    return images, labels


def image_data(
    name: str = "fashion-mnist", *, root: str | os.PathLike[str] | None = None, train: int | None = None
) -> ImageData:
    """A labelled data set as tensors, padded to 32 x 32 with black; 5,000 random training images serve as validation.

    Parameters
    ----------
    name
        ``"fashion-mnist"`` (one channel) or ``"cifar10"`` (three).
    root
        Folder of the data; see :func:`affscore.zoo.datasets.load_dataset`.
    train
        Number of training images; None for all images that validation leaves.

    Raises
    ------
    ValueError
        If the name is unknown, a file is damaged, or ``train`` exceeds the number of images.
    OSError
        If the data are missing and cannot be downloaded.
    """
    check_choice("name", name, ("fashion-mnist", "cifar10"))
    parts = {}
    for part in ("train", "test"):
        images, labels = _labelled(name, part, root)
        pixels = torch.from_numpy(np.array(images if images.ndim == 4 else images[..., None])).permute(0, 3, 1, 2)
        if pixels.shape[-1] < SIDE:
            pixels = functional.pad(pixels, [(SIDE - pixels.shape[-1]) // 2] * 4)
        parts[part] = Images(pixels.contiguous(), torch.from_numpy(np.array(labels)).long())
    order = torch.randperm(len(parts["train"].labels), generator=torch.Generator().manual_seed(0))
    validation, rest = order[:VALIDATION], order[VALIDATION:]
    if train is not None and not 1 <= train <= len(rest):
        raise ValueError(f"train is {train}; it should be between 1 and the {len(rest)} training images of {name}.")
    kept = parts["train"].take(rest[:train])
    values = kept.images.double() / 255
    return ImageData(
        name,
        train=kept,
        validation=parts["train"].take(validation),
        test=parts["test"],
        mean=values.mean(dim=(0, 2, 3)).float(),
        std=values.std(dim=(0, 2, 3)).float(),
    )


@torch.no_grad()
def accuracy(network: nn.Module, data: ImageData, images: Images) -> float:
    """The share of images whose largest output is that of their label, between 0 and 1, in evaluation mode."""
    device = next(network.parameters()).device
    right = 0
    with evaluating(network):
        for start in range(0, len(images.labels), 500):
            some = images.take(slice(start, start + 500)).to(device)
            right += int((network(data.standardise(some.images)).argmax(1) == some.labels).sum())
    return right / len(images.labels)


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The description of the weights that :func:`affscore_study.kit.training.save_weights` wrote.

    Raises
    ------
    ValueError
        If the file is damaged or is not a safetensors file.
    """
    try:
        with safe_open(path, framework="pt") as opened:
            return json.loads((opened.metadata() or {}).get("about", "{}"))
    except FileNotFoundError:
        raise
    except Exception as error:  # safetensors raises a different kind for each kind of damage
        raise ValueError(f"path: {path} cannot be read as safetensors ({error}).") from error


def load_weights(network: nn.Module, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Load what :func:`affscore_study.kit.training.save_weights` wrote into a network; returns its description.

    The network is put into evaluation mode.

    Raises
    ------
    ValueError
        If the file is damaged or holds another network's weights.
    """
    state = read_state_dict(path)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"path: {path} does not fit this network: {str(error).splitlines()[-1].strip()}") from error
    network.eval()
    return read_about(path)
