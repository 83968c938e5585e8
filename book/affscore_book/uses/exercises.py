"""Checks of the exercises of the chapter on uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore import affinity_score
from affscore_book.kit.answers import function, one_number
from affscore_book.kit.checks import case, exercise, report
from affscore_book.kit.features import features
from affscore_book.uses.replacing import calls_of, fit_lines, run_replaced
from affscore_book.uses.signs import sign_entropy

__all__ = ["block_and_images", "check_affine", "check_block", "check_entropy", "check_threshold", "distances_of"]


def _small_network() -> tuple[nn.Sequential, Tensor]:
    """A network with random weights whose ReLUs work in place, and 60 images (60, 2, 8, 8)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 6, 3), nn.ReLU(inplace=True), nn.Flatten(),
            nn.Linear(96, 5),
        )  # fmt: skip
        return network.eval(), torch.randn(60, 2, 8, 8)


@torch.no_grad()
@exercise("uses-affine", run=function)
def check_affine(run: Callable[[nn.Module, str, Tensor], Tensor]) -> None:
    """Does ``run(network, layer, images)`` give the logits with that ReLU replaced by its channels' lines?"""
    network, images = _small_network()
    calls = calls_of(network, images)
    plain = network(images)
    for at, layer in enumerate(("1", "3")):
        lines = fit_lines(network, images, calls)
        truth = run_replaced(network, images, {at: lines[at]})
        with case(f"the ReLU called {layer}"):
            mine = run(network, layer, images)
            hint = ""
            if not isinstance(mine, Tensor) or mine.shape != truth.shape:
                hint = f"the logits should be a tensor of shape {tuple(truth.shape)}."
            elif not torch.allclose(mine, truth, atol=1e-4):
                hint = "other logits. Does the hook see the input before the ReLU overwrites it? A line a channel?"
                if torch.allclose(mine, plain, atol=1e-5):
                    hint = "these are the logits of the network as it is: what the hook returns replaces the output."
            elif not torch.equal(network(images), plain):
                hint = "the network is not as it was: remove the hooks."
            if hint:
                return report("uses-affine", False, "", hint)
    report("uses-affine", True, "the call is a line in each channel, and nothing else has changed.", "")


def block_and_images(network: nn.Module, images: Tensor, block: str) -> tuple[Tensor, Tensor]:
    """What a block takes and gives for some images, (n, channels, H, W) each."""
    with torch.no_grad(), features(network, [block]) as seen:
        network(images)
    return seen[block].input, seen[block].output


@exercise("uses-block", score=one_number)
def check_block(score: float, before: Tensor, after: Tensor) -> None:
    """Is ``score`` that of a block, averages over space as samples?"""
    inputs, outputs = before.mean((2, 3)), after.mean((2, 3))
    truth, turned = affinity_score(inputs, outputs).item(), affinity_score(outputs, inputs).item()
    hint = f"{score:.3f} is not the score of the averages over space, (n, channels) each."
    right = abs(score - truth) < 0.006
    # They differ by shrinkage alone, often not at all; then a rounded score does not tell which one it is.
    told = abs(truth - turned) > 1e-6 and score not in (round(truth, 2), round(truth, 3))
    if told and abs(score - turned) < min(1e-4, abs(score - truth)):
        right, hint = False, "that is the score from the outputs to the inputs: what the block takes comes first."
    praise = f"the block scores {truth:.2f}: any map has a score, if both sides have as many channels."
    report("uses-block", right, praise, hint)


def distances_of(seed: int = 0) -> tuple[Any, Any]:
    """Distances of 100 clean and 40 wrong batches from what a monitor knows, (100,) and (40,)."""
    rng = np.random.default_rng(seed)
    return rng.gamma(9, 0.1, 100), rng.gamma(16, 0.1, 40)


@exercise("uses-threshold", share=one_number)
def check_threshold(share: float, clean: Any, wrong: Any) -> None:
    """Is ``share`` the part of the wrong batches above the largest of the clean ones?"""
    truth = float((wrong > clean.max()).mean())
    hint = f"{share:.2f} is another share. One false alarm in a hundred: no clean batch here lies above the bar."
    if abs(share - float((wrong > np.median(clean)).mean())) < 1e-6:
        hint = "at the median every second clean batch raises the alarm."
    praise = f"{truth:.0%} of the wrong batches are noticed; which bar you take decides that as much as the monitor."
    report("uses-threshold", abs(share - truth) < 1e-6, praise, hint)


@exercise("uses-entropy", entropy=function)
def check_entropy(entropy: Callable[[Any], float]) -> None:
    """Does ``entropy`` give the mean over channels of the entropy of the sign, in bits, of samples (n, channels)?"""
    x = np.random.default_rng(0).normal([0.0, 1.0, 9.0], 1.0, (200, 3))
    with case("three channels around 0, 1 and 9"):
        truth, mine = sign_entropy(x), one_number(entropy(x))
    hint = f"for three channels around 0, 1 and 9 it is {truth:.6f}, and yours is {mine:.6f}."
    if abs(mine - truth * np.log(2)) < 1e-6:
        hint = "that is in nats: take the logarithm to base 2."
    praise = "the channel around 9 never crosses the kink, and adds nothing."
    report("uses-entropy", abs(mine - truth) < 1e-6, praise, hint)
