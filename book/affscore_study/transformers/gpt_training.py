"""Train a byte decoder on the text of the Python Language Reference, so that a stopped run ends with the same bits.

The windows of a step come from a generator seeded by (seed, step), so a step depends on nothing but the state before
it. The text is that of :mod:`affscore_book.transformers.gpt_bytes`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.forward import evaluating
from affscore_book.transformers.gpt import CONTEXT
from affscore_study.kit.run_files import read_checkpoint, write_checkpoint

__all__ = ["GPT_MOMENTS", "GPT_RATES", "GPT_RECIPE", "GPT_STEPS", "GptRecipe", "bits_per_byte", "fit_gpt"]

#: Steps of a training, and those after which its signature is taken, evenly spaced in their logarithm.
GPT_STEPS = 800
GPT_MOMENTS = tuple(int(step) for step in np.geomspace(1, GPT_STEPS, 8).round())
#: Steps whose mean loss is one entry of the history; a checkpoint follows each.
STRETCH = 100


@dataclass(frozen=True)
class GptRecipe:
    """AdamW with one cycle of the learning rate up to ``learning_rate``, and gradients of norm 1 at most."""

    learning_rate: float
    weight_decay: float = 0.05
    windows: int = 8


#: Peak rates that were tried on one network: GELU with layer norm, seed 0, a quarter of the steps.
GPT_RATES = (0.001, 0.002, 0.004, 0.008)
#: Of those in ``book/data/transformers/gpt/rates.json`` the one with the fewest bits per byte on bytes that the trial
#: was not trained on, chosen before any other network was trained.
GPT_RECIPE = GptRecipe(learning_rate=0.004)


def _loss(network: nn.Module, windows: Tensor) -> Tensor:
    """Cross-entropy of the next byte in nats, mean over all bytes of windows (n, 129)."""
    return functional.cross_entropy(network(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def bits_per_byte(network: nn.Module, windows: Tensor) -> float:
    """What the network pays for each next byte of windows (n, 129), in bits; 8 is what knowing nothing costs."""
    with evaluating(network):
        total = sum(_loss(network, some).item() * len(some) for some in windows.split(64))
    return total / len(windows) / math.log(2)


def fit_gpt(
    network: nn.Module,
    text: Tensor,
    recipe: GptRecipe = GPT_RECIPE,
    *,
    steps: int,
    seed: int,
    checkpoint: str | os.PathLike[str] | None = None,
    after_step: Callable[[int], None] | None = None,
) -> list[dict[str, float]]:
    """Train in place; the network ends in evaluation mode.

    Parameters
    ----------
    network
        Takes int64 (n, 128), gives logits (n, 128, 256). Its training draws no random numbers (no dropout).
    text
        Bytes, int64 (length,). Windows begin anywhere in it.
    steps, seed
        Of the training. The weights are the caller's.
    checkpoint
        A file written after every hundred steps, complete or as it was before, and read at the start. The caller
        removes it.
    after_step
        Called with the number of finished steps, between the steps; steps after a checkpoint may come again.

    Returns
    -------
    One record for every hundred steps: ``"loss"``, their mean in nats per byte, and ``"seconds"`` of the processor.

    Raises
    ------
    ValueError
        If the checkpoint belongs to another run, or the loss is not finite.
    """
    rate, decay = recipe.learning_rate, recipe.weight_decay
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=decay, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    parts: dict[str, Any] = {"network": network, "optimizer": optimizer, "schedule": schedule}
    settings = asdict(recipe) | {"steps": steps, "seed": seed, "bytes": len(text)}
    history = read_checkpoint(checkpoint, parts, settings)
    windows = text.unfold(0, CONTEXT + 1, 1)
    network.train()
    for first in range(STRETCH * len(history), steps, STRETCH):
        total, clock = 0.0, time.process_time()
        last = min(first + STRETCH, steps)
        for step in range(first, last):
            starts = np.random.default_rng((seed, step)).integers(len(windows), size=recipe.windows)
            loss = _loss(network, windows[torch.from_numpy(starts)])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
            if after_step is not None:
                after_step(step + 1)
        if not math.isfinite(total):
            raise ValueError(f"the loss of steps {first + 1} to {last} is not finite; try a smaller learning_rate.")
        history.append({"loss": total / (last - first), "seconds": time.process_time() - clock})
        write_checkpoint(checkpoint, parts, settings, history)
    network.eval()
    return history
