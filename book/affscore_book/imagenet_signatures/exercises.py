"""Checks of the exercises of the chapter on ImageNet signatures."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import numpy as np
from scipy.spatial.distance import pdist

from affscore.signature import Signature
from affscore_book.kit.checks import report
from affscore_book.kit.statistics import leaving_out


def check_lists(lists: int, mixed: int, signature: Signature) -> None:
    """Would hooks that keep one list a module keep ``lists``, of which ``mixed`` hold more than one call?"""
    calls = Counter(call.module for call in signature.calls)
    truth = len(calls), sum(count > 1 for count in calls.values())
    hint = "a list for each different call.module; a mixed one belongs to a module with several calls."
    if (lists, mixed) == (len(signature.calls), len(signature.calls)):
        hint = "that is the number of calls; several calls have the same call.module."
    report("imagenet-calls", (lists, mixed) == truth, "only the first ReLU of the network has a list of its own.", hint)


def check_lengths(spatial: int, trailing: int, vit: Signature, side: int, patch: int) -> None:
    """Have the vectors of both pools these lengths, in the first call of ``vit`` on images of ``side`` pixels?

    ``patch`` is the side of a patch in pixels; one token more than patches goes through the network.
    """
    tokens, channels = (side // patch) ** 2 + 1, vit.calls[0].shape[-1]
    hint = f"which of the axes (images, tokens, {channels} channels) does each pool average over?"
    if (spatial, trailing) == (tokens, channels):
        hint = "the other way round: trailing averages over the last axis, which holds the channels."
    elif spatial == channels and trailing == tokens - 1:
        hint = "one token more than there are patches goes through the network."
    praise = "larger images lengthen the vector of the trailing pool, so that its score is of another kind of sample."
    report("imagenet-shape", (spatial, trailing) == (channels, tokens), praise, hint)


def check_dropped(share: float, trained: np.ndarray, starts: np.ndarray, inside: np.ndarray) -> None:
    """Is ``share`` the mean squared correlation over some of the calls, between trained seeds and other seeds' starts?

    ``trained`` and ``starts`` are (seeds, calls), row i of seed i; ``inside`` says which calls are kept, bool (calls,).
    """
    pairs = list(permutations(range(len(trained)), 2))
    truth, every, own = (
        np.mean([np.corrcoef(trained[i, calls], starts[j, calls])[0, 1] ** 2 for i, j in chosen])
        for chosen, calls in (
            (pairs, inside), (pairs, np.ones_like(inside)), (product(range(len(trained)), repeat=2), inside)
        )
    )  # fmt: skip
    hint = "the share is a squared correlation, over the columns of the calls that are kept."
    if abs(share - every) < 0.005:
        hint = "that is the share over all calls; keep the columns of the calls inside only."
    elif abs(share - own) < 0.005:
        hint = "leave out the pairs of a trained seed and its own start, on the diagonal."
    praise = "the start knows which calls follow an addition; that it knows more cannot be shown."
    report("imagenet-drop", abs(share - truth) < 0.01, praise, hint)


def check_jackknife(low: float, high: float, trained: np.ndarray, starts: np.ndarray) -> None:
    """Are these the ends of the jackknife's interval of the ratio of :func:`seeds_over_training`?"""
    truth = leaving_out(lambda kept: seeds_over_training(trained[kept], starts[kept]), len(trained))
    hint = "four ratios without one seed each; (n - 1) / n stands under the root, and 3.18 before it."
    if abs((low + high) / 2 - truth.mean) > 0.02:
        hint = "the middle of the interval is the ratio of all seeds; that of yours is not."
    right = abs(low - truth.low) < 0.02 and abs(high - truth.high) < 0.02
    report("imagenet-jackknife", right, "the interval holds 1, so four seeds do not decide.", hint)


def seeds_over_training(trained: np.ndarray, starts: np.ndarray) -> float:
    """How far two trained seeds lie apart, mean over pairs, by how far training moves a seed; (seeds, calls) each."""
    apart = pdist(trained).mean()
    return float(apart / np.linalg.norm(trained - starts, axis=1).mean())
