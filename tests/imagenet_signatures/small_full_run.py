"""The full run, small: two networks in torchvision's own files and nine pictures, served on this machine.

``python small_full_run.py PLAN ...`` is the command of ``full_run`` on them, in a process that can be killed; PLAN is
the file that :func:`plan` wrote.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.models import get_model, get_model_weights

from affscore.zoo import datasets
from affscore_book.imagenet_signatures import full_results, full_run

NETWORKS = ("mnasnet0_5", "swin_t")
CLASSES = ("n01440764", "n02102040", "n02979186")
PICTURES, SIZE = 9, 4


def plan(www: Path, address: str, hub: Path) -> Path:
    """Write what is served, in the real formats, and where it is."""
    about: dict[str, object] = {"hub": str(hub)}
    for seed, name in enumerate(NETWORKS):
        torch.manual_seed(seed)
        torch.save(get_model(name, weights=None).state_dict(), www / "file.pth")
        digits = hashlib.sha256((www / "file.pth").read_bytes()).hexdigest()[:8]
        about[name] = f"{address}/{(www / 'file.pth').rename(www / f'{name}-{digits}.pth').name}"
    random = np.random.default_rng(0)
    for number in range(PICTURES):
        picture = www / "imagenette2-320" / "val" / CLASSES[number % 3] / f"ILSVRC2012_val_{number:08}.JPEG"
        picture.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 52, 3), dtype=np.uint8)).save(picture)
    (www / "imagenette2-320" / "train" / CLASSES[0]).mkdir(parents=True)
    archive = www / "imagenette2-320.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(www / "imagenette2-320", "imagenette2-320")
    about["pictures"] = f"{address}/{archive.name}", hashlib.md5(archive.read_bytes()).hexdigest()
    path = www.parent / "plan.json"
    path.write_text(json.dumps(about))
    return path


def patch(path: Path, change: Callable[[object, str, object], None] = setattr) -> None:
    """Let the full run find this world."""
    about = json.loads(path.read_text())
    for name in NETWORKS:
        change(get_model_weights(name).IMAGENET1K_V1.value, "url", about[name])
    change(torchvision.datasets.Imagenette, "_ARCHIVES", {"320px": tuple(about["pictures"])})
    change(torch.hub, "_hub_dir", about["hub"])
    change(datasets, "EXPECTED", {"imagenette": PICTURES})
    for module in (full_run, full_results):
        change(module, "PAPER", NETWORKS)
        change(module, "BATCH_SIZE", SIZE)
    change(full_results, "EXPECTED", {"imagenette": PICTURES})


if __name__ == "__main__":
    torch.set_num_threads(1)
    patch(Path(sys.argv[1]))
    sys.exit(full_run.main(sys.argv[2:]))
