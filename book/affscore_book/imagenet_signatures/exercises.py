"""Checks of the exercises of the chapter on ImageNet signatures."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch

from affscore.signature import Signature
from affscore_book.activations.catalogue import lookup
from affscore_book.kit.checks import report


def check_calls(calls: int, hooked: int, googlenet: Signature) -> None:
    """Are there ``calls`` activation calls in GoogLeNet, of which hooks on modules would see ``hooked``?"""
    if calls != len(googlenet.calls):
        return report(
            "imagenet-calls", False, "", f"{calls} is not the number of activation calls; the signature lists them."
        )
    report(
        "imagenet-calls",
        hooked == 0,
        "every call is functional, and a hook on modules sees none of them.",
        "which modules of torchvision's GoogLeNet are activations? print the network, or read its source.",
    )


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


def check_trailing_shape(width: int, signature: Signature) -> None:
    """Has each image a vector of length ``width`` in the first call of ``signature`` by the trailing pool?"""
    shape = signature.calls[0].shape
    kept = math.prod(shape[: max(1, len(shape) - 2)])
    hint = "that is the number of channels; are they among the last two axes?" if width == shape[-1] else (
        f"the input has shape (images, {', '.join(map(str, shape))}); the last two of these axes are averaged."
    )  # fmt: skip
    report("imagenet-shape", width == kept, "one number for each row of patches, and the channels are gone.", hint)


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
