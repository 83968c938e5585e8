"""The training of a small network on 32 x 32 images. A stopped run can resume and ends as if it had not been stopped.

All networks of the book share one recipe: Adam, one cycle of the learning rate, shifts of up to two pixels and flips.
Each epoch draws its order and its augmentation from a generator seeded by (seed, epoch), so an epoch depends only on
the state before it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from tqdm.auto import tqdm

from affscore.files import replacing
from affscore_book.kit.training import ImageData, accuracy
from affscore_study.kit.run_files import read_checkpoint, write_checkpoint

__all__ = ["augment", "fit", "save_weights"]


def augment(images: Tensor, generator: torch.Generator) -> Tensor:
    """The images, each shifted by up to two pixels (black moves in) and flipped left to right in half of the cases.

    Input and output are uint8 of shape (n, channels, H, W). This is the augmentation of Godfrey et al. (appendix D.1).
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
        Maps float32 of shape (n, channels, 32, 32) to logits of shape (n, classes). Parameters that do not require a
        gradient do not change.
    epochs, learning_rate, batch_size
        The number of passes over ``data.train``, the peak of the one-cycle schedule of Adam, and the number of images
        in a step.
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


def save_weights(network: nn.Module, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
    """Write the state dict as safetensors, with floating-point values as float16 and ``about`` as JSON in the header.

    The file is written completely or not at all.
    """
    state = {
        name: (value.half() if value.is_floating_point() else value).contiguous().cpu()
        for name, value in network.state_dict().items()
    }
    with replacing(path) as beside:
        save_file(state, beside, metadata={"about": json.dumps(about)})
