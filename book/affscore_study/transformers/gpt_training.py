"""The training of a byte decoder on the text of the Python Language Reference.

A run that was stopped and resumed ends with the same bits. The windows of a step come from a generator seeded by (seed,
step), so a step depends only on the state before it. The text is that of :mod:`affscore_book.transformers.gpt_bytes`.
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

#: The number of steps of a training, and the steps after which its signature is taken, evenly spaced in the logarithm.
GPT_STEPS = 800
GPT_MOMENTS = tuple(int(step) for step in np.geomspace(1, GPT_STEPS, 8).round())
#: The number of steps whose mean loss is one entry of the history. A checkpoint follows each of them.
STRETCH = 100


@dataclass(frozen=True)
class GptRecipe:
    """AdamW with one cycle of the learning rate up to ``learning_rate``, and gradients clipped to norm 1."""

    learning_rate: float
    weight_decay: float = 0.05
    windows: int = 8


#: The peak rates that were tried on one network: GELU with layer norm, seed 0, a quarter of the steps.
GPT_RATES = (0.001, 0.002, 0.004, 0.008)
#: The recipe in ``book/data/transformers/gpt/rates.json`` with the fewest bits per byte on bytes that were not used in
#: the trial's training. It was chosen before any other network was trained.
GPT_RECIPE = GptRecipe(learning_rate=0.004)


def _loss(network: nn.Module, windows: Tensor) -> Tensor:
    """The cross-entropy of the next byte in nats, a mean over all bytes of ``windows`` (n, 129)."""
    return functional.cross_entropy(network(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def bits_per_byte(network: nn.Module, windows: Tensor) -> float:
    """The cross-entropy of the next byte in bits, a mean over all bytes of ``windows`` (n, 129).

    A uniform guess costs 8 bits.
    """
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
    """Train a network in place; it ends in evaluation mode.

    Parameters
    ----------
    network
        Maps int64 of shape (n, 128) to logits of shape (n, 128, 256). Its training draws no random numbers (no
        dropout).
    text
        The bytes, int64 of shape (length,). Windows may begin anywhere in it.
    steps, seed
        The number of steps, and the seed of the windows. The caller draws the weights.
    checkpoint
        A file that is replaced as a whole after every hundred steps and read at the start. The caller removes it.
    after_step
        Called with the number of finished steps between the steps. A resumed run repeats the steps after its
        checkpoint.

    Returns
    -------
    A record for every hundred steps: ``"loss"``, their mean in nats per byte, and ``"seconds"`` of processor time.

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
