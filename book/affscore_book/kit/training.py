"""Trains a small network on 32 x 32 images; a stopped run can continue and ends as if it had not been stopped.

All networks of the book share one recipe: Adam, one cycle of the learning rate, shifts of up to two pixels and flips.
Each epoch draws its order and its augmentation from a generator seeded by (seed, epoch), so an epoch depends only on
the state before it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional
from tqdm.auto import tqdm

from affscore.arguments import check_choice
from affscore.forward import evaluating
from affscore.zoo.datasets import cifar, fashion_mnist_file, read_idx
from affscore.zoo.models import read_state_dict
from affscore_book.kit.run_files import read_checkpoint, write_checkpoint

__all__ = ["ImageData", "Images", "accuracy", "augment", "fit", "image_data", "load_weights", "read_about"]

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


def augment(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image shifted by up to two pixels (black moves in) and flipped left to right in half of the cases.

    Input and output are uint8 (n, channels, H, W). This is the paper's augmentation (appendix D.1).
    """
    n, _, height, width = images.shape
    offsets = torch.randint(0, 5, (2, n, 1), generator=generator).to(images.device)
    flipped = (torch.rand(n, 1, generator=generator) < 0.5).to(images.device)
    rows = torch.arange(height, device=images.device) + offsets[0]
    columns = torch.arange(width, device=images.device).expand(n, -1)
    columns = torch.where(flipped, columns.flip(1), columns) + offsets[1]
    padded = functional.pad(images, [2] * 4)
    sample = torch.arange(n, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[sample, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def fit(
    network: nn.Module,
    data: ImageData,
    *,
    epochs: int,
    seed: int,
    learning_rate: float = 0.01,
    batch_size: int = 128,
    penalty: Callable[[float], Tensor] | None = None,
    after_step: Callable[[float], None] | None = None,
    after_epoch: Callable[[int], None] | None = None,
    schedule: Callable[[float], float] | None = None,
    augmented: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> list[dict[str, float]]:
    """Train a network in place, on its device. Afterwards the network is in evaluation mode.

    Parameters
    ----------
    network
        Maps float32 (n, channels, 32, 32) to logits (n, classes). Parameters that do not require a gradient do not
        change.
    epochs, learning_rate, batch_size
        Passes over ``data.train``, the peak of the one-cycle schedule of Adam, and images in a step.
    seed
        The seed of order and augmentation. The caller chooses the weights.
    penalty
        A function from the progress of the run, from 0 to 1, to a term that is added to the loss.
    after_step
        Called after every step with the progress, for projections.
    after_epoch
        Called with the number of finished epochs, for measurements; the network is then in evaluation mode.
    schedule
        A function from the progress to a factor of ``learning_rate``, instead of the one cycle.
    checkpoint
        A file that is written after every epoch and read at the start. The run continues from it and ends with the same
        weights, bit for bit on the same machine, as a run that was not stopped. The file is removed at the end.

    Returns
    -------
    One ``{"loss": mean training loss, "validation": accuracy}`` for each epoch.

    Raises
    ------
    ValueError
        If a checkpoint belongs to another run, or the loss is not finite.
    """
    device = next(network.parameters()).device
    steps = math.ceil(len(data.train.labels) / batch_size)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)  # it skips parameters without a gradient
    total_steps = epochs * steps
    scheduler: torch.optim.lr_scheduler.LRScheduler
    if schedule is None:
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=total_steps)
    else:
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(step / total_steps))
    settings = {"epochs": epochs, "seed": seed, "rate": learning_rate, "batch_size": batch_size, "steps": steps}
    parts = {"network": network, "optimizer": optimizer, "schedule": scheduler}
    history = read_checkpoint(checkpoint, parts, settings)
    train = data.train.to(device)
    for epoch in range(len(history), epochs):
        state = np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)
        generator = torch.Generator().manual_seed(int(state[0] >> 1))
        order = torch.randperm(len(train.labels), generator=generator).split(batch_size)
        network.train()
        total = 0.0
        for step, index in enumerate(tqdm(order, disable=not progress, desc=f"epoch {epoch + 1}/{epochs}")):
            images, labels = train.take(index.to(device))
            if augmented:
                images = augment(images, generator)
            done = (epoch * steps + step) / total_steps
            loss = functional.cross_entropy(network(data.standardise(images)), labels)
            optimizer.zero_grad()
            (loss if penalty is None else loss + penalty(done)).backward()
            optimizer.step()
            scheduler.step()
            if after_step is not None:
                after_step(done)
            total += loss.item() * len(index)
        if not math.isfinite(total):
            raise ValueError(f"the loss of epoch {epoch + 1} is not finite; try a smaller learning_rate.")
        network.eval()
        history.append({"loss": total / len(train.labels), "validation": accuracy(network, data, data.validation)})
        if after_epoch is not None:
            after_epoch(epoch + 1)
        write_checkpoint(checkpoint, parts, settings, history)
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)
    return history


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
