"""The training of a network of the decade by a recipe, and the recipes that were tried on one network of each family.

A training that was stopped resumes from its checkpoint and ends with the same weights, bit for bit on the same machine.
Each epoch draws its order and its augmentation from a generator seeded by (seed, epoch).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore_book.decade.training import RECIPE, Recipe
from affscore_book.kit.batch_norm import set_batch_norm
from affscore_book.kit.training import ImageData, accuracy
from affscore_study.kit.run_files import read_checkpoint, write_checkpoint
from affscore_study.kit.training import augment

__all__ = ["CANDIDATES", "SNAPSHOTS", "fit_recipe", "measure_norm", "snapshot_steps"]

#: The number of snapshots of a training.
SNAPSHOTS = 12
#: The recipes that were tried.
CANDIDATES = tuple(Recipe(rate, smoothing) for smoothing in (0.0, 0.1) for rate in (0.002, 0.001, 0.004))


def snapshot_steps(total: int) -> list[int]:
    """At most :data:`SNAPSHOTS` steps from 1 to ``total``, evenly spaced in their logarithm.

    >>> snapshot_steps(3440)
    [1, 2, 4, 9, 19, 41, 85, 178, 373, 783, 1641, 3440]
    """
    return sorted({round(step) for step in np.geomspace(1, total, SNAPSHOTS)})


def fit_recipe(
    network: nn.Module,
    data: ImageData,
    recipe: Recipe = RECIPE,
    *,
    epochs: int,
    seed: int,
    loss: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    backward: Callable[[int, Tensor], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    after_step: Callable[[int], None] | None = None,
    after_epoch: Callable[[dict[str, float]], None] | None = None,
) -> list[dict[str, float]]:
    """Train a network in place; it ends in evaluation mode.

    Parameters
    ----------
    network
        Maps float32 of shape (n, 3, 32, 32) to logits of shape (n, classes). Its training draws no random numbers (no
        dropout).
    epochs
        The number of passes over ``data.train``.
    seed
        The seed of order and augmentation. The caller draws the weights.
    loss
        The loss of a batch of uint8 images without their labels; None for cross-entropy.
    backward
        Called with the number of the step, from 1, and its loss, instead of ``loss.backward()``. It can add a penalty.
    checkpoint
        A file that is replaced as a whole after every epoch and read at the start. The caller removes it.
    after_step
        Called with the number of finished steps between the steps. A resumed epoch calls it again.
    after_epoch
        Called with the record of the epoch.

    Returns
    -------
    A record for each epoch: ``"loss"``, the mean training loss; ``"validation"``, the accuracy on validation images
    (only with labels); and ``"seconds"`` of processor time.

    Raises
    ------
    ValueError
        If the checkpoint belongs to another run, or the loss is not finite.
    """
    steps = math.ceil(len(data.train.labels) / recipe.batch_size)
    rate, decay = recipe.learning_rate, recipe.weight_decay
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=decay, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * steps)
    parts: dict[str, Any] = {"network": network, "optimizer": optimizer, "schedule": schedule}
    settings = asdict(recipe) | {"epochs": epochs, "seed": seed, "steps": steps}
    history = read_checkpoint(checkpoint, parts, settings)
    for epoch in range(len(history), epochs):
        words = np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)
        generator = torch.Generator().manual_seed(int(words[0] >> 1))
        order = torch.randperm(len(data.train.labels), generator=generator).split(recipe.batch_size)
        network.train()
        total, clock = 0.0, time.process_time()
        for step, index in enumerate(order, start=epoch * steps + 1):
            images, labels = data.train.take(index)
            if loss is None:
                logits = network(data.standardise(augment(images, generator)))
                value = functional.cross_entropy(logits, labels, label_smoothing=recipe.label_smoothing)
            else:
                value = loss(images, generator)
            optimizer.zero_grad()
            value.backward() if backward is None else backward(step, value)
            optimizer.step()
            schedule.step()
            total += value.item() * len(index)
            if after_step is not None:
                after_step(step)
        if not math.isfinite(total):
            raise ValueError(f"the loss of epoch {epoch + 1} is not finite; the recipe does not fit this network.")
        network.eval()
        history.append({"loss": total / len(data.train.labels)})
        if loss is None:
            history[-1]["validation"] = accuracy(network, data, data.validation)
        history[-1]["seconds"] = time.process_time() - clock
        write_checkpoint(checkpoint, parts, settings, history)
        if after_epoch is not None:
            after_epoch(history[-1])
    network.eval()
    return history


def measure_norm(network: nn.Module, data: ImageData) -> None:
    """Set the running statistics of every batch norm, if there is one, to those of the first 2,560 training images."""
    set_batch_norm(network, data.standardise(data.train.images[:2560]).split(256))
