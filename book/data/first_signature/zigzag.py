"""Measure the two calls of every block of the EfficientNet-Lites and write zigzag.json beside this file.

    python book/data/first_signature/zigzag.py

The networks are three trained ones, and the smallest one with random weights and batch norm set, each on 256 crops of
the photographs (seed 1, those of the chapter). The script takes about ten minutes on one core. A run that was stopped
resumes where it ended.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import torch

from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.kit.batch_norm import set_batch_norm
from affscore_study.first_signature.zigzag import measure_blocks, pairs_of
from affscore_study.kit.run_files import open_results, store_results

FILE = Path(__file__).with_suffix(".json")
SETTINGS = {"data": "photographs", "crops": 256, "crop_seed": 1, "seed": 0}
NETWORKS = {  # all are trained except the last, which has random weights and batch norm set
    "Lite 0": ("efficientnet_lite0", None),
    "Lite 1": ("efficientnet_lite1", None),
    "Lite 2": ("efficientnet_lite2", None),
    "Lite 0, untrained": ("efficientnet_lite0", "random"),
}


def main() -> None:
    torch.set_num_threads(1)
    result = open_results(FILE, SETTINGS, networks={})
    for title, (name, weights) in NETWORKS.items():
        if title in result["networks"]:
            continue
        start = time.perf_counter()
        net = load_model(name, weights=weights)
        (crops,) = load_dataset("photographs", preprocess=net.preprocess, batch_size=256, seed=1)
        parts = crops.split(32)
        if weights == "random":
            set_batch_norm(net.model, parts)
        result["networks"][title] = [asdict(block) for block in measure_blocks(net.model, pairs_of(net.model), parts)]
        result["seconds"] = round(result["seconds"] + time.perf_counter() - start, 1)
        store_results(FILE, result, indent=1)
        print(f"{title}: {result['seconds']:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
