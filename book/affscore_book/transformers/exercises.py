"""Checks of the exercises of the chapter on transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from affscore import signature
from affscore_book.kit.answers import function, one_number, wholes
from affscore_book.kit.checks import case, exercise, report
from affscore_book.transformers.gpt import ByteGPT
from affscore_book.transformers.laws import channel_laws, score_from_correlations
from affscore_book.transformers.measured import MiniLMScores

__all__ = ["check_build", "check_lowest_mean", "check_part_of_size", "check_samples_of_pools"]


@exercise("minilm-samples", spatial=wholes, trailing=wholes, tokens=wholes)
def check_samples_of_pools(spatial: Sequence[int], trailing: Sequence[int], tokens: Sequence[int]) -> None:
    """Are these (samples, numbers in each) of an activation of 512 texts, 32 tokens and 1,536 channels?"""
    given, truth = [tuple(spatial), tuple(trailing), tuple(tokens)], [(512, 1536), (512, 32), (512 * 32, 1536)]
    hint = "what is averaged away is gone; what is left beside the texts are the numbers of a sample."
    if given[:2] == truth[1::-1]:
        hint = "the other way round: spatial averages over the tokens, trailing over the last axis."
    praise = "by the trailing pool a position is called a channel: the 1,536 GELUs are gone."
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
    """Is this the part of the way from random to trained weights, in mean score, that rearranged weights go?"""
    trained, random = scores.of().mean(), scores.starts().mean()
    moved = scores.starts("rearranged").mean() - random
    truth = float(moved / (trained - random))
    hint = "two differences of mean scores: (rearranged − random) / (trained − random)."
    if abs(part + truth) < 0.01 and abs(truth) >= 0.01:
        hint = "mind the sign: a part is negative where the two go different ways."
    praise = "the trained numbers in other places do not do what training did: their arrangement does."
    report("minilm-part", abs(part - truth) < 0.01, praise, hint)
