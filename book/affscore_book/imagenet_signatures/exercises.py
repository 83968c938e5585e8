"""Checks of the exercises of the chapter on ImageNet signatures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import torch

from affscore.signature import Signature
from affscore_book.activations.catalogue import lookup
from affscore_book.kit.checks import report


def check_lists(lists: int, mixed: int, signature: Signature) -> None:
    """Would hooks that keep one list a module keep ``lists``, of which ``mixed`` hold more than one call?"""
    calls = Counter(call.module for call in signature.calls)
    truth = len(calls), sum(count > 1 for count in calls.values())
    hint = "a list for each different call.module; a mixed one belongs to a module with several calls."
    if (lists, mixed) == (len(signature.calls), len(signature.calls)):
        hint = "that is the number of calls; several calls have the same call.module."
    report("imagenet-calls", (lists, mixed) == truth, "only the first ReLU of the network has a list of its own.", hint)


def check_idempotent(names: Collection[str]) -> None:
    """Are ``names`` those of relu, relu6, leaky_relu, gelu, silu, hardtanh, tanh for which f(f(x)) = f(x)?"""
    x = torch.linspace(-9, 9, 2001, dtype=torch.float64)
    asked = ("relu", "relu6", "leaky_relu", "gelu", "silu", "hardtanh", "tanh")
    right = {name for name in asked if torch.equal(lookup(name)(lookup(name)(x)), lookup(name)(x))}
    strange = sorted(set(names) - set(asked))
    if strange:
        return report("imagenet-twice", False, "", f"{', '.join(strange)} is not among {', '.join(asked)}.")
    missing, extra = sorted(right - set(names)), sorted(set(names) - right)
    hint = f"what does {extra[0]} do to its own output?" if extra else f"{len(missing)} more leave their output alone."
    report(
        "imagenet-twice", not missing and not extra, "these two clamps and ReLU change nothing the second time.", hint
    )


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


def check_saturated(share: float, signature: Signature, images: int) -> None:
    """Is ``share`` the fraction of calls in which a regression with an intercept fits ``images`` points exactly?"""
    widths: Sequence[int] = [call.shape[call.channel_axis - 1] for call in signature.calls]
    truth = sum(width + 1 >= images for width in widths) / len(widths)
    hint = "count the intercept: d channels give d + 1 coefficients for each output."
    if abs(share - truth) > 0.1:
        hint = f"{share:.2f} is far from the share of calls with as many coefficients as images."
    report(
        "imagenet-r2",
        abs(share - truth) < 0.005,
        "in these calls the in-sample R2 is 1 whatever the activation does.",
        hint,
    )
