"""Checks of the exercises on MiniLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from affscore_book.kit.checks import report
from affscore_book.transformers.laws import channel_laws, score_from_correlations
from affscore_book.transformers.measured import MiniLMScores

__all__ = ["check_lowest_mean", "check_masked_mean", "check_part_of_size", "check_samples_of_pools"]


def check_samples_of_pools(spatial: Sequence[int], trailing: Sequence[int], tokens: Sequence[int]) -> None:
    """Are these (samples, numbers in each) of an activation of 512 texts, 32 tokens and 1,536 channels?"""
    given, truth = [tuple(spatial), tuple(trailing), tuple(tokens)], [(512, 1536), (512, 32), (512 * 32, 1536)]
    hint = "what is averaged away is gone; what is left beside the texts are the numbers of a sample."
    if given[:2] == truth[1::-1]:
        hint = "the other way round: spatial averages over the tokens, trailing over the last axis."
    praise = "by the trailing pool a position is called a channel: the 1,536 GELUs are gone."
    report("minilm-samples", given == truth, praise, hint)


def check_masked_mean(answer: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Does this average values (texts, tokens, channels) over the tokens where mask (texts, tokens) is true?"""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(5, 7, 3, generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 1, 3, 5, 2])[:, None]
    right = torch.stack([text[: int(row.sum())].mean(dim=0) for text, row in zip(values, mask, strict=True)])
    found = answer(values.clone(), mask.clone())
    same = isinstance(found, Tensor) and found.shape == right.shape
    hint = "zero what is padding, add over the tokens, and divide by the number of true entries of each text's mask."
    if same and torch.allclose(found, values.mean(dim=1), atol=1e-5):
        hint = "that is the average over all tokens, padding counted."
    elif same and torch.allclose(found, (values * mask[..., None]).mean(dim=1), atol=1e-5):
        hint = "the sum is right, but each text has a length of its own: divide by that."
    praise = "no padding changes it, however much there is."
    report("minilm-mask", bool(same and torch.allclose(found, right, atol=1e-5)), praise, hint)


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
