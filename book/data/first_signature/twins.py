"""Measure the linear twins of the 33 activation calls of EfficientNet-Lite0 and write twins.json beside this file.

    python book/data/first_signature/twins.py

There are three draws of 256 crops of the photographs, of which seed 1 is the chapter's. The file has for each call the
score, the score of its linear twin, the score without shrinkage, the paired score, the share of crops that are their
own best partner, and the score with the outputs of the next draw's crops. The script takes about three minutes on one
core. A run that was stopped resumes where it ended.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_study.first_signature.twins import measure_twins
from affscore_study.kit.run_files import open_results, store_results

FILE = Path(__file__).with_suffix(".json")
SEEDS = (1, 2, 3)
SETTINGS = {"model": "efficientnet_lite0", "data": "photographs", "crops": 256, "crop_seeds": list(SEEDS)}


def main() -> None:
    torch.set_num_threads(1)
    result = open_results(FILE, SETTINGS, draws={})
    net = load_model("efficientnet_lite0")
    for seed in SEEDS:
        if str(seed) in result["draws"]:
            continue
        start = time.perf_counter()
        draws = (seed, SEEDS[seed % len(SEEDS)])
        crops, others = (
            next(iter(load_dataset("photographs", preprocess=net.preprocess, batch_size=256, seed=draw)))
            for draw in draws
        )
        result["draws"][str(seed)] = measure_twins(net.model, crops, others)
        result["seconds"] = round(result["seconds"] + time.perf_counter() - start, 1)
        store_results(FILE, result, indent=1)
        print(f"seed {seed}: {result['seconds']:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
