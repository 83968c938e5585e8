"""Checks of the exercises of the chapter on ImageNet signatures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore.signatures import Signature
from affscore_book.kit.answers import Unfit, function, one_number, whole
from affscore_book.kit.checks import case, exercise, report


@exercise("imagenet-calls", lists=whole, mixed=whole)
def check_lists(lists: int, mixed: int, signature: Signature) -> None:
    """Would hooks that keep one list a module keep ``lists``, of which ``mixed`` hold more than one call?"""
    calls = Counter(call.module for call in signature.calls)
    truth = len(calls), sum(count > 1 for count in calls.values())
    hint = "a list for each different call.module; a mixed one belongs to a module with several calls."
    if (lists, mixed) == (len(signature.calls), len(signature.calls)):
        hint = "that is the number of calls; several calls have the same call.module."
    report("imagenet-calls", (lists, mixed) == truth, "only the first ReLU of the network has a list of its own.", hint)


@exercise("imagenet-shape", spatial=whole, trailing=whole)
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


@exercise("imagenet-drop", share=one_number)
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


def _watched(found: Any) -> tuple[Tensor, Sequence[tuple[Tensor, Tensor]]]:
    """What ``watch`` returned, if it is an output and pairs."""
    try:
        output, seen = found
        pairs = [(one, other) for one, other in seen]
    except (TypeError, ValueError) as error:
        raise Unfit("your function should return the output and a list of pairs (input, output).") from error
    if not all(isinstance(each, Tensor) for each in (output, *(part for pair in pairs for part in pair))):
        raise Unfit("the output, and both parts of each pair, should be tensors.")
    return output, pairs


class _Function(nn.Module):
    """Calls torch.relu and has no activation module."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)


@exercise("imagenet-hook", watch=function)
def check_watch(watch: Callable[[nn.Module, Tensor], tuple[Tensor, Sequence[tuple[Tensor, Tensor]]]]) -> None:
    """Does ``watch(network, x)`` give the output, and the input and output of each call, and change nothing?

    It is tried on networks with in-place SiLU and ReLU, on one whose only activation module is called twice, on one
    with its activation in a block, and on one that calls the function ``torch.relu``.
    """
    x = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))
    for name, activation, calls in (("SiLU(inplace=True)", nn.SiLU(inplace=True), 1), ("ReLU(inplace=True)",
                                    nn.ReLU(inplace=True), 1), ("one SiLU called twice", nn.SiLU(), 2),
                                    ("a SiLU inside a block", nn.SiLU(), 1),
                                    ("torch.relu, a function", _Function(), 1)):  # fmt: skip
        linear = [nn.Linear(6, 6), nn.Linear(6, 6)]
        for layer, seed in zip(linear, (1, 2), strict=True):
            with torch.no_grad():
                layer.weight.copy_(torch.randn(6, 6, generator=torch.Generator().manual_seed(seed)))
        network = nn.Sequential(linear[0], activation, linear[1], *[activation] * (calls - 1))
        if "block" in name:
            network = nn.Sequential(network[:2], linear[1])
        with torch.no_grad():
            truth = network(x)
            before = [linear[0](x)]
            before += [linear[1](nn.functional.silu(before[0]))] * (calls - 1)
            pairs = [(each, type(activation)()(each)) for each in before]
        with case(name):
            output, seen = _watched(watch(network, x))
        wrong = ""
        if output.shape != truth.shape or not torch.allclose(output, truth):
            wrong = f"with {name} the network's output changes while it is watched."
        elif len(seen) != calls:
            wrong = f"with {name} the list should have length {calls}, and yours has length {len(seen)}."
        elif not all(a.shape == b.shape and torch.allclose(a, b) for ours, own in zip(seen, pairs, strict=True)
                     for a, b in zip(ours, own, strict=True)):  # fmt: skip
            wrong = f"with {name} a pair is not the input and the output of the call; who overwrites what, and when?"
        elif activation._forward_hooks or activation._forward_pre_hooks:
            wrong = "hooks are left behind on the network."
        if wrong:
            with case(name):
                return report("imagenet-hook", False, "", wrong)
    report("imagenet-hook", True, "nothing runs twice, and each value is copied before it can be overwritten.", "")
