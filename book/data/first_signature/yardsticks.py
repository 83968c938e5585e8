"""Measure the zigzag of EfficientNet-Lite0 by three measures and write yardsticks.json beside this file.

    python book/data/first_signature/yardsticks.py

The file is for the blocks with a skip connection of the trained network, on the chapter's 256 crops (seed 1). The
script takes about two minutes on one core.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_study.first_signature.yardsticks import measure_yardsticks
from affscore_study.first_signature.zigzag import pairs_of
from affscore_study.kit.run_files import open_results, store_results

FILE = Path(__file__).with_suffix(".json")
SETTINGS = {"network": "efficientnet_lite0", "data": "photographs", "crops": 256, "crop_seed": 1, "seed": 0}


def main() -> None:
    torch.set_num_threads(1)
    start = time.perf_counter()
    result = open_results(FILE, SETTINGS)
    net = load_model(SETTINGS["network"])
    (crops,) = load_dataset("photographs", preprocess=net.preprocess, batch_size=256, seed=1)
    # float64, because rounding would count as directions of the inputs if a block has more channels than inputs
    model, crops = net.model.double(), crops.double()
    pairs = pairs_of(model)
    found = measure_yardsticks(model, pairs, crops.split(32))  # of all pairs, so that the control's draws agree
    skips = [skip for _, skip, _, _ in pairs]
    result["blocks"] = {
        name: [row for row, skip in zip(rows, skips, strict=True) if skip] for name, rows in found.items()
    }
    result["seconds"] = round(time.perf_counter() - start, 1)
    store_results(FILE, result, indent=1)


if __name__ == "__main__":
    main()
