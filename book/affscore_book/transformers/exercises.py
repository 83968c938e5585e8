"""Checks of the exercises of the chapter on transformers."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from affscore import signature
from affscore_book.kit.answers import function, one_number, whole
from affscore_book.kit.checks import case, exercise, report
from affscore_book.transformers.gpt import ByteGPT
from affscore_book.transformers.laws import channel_laws, score_from_correlations
from affscore_book.transformers.measured import MiniLMScores

__all__ = ["check_build", "check_lowest_mean", "check_part_of_size", "check_samples_of_pools"]


@exercise("minilm-samples", spatial=whole, trailing=whole, tokens=whole)
def check_samples_of_pools(spatial: int, trailing: int, tokens: int) -> None:
    """Is a covariance of full rank from this many texts on, of 32 tokens and 1,536 channels each?"""
    given, truth = (spatial, trailing, tokens), (1537, 33, 49)
    hint = "how many samples does a text make, of how many numbers each?"
    if given == (1536, 32, 48):
        hint = "the mean is subtracted: that is one sample short each time."
    elif given[:2] == truth[1::-1]:
        hint = "the other way round: spatial averages over the tokens, trailing over the last axis."
    praise = "by the trailing pool a few texts are enough, since the 1,536 GELUs are gone."
    report("minilm-samples", given == truth, praise, hint)


@exercise("transformers-build", score_without=function)
def check_build(score_without: Callable[[nn.Module, Tensor, int], float], network: ByteGPT, windows: Tensor) -> None:
    """Does ``score_without(network, windows, block)`` take out a block's attention, score its call, and put it back?

    ``windows`` are bytes (n, tokens). The check measures on a copy whose attention gives zeros.
    """
    with torch.no_grad():
        before = network(windows[:2])
    for block in (0, len(network.blocks) - 1):
        with case(f"block {block}"):
            found = one_number(score_without(network, windows, block))
        with torch.no_grad():
            changed = not torch.equal(network(windows[:2]), before)
        if changed:
            with case(f"block {block}"):
                return report("transformers-build", False, "", "afterwards the network is another: remove the hook.")
        other: Any = deepcopy(network)
        last = other.blocks[block].attention.out
        last.weight.data.zero_()
        last.bias.data.zero_()
        with_it, without = (float(signature(each, [windows]).scores[0, block]) for each in (network, other))
        if not abs(found - without) <= 1e-3:
            hint = f"block {block} scores {without:.3f} where its attention adds nothing, not {found:.3f}."
            if abs(found - with_it) < 1e-3:
                hint = f"{found:.3f} is block {block}'s score with its attention: what does the hook return?"
            with case(f"block {block}"):
                return report("transformers-build", False, "", hint)
    report("transformers-build", True, "a hook that returns zeros, and is gone afterwards.", "")


@exercise("minilm-lowest", mean=one_number)
def check_lowest_mean(mean: float, spread: float) -> None:
    """Is this the mean, to a tenth, at which normal inputs of this spread give GELU its lowest paired score?"""

    def score(at: float) -> float:
        return score_from_correlations(*(value[None] for value in channel_laws(at, spread)))

    lowest = minimize_scalar(score, bounds=(-4.0, 1.0), method="bounded")
    hint = "channel_laws takes an array of means: try a grid, and take the one with the lowest score."
    if mean > 0:
        hint = "to the right of 0 GELU is nearly a straight line; go to the other side."
    praise = f"the paired score there is {lowest.fun:.2f}, and {score(0.0):.2f} for inputs around 0."
    report("minilm-lowest", abs(mean - float(lowest.x)) <= 0.1, praise, hint)


@exercise("minilm-part", part=one_number)
def check_part_of_size(part: float, scores: MiniLMScores) -> None:
    """Is this the part of the way from random to trained weights that rearranged weights go, by the trailing pool?"""

    def of(pool: str) -> float:
        trained, random = scores.of(pool=pool).mean(), scores.starts(pool=pool).mean()
        return float((scores.starts("rearranged", pool=pool).mean() - random) / (trained - random))

    truth = of("trailing")
    hint = "two differences of mean scores: (rearranged − random) / (trained − random)."
    if abs(part - of("spatial")) < 0.01:
        hint = "that is the part by the spatial pool."
    praise = "in the mean over the layers; they differ one by one."
    report("minilm-part", abs(part - truth) < 0.01, praise, hint)
