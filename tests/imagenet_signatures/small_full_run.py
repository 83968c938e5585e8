"""The full run, small: two networks in torchvision's own files and nine pictures, by addresses of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torchvision.models import get_model, get_model_weights

from affscore.zoo import datasets
from affscore_book.imagenet_signatures import full_results, full_run

NETWORKS = ("mnasnet0_5", "swin_t")
CLASSES = ("n01440764", "n02102040", "n02979186")
PICTURES, SIZE = 9, 4


def serve(www: Path, hub: Path, change: Callable[[object, str, object], None]) -> None:
    """Write weights and pictures as they are found on the network, and let the full run find them.

    ``change`` is monkeypatch's setattr; the pictures are already downloaded, to ``www``.
    """
    for seed, name in enumerate(NETWORKS):
        torch.manual_seed(seed)
        torch.save(get_model(name, weights=None).state_dict(), www / "file.pth")
        digits = hashlib.sha256((www / "file.pth").read_bytes()).hexdigest()[:8]
        served = (www / "file.pth").rename(www / f"{name}-{digits}.pth")
        change(get_model_weights(name).IMAGENET1K_V1.value, "url", served.as_uri())
    random = np.random.default_rng(0)
    for number in range(PICTURES):
        picture = www / "imagenette2-320" / "val" / CLASSES[number % 3] / f"ILSVRC2012_val_{number:08}.JPEG"
        picture.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 52, 3), dtype=np.uint8)).save(picture)
    (www / "imagenette2-320" / "train" / CLASSES[0]).mkdir(parents=True)
    change(torch.hub, "_hub_dir", str(hub))
    change(datasets, "EXPECTED", {"imagenette": PICTURES})
    for module in (full_run, full_results):
        change(module, "PAPER", NETWORKS)
        change(module, "BATCH_SIZE", SIZE)
    change(full_results, "EXPECTED", {"imagenette": PICTURES})
